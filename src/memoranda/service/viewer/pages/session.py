"""Session: one conversation with its turns, compression chain and branches, and what was recalled into its prompts.

Long texts are shortened, so that a page stays small, with a link to the whole message, which has its own page in parts.
A conversation can be exported as a file, for people or for `memoranda sessions import`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.memory.record.conversations import Conversation, Window
from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.message_rows import text_of
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import find_links, short_project
from memoranda.service.viewer.page import Download, Page, PageRequest, View
from memoranda.service.viewer.pages.recall_log import (
    PromptMessage,
    SessionRecalls,
    named_messages,
    recalls_of_session,
    redactor_of,
)
from memoranda.service.viewer.renderer import visible, without_control_characters
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.markdown_html import render_markdown
from memoranda.upkeep.transcripts import Conversation as ExportedConversation
from memoranda.upkeep.transcripts import read_conversations, render_html
from memoranda.upkeep.transcripts import render_markdown as export_markdown

_MAX_TEXT_CHARS = 6_000
_MAX_FOLDED_CHARS = 2_500
_MAX_ARGUMENT_CHARS = 1_200
_MAX_CALLS = 20
_MAX_LINE_CHARS = 90
# What is left for a text when the page is full.
_MIN_CHARS = 160
PAGE_CHARS = 110_000
"""The most characters of HTML that the texts of one page have."""
_PAGE_SIZE = 50
_BEFORE_LINKED = 10
_MAX_SUMMARY_CHARS = 4_000
_MAX_RELATED = 30
_MAX_CHAIN = 12
# How many messages a continuation may begin with that it took over.
_MAX_COPIES = 60
_MAX_CONTEXT = 20
_CONTEXT_CHARS = 30_000
_PART_CHARS = 60_000
_TYPES = {"md": "text/markdown", "html": "text/html", "jsonl": "application/x-ndjson"}
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text, perhaps only the start of it."""

    text: str
    chars: int
    html: Markup = Markup("")
    """The text as rendered Markdown, if it was said; or as it is, where rendering it would make the page too large."""

    @property
    def is_cut(self) -> bool:
        """Whether the text continues."""
        return len(self.text) < self.chars

    @property
    def first_line(self) -> str:
        """The start of it on one line, for a folded text."""
        line = " ".join(self.text[: 4 * _MAX_LINE_CHARS].split())
        return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}…"


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A tool call: the name of the tool, and its arguments."""

    name: str
    arguments: ShownText


@dataclass(frozen=True, slots=True)
class ShownMessage:
    id: int
    session_id: str
    role: str
    tool: str
    timestamp: float
    body: ShownText
    calls: tuple[ShownCall, ...]
    more_calls: int
    is_damaged: bool

    @property
    def is_folded(self) -> bool:
        """Whether the page shows it closed: the output of tools, and what programs tell the model."""
        return self.role not in ("user", "assistant")


class TextBudget:
    """Shortens texts so that all of them together stay within a size; the first ones get more."""

    def __init__(self, chars: int = PAGE_CHARS) -> None:
        self._left = chars

    def shorten(self, text: str, limit: int) -> ShownText:
        """The start of a text, as long as the limit and the budget allow."""
        room = min(limit, max(_MIN_CHARS, self._left))
        shown = text[:room]
        size = len(escape(shown))
        if size > max(room, self._left):
            # Escaped, it needs up to five times its length.
            shown = shown[: max(_MIN_CHARS, room * max(self._left, room) // size)]
            size = len(escape(shown))
        self._left -= size
        return ShownText(shown, len(text))

    def render(self, shown: ShownText) -> ShownText:
        """The text with its Markdown rendered, unless the elements would need more than the budget."""
        plain = visible(shown.text)
        rendered = Markup(render_markdown(without_control_characters(shown.text)))
        added = len(rendered) - len(plain)
        if added > max(0, self._left):
            return replace(shown, html=Markup("<p>{}</p>").format(plain))
        self._left -= added
        return replace(shown, html=rendered)


def _show_messages(messages: Iterable[FeedMessage], budget: TextBudget) -> Iterator[ShownMessage]:
    for message in messages:
        calls = list(_calls(message.tool_calls))
        folded = message.role not in ("user", "assistant")
        body = budget.shorten(text_of(message.content), _MAX_FOLDED_CHARS if folded else _MAX_TEXT_CHARS)
        yield ShownMessage(
            message.id,
            message.session_id,
            message.role,
            message.tool_name or "",
            message.timestamp,
            body if folded else budget.render(body),
            tuple(
                ShownCall(name, budget.shorten(arguments, _MAX_ARGUMENT_CHARS))
                for name, arguments in calls[:_MAX_CALLS]
            ),
            max(0, len(calls) - _MAX_CALLS),
            message.damaged,
        )


def _calls(calls: Any) -> Iterator[tuple[str, str]]:
    """The name and the arguments of each tool call, whatever form the program recorded."""
    for call in calls if isinstance(calls, list) else [calls] if calls else []:
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            yield "tool", call if isinstance(call, str) else json.dumps(call, ensure_ascii=False)
            continue
        arguments = function.get("arguments", function.get("input", ""))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=2)
        yield str(function.get("name") or "tool")[:200], text


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
    shown = [call for turn in turns for call in turn["recalls"]]
    title = last["title"] or first["title"] or db.listing.first_words(session_id) or "Conversation"
    data = {
        "id": last["id"],
        "title": title,
        "agent": first["source"],
        "model": last["model"] or "",
        "project": short_project(last["project"]),
        "started_at": first["started_at"],
        "ended_at": last["ended_at"],
        "end_reason": last["end_reason"] or "",
        "archived": bool(last["archived"]),
        "resume": resume_command(last),
        "tokens": sum(row["input_tokens"] + row["output_tokens"] for row in rows),
        "cost": _cost(rows),
        "total": window.before + len(window.messages) + window.after,
        "chain": _chain(db, rows),
        "sessions": len(members),
        "parent": _parent(db, first),
        "related": _related(db, members),
        "turns": turns,
        "linked": request.number("message", 0),
        "before": window.before,
        "after": window.after,
        "other_recalls": recalls.others,
        "context": _copied_context(db, first, window),
        "links": find_links(request, named_messages(shown)),
        "first_id": turns[0]["message"].id if turns else 0,
        "last_id": turns[-1]["message"].id if turns else 0,
    }
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


def _turns(db: SessionDB, window: Window, members: Sequence[str], recalls: SessionRecalls) -> list[dict[str, Any]]:
    """The messages of the page. `continues` is the session that begins with a message, after compression."""
    budget = TextBudget()
    turns: list[dict[str, Any]] = []
    current = None
    for message in _show_messages(window.messages, budget):
        link = None
        is_first = current is None and not window.before
        if message.session_id != current and message.session_id in members[1:] and not is_first:
            number = members.index(message.session_id) + 1
            link = {"number": number, "summary": _summary_of(db, message.session_id, budget)}
        current = message.session_id
        recalled = recalls.by_message.get(message.id, ())
        turns.append({"message": message, "continues": link, "recalls": recalled})
    return turns


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
    return tuple(_show_messages(copies, TextBudget(_CONTEXT_CHARS)))


def _summary_of(db: SessionDB, session_id: str, budget: TextBudget) -> ShownText | None:
    """The summary with which a continuation begins."""
    for message in db.get_messages(session_id, include_inactive=True, limit=5):
        if message["is_summary"]:
            return budget.render(budget.shorten(text_of(message["content"]), _MAX_SUMMARY_CHARS))
    return None


def _cost(rows: Sequence[dict[str, Any]]) -> float | None:
    costs = [row["actual_cost_usd"] or row["estimated_cost_usd"] for row in rows]
    return sum(cost for cost in costs if cost) if any(costs) else None


def _chain(db: SessionDB, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sessions of a compressed conversation, each with the first message of its own; long chains lose their middle.

    `skipped` is how many sessions are left out before one.
    """
    numbered = list(enumerate(rows, start=1))
    shown = numbered if len(rows) <= _MAX_CHAIN else [*numbered[: _MAX_CHAIN // 2], *numbered[-_MAX_CHAIN // 2 :]]
    chain: list[dict[str, Any]] = []
    for number, row in shown:
        messages = db.get_messages(row["id"], include_inactive=True, limit=_MAX_COPIES)
        own = next((each["id"] for each in messages if each["copy_of"] is None and not each["is_summary"]), 0)
        skipped = number - 1 - (chain[-1]["number"] if chain else 0)
        chain.append({"number": number, "message": own, "started_at": row["started_at"], "skipped": skipped})
    return chain


def _parent(db: SessionDB, first: dict[str, Any]) -> dict[str, str] | None:
    name = first["parent_session_id"]
    row = db.get_session(name) if name else None
    if row is None:
        return None
    return {"id": name, "title": row["title"] or name, "relation": first["relation"] or "branch"}


def _related(db: SessionDB, members: Sequence[str]) -> list[dict[str, str]]:
    """Branches of the conversation, and work that it delegated."""
    found = [row for row in db.get_descendants(members[0]) if row["id"] not in members]
    return [
        {
            "id": row["id"],
            "title": row["title"] or db.listing.first_words(row["id"]) or row["id"],
            "relation": row["relation"] or "",
        }
        for row in found[:_MAX_RELATED]
    ]


PAGE = Page("session", "/sessions/{session}", show)


def show_message(request: PageRequest) -> View:
    """The page; raises Problem 404 for a message that does not exist."""
    missing = Problem(404, "not_found", "There is no such message.")
    name = request.path["message"]
    if not request.has_record or not (name.isascii() and name.isdigit() and len(name) < 16):
        raise missing
    db = request.memory.sessions
    window = db.window_around(int(name), 1, counted=False)
    conversation = db.conversation_of(request.path["session"])
    if window is None or window.conversation != conversation:
        raise missing
    message = next(found for found in window.messages if found.id == int(name))
    text = text_of(message.content)
    start = request.number("from", 0)
    part = TextBudget(2 * _PART_CHARS).shorten(text[start:], _PART_CHARS).text
    later = start + len(part)
    data = {
        "session": request.path["session"],
        "message": next(_show_messages([message], TextBudget(_PART_CHARS))),
        "text": part,
        "start": start,
        "chars": len(text),
        "earlier": max(0, start - _PART_CHARS) if start else None,
        "later": later if later < len(text) and part else None,
    }
    return View("message.html", f"Message {name}", data)


MESSAGE = Page("message", "/sessions/{session}/messages/{message}", show_message)


def export(request: PageRequest) -> Download:
    """The file; raises Problem 404 for a session that does not exist, or an unknown format."""
    file_format = request.query.get("format", "jsonl")
    db = request.memory.sessions if request.has_record else None
    found = None if db is None else next(read_conversations(db, [request.path["session"]]), None)
    if db is None or found is None or file_format not in _TYPES:
        raise Problem(404, "not_found", "There is no such conversation, or no such format.")
    name = _NO_FILE_NAME.sub("-", found.title)[:_MAX_NAME_CHARS].strip("-.") or "conversation"
    return Download(f"{name}.{file_format}", f"{_TYPES[file_format]}; charset=utf-8", _parts(db, found, file_format))


def _parts(db: SessionDB, conversation: ExportedConversation, file_format: str) -> Iterator[bytes]:
    if file_format == "jsonl":
        for member in conversation.members:
            exported = db.export_session(member)
            if exported is not None:
                yield json.dumps(exported, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        return
    render = render_html if file_format == "html" else export_markdown
    for part in render([conversation]):
        yield part.encode("utf-8", "replace")


EXPORT = Page("export", "/sessions/{session}/export", export, download=True)
