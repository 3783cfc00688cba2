"""Continues a compressed conversation in a new session: one transaction ends a session and creates its continuation.

The context of the continuation is a shorter form of the old one: copies of some messages and a summary of the rest.
Nothing is deleted and nothing is stored twice. The process that compresses holds a lease, so that a second one does not
pay a model for the same work; that a session has at most one continuation does not depend on the lease.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from memoranda.errors import SessionError
from memoranda.memory.record.checksums import find_damaged, mark_damaged
from memoranda.memory.record.copies import JOIN_ORIGINAL, SAME, read_columns
from memoranda.memory.record.message_rows import (
    WRITTEN,
    Message,
    as_chat,
    decode_content,
    decode_json,
    dump_json,
    encode,
    recount,
    require_storable,
)
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.sessions import MAX_TITLE_CHARS, Sessions, Titles, copy_todos, drop_todos, insert_session
from memoranda.memory.record.store_part import StoredName, StorePart, count_redactions
from memoranda.memory.record.system_prompts import PROMPT
from memoranda.storage.connection import Connection
from memoranda.storage.engine import readable_rows
from memoranda.storage.state_meta import drop_meta, read_meta, write_meta
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end

# The columns that a session inherits from the one it continues or branches from.
_INHERITED = ("source", "user_id", "model", "model_config", "billing_provider", "billing_base_url", "billing_mode",
              "archived", "project", "extra")  # fmt: skip
_SPOKEN = ("id", "role", "is_summary", "copy_of", "external_id", "tool_call_id", "tool_name", "tool_calls", "content",
           "content_format")  # fmt: skip
# The keys of what is stored with a whole conversation.
_NOTES = "compression_notes"
REPLACED = "replaced_messages"
"""The kind of the note about the last replacement of a session's messages."""


class LiveMessage(NamedTuple):
    """A message in a session's context in the form of chat APIs, with what the store knows about it."""

    id: int
    message: Message
    original_id: int = 0
    """The id of the original, which search and scrolling use; 0 if the message is not a copy."""
    is_summary: bool = False

    @property
    def recorded_id(self) -> int:
        """The id of the original, or of the message itself."""
        return self.original_id or self.id


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A message of the old context in the new one: unchanged, or replaced by shorter text."""

    message_id: int
    replacement: Message | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The text that replaces all messages that the new context omits."""

    text: str


ContextItem = KeptMessage | Summary


