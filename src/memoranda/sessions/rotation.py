"""Going on in a new session: a compressed conversation ends one session and begins its child, in one transaction.

The child's context is the parent's, made shorter: messages that are repeated, which are rows that only refer, and a
summary of the rest. Nothing is deleted and nothing is stored twice. Whoever compresses holds a lease meanwhile, so that
a second one does not pay a model for nothing; that there is one child at most does not depend on it.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from memoranda.db.sqlite import Connection
from memoranda.errors import SessionError
from memoranda.sessions.copies import SAME
from memoranda.sessions.lifecycle import Lifecycle, insert_session
from memoranda.sessions.message_rows import WRITTEN, Message, as_chat, decode_json, dump_json, encode, require_storable
from memoranda.sessions.messages import Messages, insert, recount
from memoranda.sessions.scope import Scope
from memoranda.sessions.store_part import count_redactions
from memoranda.sessions.titles import LONGEST, claim_title, next_title
from memoranda.support.shorten import shorten_end

# What a session has from the one that it comes from.
_INHERITED = ("source", "user_id", "model", "model_config", "billing_provider", "billing_base_url", "billing_mode",
              "archived", "project", "extra")  # fmt: skip


class LiveMessage(NamedTuple):
    """A message in a session's context as chat APIs take it, and what the store knows of it."""

    id: int
    message: Message
    original_id: int = 0
    """The message that it repeats, by which it is found and scrolled to; 0 when it repeats none."""
    is_summary: bool = False

    @property
    def said_as(self) -> int:
        """The id under which the message was said first."""
        return self.original_id or self.id


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A message of the old context in the new one: as it is, or in other words, such as output cut short."""

    message_id: int
    replacement: Message | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands in the new context for messages that are not repeated."""

    text: str


ContextItem = KeptMessage | Summary


