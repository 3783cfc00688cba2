"""The conversations that pages list or name, and the filters of such lists.

Of the conversations that logs, facts, deliveries and entries name, only those that the record has become links. A
filter is shown as chips: links that add it to the address or remove it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.memory.record.conversations import ReadAhead
from memoranda.memory.record.message_rows import text_of
from memoranda.service.viewer.page import PageRequest, page_url
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.projects import project_name

_MAX_WORDS_CHARS = 160


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One line of a list of conversations."""

    id: str
    title: str
    agent: str
    project: str
    messages: int
    last_active: float | None
    archived: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "ConversationRow":
        """From a row of `list_sessions_rich`."""
        return cls(
            row["id"],
            row["title"] or row["preview"] or "(no messages)",
            row["source"],
            short_project(row["project"]),
            row["message_count"],
            row["last_active"],
            bool(row["archived"]),
        )


def short_project(project: str | None) -> str:
    """The last part of a project's name or path; "" without one."""
    name = project_name(project) or ""
    return name.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ConversationLink:
    """A conversation of the record; `message_id` is 0 if it does not have the message that was named."""

    session_id: str
    title: str
    agent: str
    message_id: int = 0
    words: str = ""
    """The start of the message."""


def find_recorded(request: PageRequest, names: Iterable[str]) -> frozenset[str]:
    """Those of some sessions that exist and that the visitor may see; only they become links."""
    wanted = {name for name in names if name}
    if not wanted or not request.has_record:
        return frozenset()
    ahead = ReadAhead(request.memory.sessions.conversations)
    ahead.read_facts(wanted)
    return frozenset(name for name in wanted if ahead.session_facts(name) is not None)


Links = Mapping[tuple[str, int], ConversationLink]
"""What is in the record, by session id and message id; 0 names no message."""


def find_links(request: PageRequest, names: Iterable[tuple[str, int]]) -> Links:
    """The conversations that exist, as the visitor may see them: one of another user does not exist."""
    wanted = {(session_id, message_id) for session_id, message_id in names if session_id}
    if not wanted or not request.has_record:
        return {}
    db = request.memory.sessions
    found: dict[tuple[str, int], ConversationLink] = {}
    titles: dict[str, tuple[str, str] | None] = {}
    for session_id, message_id in wanted:
        if session_id not in titles:
            row = db.get_session(session_id)
            title = "" if row is None else row["title"] or db.listing.first_words(session_id) or "a conversation"
            titles[session_id] = None if row is None else (title, row["source"])
        known = titles[session_id]
        if known is not None:
            message = db.get_message(message_id) if message_id else None
            # Compression continues a conversation in another session, which the page shows as the same one.
            words = " ".join(text_of(message["content"])[:_MAX_WORDS_CHARS].split()) if message else ""
            found[session_id, message_id] = ConversationLink(session_id, *known, message_id if message else 0, words)
    return found


def chip_group(
    label: str, name: str, values: Iterable[tuple[str, str]], *, path: str, query: Mapping[str, str]
) -> dict[str, Any]:
    """The chips of the parameter `name`: pairs of a value and its label. A chosen value that is missing is added.

    Following the link of a chip chooses its value, or removes it if it is chosen.
    """
    pairs = dict(values)
    chosen = query.get(name, "")
    if chosen and chosen not in pairs:
        pairs = {chosen: chosen} | pairs
    chips = []
    for value, text in pairs.items():
        others = {key: kept for key, kept in query.items() if key != name}
        address = page_url(path, **others, **({} if value == chosen else {name: value}))
        chips.append({"label": text, "url": address, "chosen": value == chosen})
    return {"label": label, "chips": chips}