@dataclass(frozen=True, slots=True)
class Rotated:
    """The conversation continues in `session_id`; its context has the rows `message_ids`."""

    session_id: str
    title: str | None
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotRotated:
    """Nothing changed: the session already continues in `successor`, or its context is not the compressed one."""

    reason: Literal["rotated", "changed"]
    successor: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Permission to compress a session, until a timestamp in seconds since 1970."""

    session_id: str
    holder: str
    until: float


@dataclass(frozen=True, slots=True)
class NoLease:
    """Another process is compressing the session (busy), or has done so (rotated, continued in `successor`)."""

    reason: Literal["busy", "rotated"]
    successor: str | None = None


class Rotation(StorePart):
    """Leases for compression, continuations and branches."""

    def __init__(self, sessions: Sessions, messages: Messages, titles: Titles) -> None:
        super().__init__(*messages.common)
        self._sessions = sessions
        self._messages = messages
        self._titles = titles

    def live_context(self, session_id: str) -> list[LiveMessage]:
        """The context of a session, in order."""
        return [
            LiveMessage(message["id"], as_chat(message), message["copy_of"] or 0, bool(message["is_summary"]))
            for message in self._messages.get_messages(session_id)
        ]

    def spoken_context(self, session_id: str, after: int, limit: int) -> list[Message]:
        """The newest messages of a context after one of them, in order, with only who said what: quick to read."""
        statement = (
            f"SELECT {read_columns(_SPOKEN)} FROM messages m JOIN sessions ON sessions.id = m.session_id"
            f" {JOIN_ORIGINAL} WHERE {self._in_scope} AND m.session_id = ? AND m.id > ? AND m.active = 1"
            " ORDER BY m.id DESC LIMIT ?"
        )
        (rows,) = self._read_at_once((statement, (*self._scope.values, self._stored_name(session_id), after, limit)))
        return [
            dict(zip(_SPOKEN, row, strict=True))
            | {"content": decode_content(*row[-2:]), "tool_calls": row[-3] and decode_json(row[-3])}
            for row in reversed(rows)
        ]

    def take_compression_lease(
        self,
        session_id: str,
        holder: str,
        seconds: float = 300.0,
        *,
        is_gone: Callable[[str], bool] = lambda holder: False,
    ) -> Lease | NoLease:
        """Ask for the lease to compress a session; it expires by itself, in case its holder was killed.

        `is_gone` says whether another holder has certainly ended; then its lease no longer counts.
        """
        session_id = self._stored_name(session_id)
        holder = self._stored_name(holder)
        now = time.time()
        with self._changing(session_id) as connection:
            successor = _column(connection, session_id, "successor_id")
            if successor is not None:
                return NoLease("rotated", successor)
            current = _read_lease(connection, session_id)
            if current is not None and current.holder != holder and now < current.until and not is_gone(current.holder):
                return NoLease("busy")
            lease = Lease(session_id, holder, now + seconds)
            write_meta(connection, _lease_key(session_id), json.dumps([holder, lease.until]))
            return lease

    def release_compression_lease(self, lease: Lease) -> None:
        """Release a lease, unless another holder has it by now."""
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, lease.session_id)
            current = _read_lease(connection, lease.session_id)
            if current is not None and current.holder == lease.holder:
                _drop_lease(connection, lease.session_id)

    def rotate_session(
        self,
        /,
        session_id: str,
        new_id: str,
        context: Sequence[ContextItem],
        *,
        last_seen: int,
        system_prompt: str | None = None,
        model: str | None = None,
        model_config: Mapping[str, Any] | None = None,
        **extra: Any,
    ) -> Rotated | NotRotated:
        """End a session as compressed and create its continuation with `context`: all of it or nothing.

        `last_seen` is the last message of the context that was compressed. Nothing changes if the session has a newer
        message or a continuation by now. The new session inherits fields that are None, and other fields except those
        in `extra`, from the old one.
        """
        session_id = self._stored_name(session_id)
        new_id = self._stored_name(new_id)
        fields = {"system_prompt": system_prompt, "model": model, "model_config": model_config, "extra": extra or None}
        clean, redacted = self._redact({name: value for name, value in fields.items() if value is not None})
        if model_config is not None:
            clean["model_config"] = dump_json(clean["model_config"])
        for name in ("system_prompt", "model"):
            require_storable(name, clean.get(name))
        with self._changing(session_id) as connection:
            _require_free(connection, new_id)
            successor = _column(connection, session_id, "successor_id")
            if successor is not None:
                return NotRotated("rotated", successor)
            live = _live_rows(connection, session_id)
            if max(live, default=0) != last_seen:
                return NotRotated("changed")
            if extra:
                before = decode_json(_column(connection, session_id, "extra") or "{}")
                clean["extra"] = dump_json({**before, **clean["extra"]})
            self._begin_from(connection, session_id, new_id, "compression", clean)
            # The session may have ended before for another reason and been resumed since.
            connection.execute(
                "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?", (time.time(), session_id)
            )
            ids = []
            for item in context:
                row, count = self._row(connection, live, item)
                redacted += count
                ids.append(self._messages.insert(connection, new_id, row)[0])
            # A copy of a message that another program deleted counts as an original.
            recount(connection, new_id)
            title = self._inherit_title(connection, session_id, new_id)
            _drop_lease(connection, session_id)
            count_redactions(connection, redacted)
        return Rotated(new_id, title, tuple(ids))

    def branch_session(self, session_id: str, new_id: str, title: str | None = None) -> Rotated:
        """Create a branch of a session with the same context and the same prompt."""
        session_id = self._stored_name(session_id)
        new_id = self._stored_name(new_id)
        clean, redacted = self._redact(title)
        with self._changing(session_id) as connection:
            _require_free(connection, new_id)
            prompt = {"system_prompt": _column(connection, session_id, PROMPT)}
            self._begin_from(connection, session_id, new_id, "branch", prompt)
            ids = [
                self._messages.insert(connection, new_id, _copy_row(connection, message_id))[0]
                for message_id in sorted(_live_rows(connection, session_id))
            ]
            recount(connection, new_id)
            copy_todos(connection, session_id, new_id)
            if clean:
                self._titles.claim_title(connection, new_id, clean)
            else:
                # A number alone would suggest the same conversation after compression.
                clean = self._inherit_title(connection, session_id, new_id, " (branch)")
            count_redactions(connection, redacted)
        return Rotated(new_id, clean, tuple(ids))

    def compression_notes(self, session_id: str) -> str | None:
        """The notes about compressing this conversation; all its sessions share them."""
        session_id = self._stored_name(session_id)
        with self._engine.reading() as connection:
            self._require(connection, session_id)
            return read_meta(connection, _notes_key(connection, session_id))

    def note_compression(self, session_id: str, notes: str) -> None:
        """Store notes about compressing this conversation, across restarts and continuations."""
        session_id = self._stored_name(session_id)
        notes, redacted = self._redact(notes)
        with self._changing(session_id) as connection:
            write_meta(connection, _notes_key(connection, session_id), notes)
            count_redactions(connection, redacted)

    def _begin_from(
        self,
        connection: Connection,
        session_id: StoredName,
        new_id: StoredName,
        relation: str,
        fields: Mapping[str, Any],
    ) -> None:
        """Insert a session that continues or branches from another one, with its settings or those in `fields`."""
        now = time.time()
        values = connection.execute(
            f"SELECT {', '.join(_INHERITED)} FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        row = {**dict(zip(_INHERITED, values, strict=True)), **fields}
        row |= {"id": new_id, "started_at": now}
        links = self._sessions.lineage_columns(connection, new_id, row["source"], session_id, relation)
        insert_session(self._engine, connection, row | links)

    def _row(self, connection: Connection, live: Mapping[int, float], item: ContextItem) -> tuple[list[Any], int]:
        """The row for one item of the new context, and how many secrets were removed from it."""
        if isinstance(item, Summary):
            clean, count = self._redact(item.text)
            return encode({"role": "user", "content": clean, "is_summary": True}), count
        if item.message_id not in live:
            raise SessionError(f"Message {item.message_id} is not in the context of the session to continue.")
        if item.replacement is None:
            return _copy_row(connection, item.message_id), 0
        message, count = self._messages.redact_fields(item.replacement)
        return encode({**message, "copy_of": item.message_id, "timestamp": live[item.message_id]}), count

    def _inherit_title(
        self, connection: Connection, session_id: StoredName, new_id: StoredName, addition: str = ""
    ) -> str | None:
        title = _column(connection, session_id, "title")
        if title is None:
            return None
        if not title.endswith(addition):
            title = shorten_end(title, MAX_TITLE_CHARS - len(addition)) + addition
        numbered = self._titles.next_title(connection, title)
        self._titles.claim_title(connection, new_id, numbered)
        return numbered


def drop_compression_state(connection: Connection, session_id: str) -> None:
    """Remove the lease, the notes, the tasks and the last replacement of a session that is deleted."""
    _drop_lease(connection, session_id)
    drop_todos(connection, session_id)
    for kind in (_NOTES, REPLACED):
        drop_meta(connection, f"{kind}:{session_id}")


def _copy_row(connection: Connection, message_id: int) -> list[Any]:
    """The row that copies an active message; a shortened copy and a summary keep their own text."""
    names = [name for name in WRITTEN if name != "external_id"]
    (values,) = readable_rows(connection, f"SELECT {', '.join(names)} FROM messages WHERE id = ?", (message_id,))
    found = dict(zip(names, values, strict=True))
    if found["copy_of"] is None and not found["is_summary"]:
        found = {"role": found["role"], "timestamp": found["timestamp"], "content_format": SAME, "copy_of": message_id}
        return [found.get(name) for name in WRITTEN]
    if found["is_summary"]:
        found["copy_of"] = None
    if find_damaged(connection, [message_id]):
        found["extra"] = mark_damaged(found["extra"])
    return [found.get(name) for name in WRITTEN]


def _live_rows(connection: Connection, session_id: str) -> dict[int, float]:
    rows = connection.execute("SELECT id, timestamp FROM messages WHERE session_id = ? AND active = 1", (session_id,))
    return dict(rows.fetchall())


def _require_free(connection: Connection, session_id: str) -> None:
    if not session_id or connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone():
        raise SessionError(f"The session id {session_id!r} is taken or empty; a continuation needs a new id.")


def _column(connection: Connection, session_id: str, name: str) -> Any:
    return connection.execute(f"SELECT {name} FROM sessions WHERE id = ?", (session_id,)).fetchone()[0]


def _lease_key(session_id: str) -> str:
    return f"compression_lease:{session_id}"


def _notes_key(connection: Connection, session_id: str) -> str:
    return f"{_NOTES}:{_column(connection, session_id, 'conversation_id')}"


def _read_lease(connection: Connection, session_id: str) -> Lease | None:
    stored = read_meta(connection, _lease_key(session_id))
    if stored is None:
        return None
    try:
        holder, until = json.loads(stored)
        return Lease(session_id, str(holder), float(until))
    except (TypeError, ValueError):
        # Another program wrote it, so it is not a lease.
        return None


def _drop_lease(connection: Connection, session_id: str) -> None:
    drop_meta(connection, _lease_key(session_id))
