"""Session: one conversation with its turns, compression chain and branches, and what was recalled into its prompts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.memory.record.conversations import Conversation, Window
from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.message_rows import text_of
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import Links, find_links
from memoranda.service.viewer.conversation_rows import short_project
from memoranda.service.viewer.operation.recall_log import PromptMessage, RecallCall, SessionRecalls, recalls_of_session
from memoranda.service.viewer.page import Page, PageRequest, View
from memoranda.service.viewer.pages.recall_log import named_messages, redactor_of
from memoranda.service.viewer.shown_messages import ShownMessage, ShownText, TextBudget, show_messages

_PAGE_SIZE = 50
_BEFORE_LINKED = 10
_MAX_SUMMARY_CHARS = 4_000
_MAX_RELATED = 30
_MAX_CONTEXT = 20
_CONTEXT_CHARS = 30_000


@dataclass(frozen=True, slots=True)
class RelatedSession:
    """A session that this one branches from, or that began here."""

    id: str
    title: str
    relation: str


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One session of the chain that compression made, and the summary with which it begins."""

    id: str
    number: int
    first_message: int
    summary: ShownText | None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the page, and what belongs to it."""

    message: ShownMessage
    continues: ChainLink | None
    """The session that begins with this message, after compression."""
    recalls: tuple[RecallCall, ...]


@dataclass(frozen=True, slots=True)
class SessionView:
    """What the page shows."""

    id: str
    title: str
    agent: str
    model: str
    project: str
    started_at: float | None
    ended_at: float | None
    end_reason: str
    archived: bool
    resume: str
    tokens: int
    cost: float | None
    total: int
    chain: tuple[str, ...]
    parent: RelatedSession | None
    related: tuple[RelatedSession, ...]
    turns: tuple[Turn, ...]
    linked: int
    """The message that the address names; 0 for none."""
    before: int
    after: int
    other_recalls: int
    context: tuple[ShownMessage, ...]
    """The last messages that a branch has copied, on its first page; their ids are those of the originals."""
    links: Links
    """The conversations that were recalled."""

    @property
    def first_id(self) -> int:
        return self.turns[0].message.id if self.turns else 0

    @property
    def last_id(self) -> int:
        return self.turns[-1].message.id if self.turns else 0


def show(request: PageRequest) -> View:
    """The page; raises Problem 404 for a session that does not exist."""
    session_id = request.path["session"]
    db = request.memory.sessions if request.has_record else None
    conversation = None if db is None else db.conversation_of(session_id)
    if db is None or conversation is None:
        raise Problem(404, "not_found", "There is no such conversation.")
    with db.one_view():
        return _show(request, db, session_id, conversation)


def _show(request: PageRequest, db: SessionDB, session_id: str, conversation: Conversation) -> View:
    members = db.get_compression_lineage(session_id) or [session_id]
    rows = [row for member in members if (row := db.get_session(member)) is not None]
    if not rows:
        raise Problem(404, "not_found", "There is no such conversation.")
    first, last = rows[0], rows[-1]
    window = _read_window(request, db, conversation)
    recalls = _recalls(request, window, members)
    turns = _turns(db, window, members, recalls)
    shown = [call for turn in turns for call in turn.recalls]
    title = last["title"] or first["title"] or db.listing.first_words(session_id) or "Conversation"
    data = SessionView(
        id=last["id"],
        title=title,
        agent=first["source"],
        model=last["model"] or "",
        project=short_project(last["project"]),
        started_at=first["started_at"],
        ended_at=last["ended_at"],
        end_reason=last["end_reason"] or "",
        archived=bool(last["archived"]),
        resume=resume_command(last),
        tokens=sum(row["input_tokens"] + row["output_tokens"] for row in rows),
        cost=_cost(rows),
        total=window.before + len(window.messages) + window.after,
        chain=tuple(members),
        parent=_parent(db, first),
        related=_related(db, members),
        turns=turns,
        linked=request.number("message", 0),
        before=window.before,
        after=window.after,
        other_recalls=recalls.others,
        context=_copied_context(db, first, window),
        links=find_links(request, named_messages(shown)),
    )
    return View("session.html", title, data)


def _read_window(request: PageRequest, db: SessionDB, conversation: Conversation) -> Window:
    """The messages that the address asks for: after a message, before one, around one, or the first ones."""
    linked, before = request.number("message", 0), request.number("before", 0)
    if linked or before:
        window = db.window_around(linked or before, _BEFORE_LINKED if linked else _PAGE_SIZE)
        if window is None or window.conversation != conversation:
            raise Problem(404, "not_found", "This conversation does not have this message.")
        if linked:
            return db.messages_behind(conversation, window.messages[0].id - 1, _PAGE_SIZE)
        earlier = [message for message in window.messages if message.id < before]
        start = earlier[0].id - 1 if earlier else 0
        return db.messages_behind(conversation, start, len(earlier) or _PAGE_SIZE)
    return db.messages_behind(conversation, request.number("after", 0), _PAGE_SIZE)


def _recalls(request: PageRequest, window: Window, members: Sequence[str]) -> SessionRecalls:
    prompts = [
        PromptMessage(message.id, message.timestamp, text_of(message.content))
        for message in window.messages
        if message.role == "user"
    ]
    return recalls_of_session(request.memory.home.root, request.user, redactor_of(request), members, prompts)


def _turns(db: SessionDB, window: Window, members: Sequence[str], recalls: SessionRecalls) -> tuple[Turn, ...]:
    budget = TextBudget()
    turns, current = [], None
    for message in show_messages(window.messages, budget):
        link = None
        is_first = current is None and not window.before
        if message.session_id != current and message.session_id in members[1:] and not is_first:
            number = members.index(message.session_id) + 1
            link = ChainLink(message.session_id, number, message.id, _summary_of(db, message.session_id, budget))
        current = message.session_id
        turns.append(Turn(message, link, recalls.by_message.get(message.id, ())))
    return tuple(turns)


def _copied_context(db: SessionDB, first: dict[str, Any], window: Window) -> tuple[ShownMessage, ...]:
    """What the model of a branch reads before the branch's own messages."""
    if first["relation"] != "branch" or window.before:
        return ()
    skipped = max(0, first["message_count"] - len(window.messages) - window.after - _MAX_CONTEXT)
    rows = db.get_messages(first["id"], limit=_MAX_CONTEXT, offset=skipped)
    copies = [
        FeedMessage(
            row["copy_of"],
            row["session_id"],
            row["role"],
            row["content"],
            row.get("tool_name"),
            row.get("tool_calls"),
            row["timestamp"],
        )
        for row in rows
        if row["copy_of"]
    ]
    return tuple(show_messages(copies, TextBudget(_CONTEXT_CHARS)))


