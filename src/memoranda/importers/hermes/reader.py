"""Reads the sessions of a Hermes home from its `state.db`, of any schema version, even while Hermes is running.

Each session is read separately and the database is closed in between, so that Hermes is never blocked. Message ids only
grow, so new messages have larger ids.

When Hermes compresses a conversation, it writes the remaining context once more: in the same session, after marking the
earlier rows as compacted, or at the start of a new session. It writes those rows together, so their timestamps are a
microsecond apart, or it copies the timestamps of the rows that they repeat. A row is a copy only if both are true: its
timestamp shows that compression wrote it, and an earlier row has the same content (or, for a shortened tool result, the
full content). The summary and other rewritten rows are marked as written by compression.
"""

import hashlib
import json
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
)
from memoranda.importers.source_databases import database_at, open_database, rows, tables
from memoranda.importers.source_files import item_at
from memoranda.memory.record.transfer.imports import MessageState
from memoranda.support.home import APPLICATION_ID
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_dataclass import dataclass

# Structured content is stored after this prefix.
_JSON_PREFIX = "\x00json:"
_JSON_COLUMNS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
# How the summaries start that Hermes writes in place of earlier messages.
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY", "[PRIOR CONTEXT")
# Its own bookkeeping; `api_content` is what was sent to the model, with recalled memories in it.
_EXCLUDED = frozenset({"id", "session_id", "active", "compacted", "api_content", "content", "observed"})
Row = Mapping[str, Any]
RowKind = Literal["original", "repetition", "summary"]
# Rows that were written together differ by this many seconds; separate commits take longer.
_MIN_GAP, _MAX_GAP = 1e-7, 5e-6
_HELPERS = ("subagent", "tool")
# Columns that the record also has, with the same meaning.
_TEXTS = (
    "source", "model", "system_prompt", "end_reason", "billing_provider", "billing_base_url", "billing_mode",
    "cost_status", "cost_source", "pricing_version",
)  # fmt: skip
_NUMBERS = (
    "ended_at", "archived", "rewind_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "api_call_count", "estimated_cost_usd", "actual_cost_usd",
)  # fmt: skip
# Columns with a field of their own, and the counts, which the record computes itself.
_OTHERS = ("id", "user_id", "model_config", "title", "cwd", "started_at", "parent_session_id", "message_count",
           "tool_call_count")  # fmt: skip
# Columns about a gateway's chat, and the facts of a session that mean the same.
_GATEWAY = {
    "chat_id": "chat_id",
    "chat_type": "chat_type",
    "thread_id": "thread_id",
    "session_key": "gateway_session_key",
}
_WITH_COLUMN = frozenset((*_TEXTS, *_NUMBERS, *_OTHERS))
_FILE_NAME = "state.db"
_LABEL = "sessions"
_OWN_APPLICATION_ID = int.from_bytes(APPLICATION_ID, "big")
_ROWS_PER_QUERY = 200
# A title is often set after the first messages, so the latest sessions are read again.
_MAX_LATEST = 200


@dataclass(frozen=True, slots=True)
class SessionNode:
    id: str
    parent: str | None
    started_at: float


@dataclass(frozen=True, slots=True)
class ClassifiedRow:
    """A row, its external id, and whether it is original, a repetition, or a summary."""

    row: Row
    external_id: str
    kind: RowKind
    original: tuple[str, str] | None = None
    """The row that it repeats, by session and external id."""


@dataclass(slots=True)
class EarlierRows:
    """What precedes a row: contents and answered calls, each with its first row, and roles with timestamps."""

    contents: dict[bytes, tuple[str, str]] = field(default_factory=dict)
    timestamps: set[tuple[Any, Any]] = field(default_factory=set)
    answered_calls: dict[str, tuple[str, str]] = field(default_factory=dict)

    def learn(self, row: Row, content: bytes, name: tuple[str, str]) -> None:
        self.contents.setdefault(content, name)
        self.timestamps.add((row.get("role"), row.get("timestamp")))
        if row.get("role") == "tool" and isinstance(row.get("tool_call_id"), str):
            self.answered_calls.setdefault(row["tool_call_id"], name)

    def original_of(self, row: Row, content: bytes) -> tuple[str, str] | None:
        """Return the row with the same content, or the full result of which this one is shortened."""
        found = self.contents.get(content)
        if found is None and row.get("role") == "tool" and isinstance(row.get("tool_call_id"), str):
            found = self.answered_calls.get(row["tool_call_id"])
        return found


class ExternalIds:
    """Names the rows of a session by content and time, because some versions of Hermes rewrite rows with other ids."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._times: dict[bytes, int] = {}

    def name(self, row: Row, content: bytes) -> tuple[str, str]:
        """Return session and external id of the next row; equal rows are numbered, so their order matters."""
        content_and_time = fingerprint(content, row.get("timestamp"))
        times = self._times[content_and_time] = self._times.get(content_and_time, 0) + 1
        external_id = f"{self._session_id}/{content_and_time.hex()}" + (f"/{times}" if times > 1 else "")
        return self._session_id, external_id


class Hermes:
    name = "hermes"

    def __init__(self, session_id: str | None = None) -> None:
        """`session_id` limits the reading to one session, for the capture of a single turn."""
        self._session_id = session_id

    def session_items(self, database: Path) -> Sequence[ImportItem]:
        """Return the one session in a database as an item of its own; none when the database is missing."""
        found = database_at(database, f"session {self._session_id}")
        return [found] if found else []

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the database of a home and those of its profiles, or the database at the path."""
        if path is not None and item_at(path, "") is not None:
            named = database_at(path, _LABEL)
            return [named] if named else []
        home = path or Path.home() / ".hermes"
        try:
            profiles = sorted(path for path in (home / "profiles").iterdir() if path.is_dir())
        except OSError:
            profiles = []
        found = [database_at(root / _FILE_NAME, _LABEL) for root in (home, *profiles)]
        return [item for item in found if item is not None]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield every session with its messages, or what is new since the checkpoint."""
        with open_database(item.file) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] == _OWN_APPLICATION_ID:
                yield Problem(item.file, None, "this is Memoranda's own record, not one of Hermes")
                return
            columns = tables(connection)
            if "id" not in columns.get("sessions", ()) or "session_id" not in columns.get("messages", ()):
                yield Problem(item.file, None, "this is not a session database of Hermes: no sessions or messages")
                return
            state = _State.restore(connection, item.checkpoint)
            known = session_nodes(connection, columns["sessions"])
            if self._session_id is None:
                wanted = _sessions_to_read(connection, known, state)
            else:
                wanted = [known[self._session_id]] if self._session_id in known else []
        for node in wanted:
            with open_database(item.file) as connection:
                yield from _HermesSession(connection, node, known, state).events()
        yield Checkpoint(0, 0, state.serialize())

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command; Hermes itself changes to the session's directory."""
        return f"hermes --resume {shlex.quote(host_id)}"


def content_fingerprint(row: Row) -> bytes:
    """Return a fingerprint of role, content and tool calls, which is the same wherever a message is repeated."""
    return fingerprint(row.get("role"), row.get("content"), row.get("tool_call_id"), row.get("tool_calls"))


def fingerprint(*values: Any) -> bytes:
    """Return a short digest of values; different values have different digests."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        raw = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else repr(value).encode()
        digest.update(b"%s %d\n" % (type(value).__name__.encode(), len(raw)))
        digest.update(raw)
    return digest.digest()


def is_summary(row: Row) -> bool:
    """Whether compression wrote a message, by how it starts."""
    content = row.get("content")
    return isinstance(content, str) and content.lstrip().startswith(_SUMMARIES)


def chat_message(row: Row, external_id: str, *, summary: bool) -> dict[str, Any]:
    """Return a row in chat form; columns of newer versions are kept by their names."""
    found: dict[str, Any] = {
        "role": row.get("role"),
        "content": _content(row.get("content")),
        "external_id": external_id,
    }
    for name, value in row.items():
        if name not in found and name not in _EXCLUDED and value is not None:
            found[name] = _parse_json(value) if name in _JSON_COLUMNS else _text(value)
    if "tool_calls" in found and not isinstance(found["tool_calls"], list):
        # Not what a chat API accepts as calls.
        found["stored_tool_calls"] = found.pop("tool_calls")
    if row.get("observed"):
        found["observed"] = True
    if summary:
        found["is_summary"] = True
    return found


def _content(stored: Any) -> Any:
    text = _text(stored)
    if isinstance(text, str) and text.startswith(_JSON_PREFIX):
        return _parse_json(text.removeprefix(_JSON_PREFIX))
    return str(text) if isinstance(text, int | float) else text


def _parse_json(stored: Any) -> Any:
    text = _text(stored)
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        # Hermes did not write this; keep it unchanged.
        return text


def _text(stored: Any) -> Any:
    return stored.decode("utf-8", "backslashreplace") if isinstance(stored, bytes) else stored


def classify_rows(rows: Iterable[Row], known: EarlierRows, ids: ExternalIds) -> Iterator[ClassifiedRow]:
    """Yield every row with its kind."""
    run: list[Row] = []
    for row in rows:
        if run and not _written_together(run[-1], row):
            yield from _classify_run(run, known, ids)
            run = []
        run.append(row)
    yield from _classify_run(run, known, ids)


def _classify_run(run: list[Row], known: EarlierRows, ids: ExternalIds) -> Iterator[ClassifiedRow]:
    contents = [content_fingerprint(row) for row in run]
    originals = [known.original_of(row, content) for row, content in zip(run, contents, strict=True)]
    together = len(run) > 1 and any(originals)
    names = []
    for row, content, original in zip(run, contents, originals, strict=True):
        kept_time = _is_exact(row.get("timestamp")) and (row.get("role"), row["timestamp"]) in known.timestamps
        kind: RowKind = "original"
        if original and (together or kept_time):
            kind = "repetition"
        elif together or kept_time or is_summary(row):
            kind = "summary"
        name = ids.name(row, content)
        yield ClassifiedRow(row, name[1], kind, original if kind == "repetition" else None)
        names.append(name)
    for row, content, name in zip(run, contents, names, strict=True):
        known.learn(row, content, name)


def _written_together(before: Row, row: Row) -> bool:
    one, other = before.get("timestamp"), row.get("timestamp")
    return isinstance(one, float) and isinstance(other, float) and _MIN_GAP < other - one < _MAX_GAP


def _is_exact(timestamp: Any) -> bool:
    """Whether two messages cannot share a timestamp by chance; chat platforms record whole seconds."""
    return isinstance(timestamp, float) and not timestamp.is_integer()


def session_nodes(connection: sqlite3.Connection, columns: set[str]) -> dict[str, SessionNode]:
    """Return every session, parents before their children, otherwise in the order in which they started."""
    names = ["id", *(name if name in columns else f"NULL AS {name}" for name in ("parent_session_id", "started_at"))]
    found: dict[str, SessionNode] = {}
    for name, parent, started in rows(connection, f"SELECT {', '.join(names)} FROM sessions"):
        if isinstance(name, str):
            found[name] = SessionNode(
                name, parent if isinstance(parent, str) else None, parse_timestamp(started) or 0.0
            )
    ordered = sorted(found.values(), key=lambda node: (node.started_at, node.id))
    ordered_nodes: dict[str, SessionNode] = {}
    for node in ordered:
        line: dict[str, SessionNode] = {}
        ancestor: SessionNode | None = node
        while ancestor is not None and ancestor.id not in ordered_nodes and ancestor.id not in line:
            line[ancestor.id] = ancestor
            ancestor = found.get(ancestor.parent) if ancestor.parent else None
        ordered_nodes |= dict(reversed(line.items()))
    return ordered_nodes


def conversation(
    row: Mapping[str, Any], parent_row: Mapping[str, Any] | None, user: str | None
) -> ImportedConversation:
    """Convert a row of the sessions table; columns that the record does not have become facts of the session."""
    title, directory = row.get("title"), row.get("cwd")
    parent = row.get("parent_session_id")
    return ImportedConversation(
        row["id"],
        title if isinstance(title, str) and title.strip() else None,
        row["model"] if isinstance(row.get("model"), str) else None,
        directory if isinstance(directory, str) and directory else None,
        parse_timestamp(row.get("started_at")),
        parent if isinstance(parent, str) else None,
        _relation(row, parent_row),
        extra={
            f"hermes_{name}": value
            for name, value in row.items()
            if name not in _WITH_COLUMN and value and not isinstance(value, bytes)
        }
        | _gateway_facts(row),
        columns=_columns(row, user),
    )


def _gateway_facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """The chat of a gateway's session, under the names that a provider receives when the session is resumed."""
    facts = {fact: str(row[name]) for name, fact in _GATEWAY.items() if row.get(name)}
    return {"gateway": {"platform": row["source"], **facts}} if facts and isinstance(row.get("source"), str) else {}


def _columns(row: Mapping[str, Any], user: str | None) -> dict[str, Any]:
    """Return the values for columns of the record; values of the wrong type are omitted."""
    found: dict[str, Any] = {name: row[name] for name in _TEXTS if isinstance(row.get(name), str) and row[name]}
    found |= {name: row[name] for name in _NUMBERS if isinstance(row.get(name), int | float)}
    settings = parse_object(row.get("model_config")) or {}
    # A session that only the messages table names has no source.
    found.setdefault("source", "hermes")
    return found | ({"model_config": settings} if settings else {}) | ({"user_id": user} if user else {})


def _relation(row: Mapping[str, Any], parent_row: Mapping[str, Any] | None) -> str | None:
    """Return the relation of a session to its parent: from marks in newer versions, else from how the parent ended."""
    if not isinstance(row.get("parent_session_id"), str):
        return None
    marks = parse_object(row.get("model_config")) or {}
    if "_delegate_from" in marks or row.get("source") in _HELPERS:
        return "delegation"
    if "_branched_from" in marks or parent_row is None:
        return "branch"
    return "compression" if parent_row.get("end_reason") == "compression" else "branch"


class _State:
    """How far a database was read: up to which message, which one is its first, and how many left the context."""

    def __init__(self, after: int, last: int, origin: str, inactive: dict[str, int]) -> None:
        """`inactive` are the numbers of inactive messages by session, as the last import found them."""
        self.after = after
        self._last = last
        self._origin = origin
        self._inactive_before = inactive
        self._inactive: dict[str, int] = {}

    @classmethod
    def restore(cls, connection: sqlite3.Connection, checkpoint: Checkpoint | None) -> "_State":
        first = connection.execute("SELECT id, session_id FROM messages ORDER BY id LIMIT 1").fetchone()
        last = connection.execute("SELECT max(id) FROM messages").fetchone()[0]
        origin, last = repr(first), last if isinstance(last, int) else 0
        kept = json.loads(checkpoint.state) if checkpoint and checkpoint.state else {}
        # Another database, or a restored older one, is read from its start.
        same = kept.get("origin") == origin and kept.get("last", 0) <= last
        return cls(kept["last"] if same else 0, last, origin, kept.get("inactive", {}) if same else {})

    def has_other_states(self, session_id: str, inactive: int) -> bool:
        """Whether messages were rewound, restored or compressed since the last import; remembers the new number."""
        if inactive:
            self._inactive[session_id] = inactive
        return inactive != self._inactive_before.get(session_id, 0)

    def serialize(self) -> str:
        return json.dumps({"last": self._last, "origin": self._origin, "inactive": self._inactive})


def _sessions_to_read(
    connection: sqlite3.Connection, known: dict[str, SessionNode], state: _State
) -> list[SessionNode]:
    """Return the sessions to read, in order; those that only the messages table names come last."""
    new = connection.execute("SELECT DISTINCT session_id FROM messages WHERE id > ?", (state.after,)).fetchall()
    names = {row[0] for row in new}
    latest = sorted(known.values(), key=lambda node: node.started_at)[-_MAX_LATEST:]
    names |= {node.id for node in latest}
    unlisted = [SessionNode(name, None, 0.0) for name in sorted(names - known.keys(), key=str)]
    return [*(node for node in known.values() if node.id in names), *unlisted]


class _HermesSession:
    def __init__(
        self, connection: sqlite3.Connection, node: SessionNode, known: Mapping[str, SessionNode], state: _State
    ) -> None:
        self._connection = connection
        self._node = node
        self._known = known
        self._state = state

    def events(self) -> Iterator[ReadEvent]:
        row = self._session_row(self._node.id) or {"id": str(self._node.id)}
        parent = self._session_row(self._node.parent) if self._node.parent else None
        imported = conversation(row, parent, self._user(row))
        yield imported
        message_ids = self._message_ids(self._node.id)
        # All states are passed on again if one has changed.
        changed = self._state.has_other_states(imported.host_id, self._inactive_count())
        after = 0 if changed else self._state.after
        if not message_ids or message_ids[-1] <= after:
            return
        ids = ExternalIds(imported.host_id)
        for found in classify_rows(self._message_rows(message_ids), self._earlier_rows(imported), ids):
            if found.row["id"] > after:
                message = chat_message(found.row, found.external_id, summary=found.kind == "summary")
                active, compacted = found.row.get("active") != 0, bool(found.row.get("compacted"))
                yield ImportedMessage(message, state=MessageState(active, compacted and not active, found.original))

    def _user(self, row: Row) -> str | None:
        """Return the user of a session; one without a user belongs to the user for whom its parent worked."""
        seen: set[str] = set()
        node: SessionNode | None = self._node
        while node is not None and node.id not in seen:
            seen.add(node.id)
            user = (row if node is self._node else self._session_row(node.id) or {}).get("user_id")
            if isinstance(user, str) and user:
                return user
            node = self._known.get(node.parent) if node.parent else None
        return None

    def _earlier_rows(self, imported: ImportedConversation) -> EarlierRows:
        """Return the rows of the session that this one continues or branches from."""
        known = EarlierRows()
        if self._node.parent and imported.relation != "delegation":
            ids = ExternalIds(self._node.parent)
            for row in self._message_rows(self._message_ids(self._node.parent)):
                content = content_fingerprint(row)
                known.learn(row, content, ids.name(row, content))
        return known

    def _inactive_count(self) -> int:
        names = {column[1] for column in self._connection.execute("PRAGMA table_info(messages)")}
        if "active" not in names:
            return 0
        found = self._connection.execute(
            "SELECT count(*) FROM messages WHERE session_id = ? AND active = 0", (self._node.id,)
        ).fetchone()
        return int(found[0])

    def _message_ids(self, session_id: Any) -> list[int]:
        found = self._connection.execute("SELECT id FROM messages WHERE session_id = ?", (session_id,))
        return sorted(row[0] for row in found)

    def _message_rows(self, message_ids: list[int]) -> Iterator[Row]:
        for start in range(0, len(message_ids), _ROWS_PER_QUERY):
            batch = message_ids[start : start + _ROWS_PER_QUERY]
            cursor = self._connection.execute(
                f"SELECT * FROM messages WHERE id IN ({', '.join('?' * len(batch))}) ORDER BY id", batch
            )
            names = [column[0] for column in cursor.description]
            yield from (dict(zip(names, row, strict=True)) for row in cursor)

    def _session_row(self, session_id: str) -> dict[str, Any] | None:
        cursor = self._connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,))
        names = [column[0] for column in cursor.description]
        found = cursor.fetchone()
        return None if found is None else dict(zip(names, found, strict=True))