@dataclass(frozen=True, slots=True)
class Rotated:
    """The conversation goes on in `session_id`, whose context has the rows `message_ids`."""

    session_id: str
    title: str | None
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotRotated:
    """Nothing has changed: it goes on in `successor` already, or the context is not the one that was compressed."""

    reason: Literal["rotated", "changed"]
    successor: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Leave to compress a session, until a moment in seconds since 1970."""

    session_id: str
    holder: str
    until: float


@dataclass(frozen=True, slots=True)
class NoLease:
    """Somebody else is compressing the session, or has done so; then it goes on in `successor`."""

    reason: Literal["busy", "rotated"]
    successor: str | None = None


class Rotation(Lifecycle, Messages):
    """Compressed conversations going on."""

    def live_context(self, session_id: str) -> list[LiveMessage]:
        """The context of a session, in order, as compression needs it."""
        return [
            LiveMessage(message["id"], as_chat(message), message["copy_of"] or 0, bool(message["is_summary"]))
            for message in self.get_messages(session_id)
        ]

    def take_compression_lease(
        self,
        session_id: str,
        holder: str,
        seconds: float = 300.0,
        *,
        is_gone: Callable[[str], bool] = lambda holder: False,
    ) -> Lease | NoLease:
        """Ask for leave to compress; a lease runs out by itself, so that a killed process holds up nobody for long.

        `is_gone` says of another holder that it is known to have ended: then its lease counts no more.
        """
        now = time.time()
        with self._db.writing() as connection:
            self._require(connection, session_id)
            successor = _column(connection, session_id, "successor_id")
            if successor is not None:
                return NoLease("rotated", successor)
            held = _read_lease(connection, session_id)
            if held is not None and held.holder != holder and now < held.until and not is_gone(held.holder):
                return NoLease("busy")
            lease = Lease(session_id, holder, now + seconds)
            _write_meta(connection, _lease_key(session_id), json.dumps([holder, lease.until]))
            return lease

    def release_compression_lease(self, lease: Lease) -> None:
        """Give a lease back, unless somebody else has taken it since."""
        with self._db.writing() as connection:
            held = _read_lease(connection, lease.session_id)
            if held is not None and held.holder == lease.holder:
                _drop_lease(connection, lease.session_id)

    def rotate_session(
        self,
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
        """End a session as compressed and begin its continuation with `context`: all of it or nothing.

        `last_seen` is the last message of the context that was compressed. When the session has another one by now,
        or has been continued by somebody else, nothing changes. What is not given is as it was in the old session, and
        so are its other fields but for those in `extra`.
        """
        given = {"system_prompt": system_prompt, "model": model, "model_config": model_config, "extra": extra or None}
        clean, redacted = self._redact({name: value for name, value in given.items() if value is not None})
        if model_config is not None:
            clean["model_config"] = dump_json(clean["model_config"])
        for name in ("system_prompt", "model"):
            require_storable(name, clean.get(name))
        with self._db.writing() as connection:
            self._require(connection, session_id)
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
            # Whatever ended it before, it was taken up again since.
            connection.execute(
                "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?", (time.time(), session_id)
            )
            ids = []
            for item in context:
                row, count = self._row(connection, live, item)
                redacted += count
                ids.append(insert(connection, new_id, row)[0])
            # What repeats a message that another program has deleted is a record of its own.
            recount(connection, new_id)
            title = _pass_title_on(connection, session_id, new_id, self._scope)
            _drop_lease(connection, session_id)
            count_redactions(connection, redacted)
        return Rotated(new_id, title, tuple(ids))

    def branch_session(self, session_id: str, new_id: str, title: str | None = None) -> Rotated:
        """Begin another way on from a session as it stands: a branch with the same context and the same prompt."""
        clean, redacted = self._redact(title)
        with self._db.writing() as connection:
            self._require(connection, session_id)
            _require_free(connection, new_id)
            prompt = {"system_prompt": _column(connection, session_id, "system_prompt")}
            self._begin_from(connection, session_id, new_id, "branch", prompt)
            ids = [
                insert(connection, new_id, _same_again(connection, number))[0]
                for number in sorted(_live_rows(connection, session_id))
            ]
            recount(connection, new_id)
            if clean:
                claim_title(connection, new_id, clean)
            else:
                # Not only a number, which stands for the same conversation after compression.
                clean = _pass_title_on(connection, session_id, new_id, self._scope, " (branch)")
            count_redactions(connection, redacted)
        return Rotated(new_id, clean, tuple(ids))

    def compression_notes(self, session_id: str) -> str | None:
        """What was noted about compressing this conversation; it is the same in all sessions of it."""
        with self._db.reading() as connection:
            self._require(connection, session_id)
            row = connection.execute(
                "SELECT value FROM state_meta WHERE key = ?", (_notes_key(connection, session_id),)
            ).fetchone()
        return None if row is None else row[0]

    def note_compression(self, session_id: str, notes: str) -> None:
        """Keep something about compressing this conversation, across restarts and continuations."""
        with self._db.writing() as connection:
            self._require(connection, session_id)
            _write_meta(connection, _notes_key(connection, session_id), notes)

    def _begin_from(
        self, connection: Connection, session_id: str, new_id: str, relation: str, given: Mapping[str, Any]
    ) -> None:
        """Make the row of a session that comes from another one, with its settings where none are given."""
        now = time.time()
        values = connection.execute(
            f"SELECT {', '.join(_INHERITED)} FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        row = {**dict(zip(_INHERITED, values, strict=True)), **given}
        row |= {"id": new_id, "started_at": now}
        insert_session(connection, row | self._lineage(connection, new_id, row["source"], session_id, relation))

    def _row(self, connection: Connection, live: Mapping[int, float], item: ContextItem) -> tuple[list[Any], int]:
        """The row of one part of the new context, and how many secrets were taken out of it."""
        if isinstance(item, Summary):
            clean, count = self._redact(item.text)
            return encode({"role": "user", "content": clean, "is_summary": True}), count
        if item.message_id not in live:
            raise SessionError(f"Message {item.message_id} is not in the context that is to be continued.")
        if item.replacement is None:
            return _same_again(connection, item.message_id), 0
        message, count = self._redact_message(item.replacement)
        said_at = live[item.message_id]
        return encode({**message, "copy_of": item.message_id, "timestamp": said_at}), count


def drop_compression_state(connection: Connection, session_id: str) -> None:
    """Forget the lease and the notes of a session that is deleted."""
    _drop_lease(connection, session_id)
    connection.execute("DELETE FROM state_meta WHERE key = ?", (f"compression_notes:{session_id}",))


def _same_again(connection: Connection, message_id: int) -> list[Any]:
    """The row that repeats a live one: it refers to what was said, or has the same few words in its place."""
    names = [name for name in WRITTEN if name != "external_id"]
    values = connection.execute(f"SELECT {', '.join(names)} FROM messages WHERE id = ?", (message_id,)).fetchone()
    found = dict(zip(names, values, strict=True))
    if found["copy_of"] is None and not found["is_summary"]:
        found = {"role": found["role"], "timestamp": found["timestamp"], "content_format": SAME, "copy_of": message_id}
    elif found["is_summary"]:
        found["copy_of"] = None
    return [found.get(name) for name in WRITTEN]


def _live_rows(connection: Connection, session_id: str) -> dict[int, float]:
    rows = connection.execute("SELECT id, timestamp FROM messages WHERE session_id = ? AND active = 1", (session_id,))
    return dict(rows.fetchall())


def _pass_title_on(
    connection: Connection, session_id: str, new_id: str, scope: Scope, addition: str = ""
) -> str | None:
    title = _column(connection, session_id, "title")
    if title is None:
        return None
    wanted = title if title.endswith(addition) else shorten_end(title, LONGEST - len(addition)) + addition
    numbered = next_title(connection, wanted, scope)
    claim_title(connection, new_id, numbered)
    return numbered


def _require_free(connection: Connection, session_id: str) -> None:
    if not session_id or connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone():
        raise SessionError(f"The session id {session_id!r} is taken or empty; a continuation needs one of its own.")


def _column(connection: Connection, session_id: str, name: str) -> Any:
    return connection.execute(f"SELECT {name} FROM sessions WHERE id = ?", (session_id,)).fetchone()[0]


def _lease_key(session_id: str) -> str:
    return f"compression_lease:{session_id}"


def _notes_key(connection: Connection, session_id: str) -> str:
    return f"compression_notes:{_column(connection, session_id, 'conversation_id')}"


def _read_lease(connection: Connection, session_id: str) -> Lease | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (_lease_key(session_id),)).fetchone()
    if row is None:
        return None
    try:
        holder, until = json.loads(row[0])
        return Lease(session_id, str(holder), float(until))
    except (TypeError, ValueError):
        # Not written by us; it holds up nobody.
        return None


def _drop_lease(connection: Connection, session_id: str) -> None:
    connection.execute("DELETE FROM state_meta WHERE key = ?", (_lease_key(session_id),))


def _write_meta(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