def _summary_of(db: SessionDB, session_id: str, budget: TextBudget) -> ShownText | None:
    """The summary with which a continuation begins."""
    for message in db.get_messages(session_id, include_inactive=True, limit=5):
        if message["is_summary"]:
            return budget.shorten(text_of(message["content"]), _MAX_SUMMARY_CHARS)
    return None


def _cost(rows: Sequence[dict[str, Any]]) -> float | None:
    costs = [row["actual_cost_usd"] or row["estimated_cost_usd"] for row in rows]
    return sum(cost for cost in costs if cost) if any(costs) else None


def _parent(db: SessionDB, first: dict[str, Any]) -> RelatedSession | None:
    name = first["parent_session_id"]
    row = db.get_session(name) if name else None
    if row is None:
        return None
    return RelatedSession(name, row["title"] or name, first["relation"] or "branch")


def _related(db: SessionDB, members: Sequence[str]) -> tuple[RelatedSession, ...]:
    """Branches of the conversation, and work that it delegated."""
    found = [row for row in db.get_descendants(members[0]) if row["id"] not in members]
    return tuple(
        RelatedSession(row["id"], row["title"] or db.listing.first_words(row["id"]) or row["id"], row["relation"] or "")
        for row in found[:_MAX_RELATED]
    )


PAGE = Page("session", "/sessions/{session}", show)
