"""Removes what an import added to the record, except where the user has changed something since.

A session from which nothing of the import may be removed stays whole, and the answer says why. A removed session is not
remembered as deleted: it was never the user's, and another import may bring it again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from memoranda.memory.record.deletion import delete_row
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import REDACTED, decode_json, recount, retire_message_ids
from memoranda.memory.record.passages import FORGOTTEN
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.support.text_matcher import MARK

Reason = Literal["missing", "continued", "later_import", "branched", "renamed", "reopened", "edited"]


@dataclass(frozen=True, slots=True)
class AddedMessages:
    """The messages that an import added to a session: those with an external id from `first` to `last`.

    `other_ranges` are those of other imports in the same session. `title` and `model` are the values before the import,
    `imported_title` is the one that the import set.
    """

    session_id: str
    first: int
    last: int
    other_ranges: Sequence[tuple[int, int]] = ()
    title: str | None = None
    model: str | None = None
    imported_title: str | None = None


@dataclass(frozen=True, slots=True)
class UndoneSession:
    """What is, or would be, removed from a session; with a `reason` it stays as it is."""

    session_id: str
    title: str | None = None
    messages: int = 0
    whole: bool = False
    reason: Reason | None = None


class ImportedRange(NamedTuple):
    """The lowest and the highest id of messages in a session, and the user of the session."""

    first: int
    last: int
    user: str | None


class ImportUndo(StorePart):
    """Removes the messages of imports in the sessions of one scope."""

    def imported_ranges(self, after_message: int, sources: Collection[str]) -> dict[str, ImportedRange]:
        """The imported messages after an id, by session, for sessions of these sources."""
        with self._engine.reading() as connection:
            rows = connection.execute(
                "SELECT m.session_id, min(m.id), max(m.id), max(sessions.user_id), max(sessions.extra) FROM messages m"
                " JOIN sessions ON sessions.id = m.session_id"
                f" WHERE m.id > ? AND m.external_id IS NOT NULL AND {self._in_scope} GROUP BY m.session_id",
                (after_message, *self._scope.values),
            ).fetchall()
        return {
            session_id: ImportedRange(first, last, user)
            for session_id, first, last, user, extra in rows
            if extra and decode_json(extra).get("host") in sources
        }

    def preview(self, added: Sequence[AddedMessages]) -> list[UndoneSession]:
        """What `remove` would do, session by session."""
        removed: set[str] = set()
        found = []
        with self._engine.reading() as connection:
            for part in added:
                found.append(self._inspect(connection, part, removed))
                removed |= {part.session_id} if found[-1].whole and found[-1].reason is None else set()
        return found

    def remove(self, added: Sequence[AddedMessages]) -> list[UndoneSession]:
        """Remove the messages, each session in one transaction; sessions without other messages are deleted.

        Branches come before the sessions that they branch from.
        """
        done = []
        for part in added:
            with self._engine.writing() as connection:
                self._engine.lock_session(connection, part.session_id)
                found = self._inspect(connection, part, ())
                if found.reason is None:
                    # As for a deletion: sessions of other users may link to this one.
                    with self._engine.across_users(connection):
                        _remove(connection, part, found)
            done.append(found)
        if any(found.messages for found in done):
            self._engine.shrink_log()
        return done

    def _inspect(self, connection: Connection, part: AddedMessages, removed: Collection[str]) -> UndoneSession:
        row = connection.execute(
            f"SELECT title, ended_at, extra FROM sessions WHERE id = ? AND {self._in_scope}",
            (part.session_id, *self._scope.values),
        ).fetchone()
        if row is None:
            return UndoneSession(part.session_id, reason="missing")
        title, ended_at, extra = row
        ids = (part.session_id, part.first, part.last)
        own, total = connection.execute(
            "SELECT COALESCE(sum(CASE WHEN id BETWEEN ? AND ? AND external_id IS NOT NULL THEN 1 ELSE 0 END), 0),"
            " count(*) FROM messages WHERE session_id = ?",
            (part.first, part.last, part.session_id),
        ).fetchone()
        reason: Reason | None = None
        if title != part.imported_title:
            reason = "renamed"
        elif ended_at is None:
            reason = "reopened"
        elif FORGOTTEN in (decode_json(extra) if extra else {}) or _is_edited(connection, ids):
            reason = "edited"
        else:
            reason = self._later_messages(connection, part) or self._descendants(connection, part, removed)
        return UndoneSession(part.session_id, title, 0 if reason else own, own == total, reason)

    def _later_messages(self, connection: Connection, part: AddedMessages) -> Reason | None:
        """Why messages after the part keep the session: the user wrote them, or another import added them."""
        rows = connection.execute(
            "SELECT id, external_id FROM messages WHERE session_id = ? AND id > ? AND (id > ? OR external_id IS NULL)",
            (part.session_id, part.first, part.last),
        ).fetchall()
        if any(not _is_in(number, part.other_ranges) or name is None for number, name in rows):
            return "continued"
        return "later_import" if rows else None

    def _descendants(self, connection: Connection, part: AddedMessages, removed: Collection[str]) -> Reason | None:
        rows = connection.execute(
            "SELECT id FROM sessions WHERE parent_session_id = ?"
            " UNION SELECT successor_id FROM sessions WHERE id = ? AND successor_id IS NOT NULL"
            " UNION SELECT m.session_id FROM messages m JOIN messages original ON original.id = m.copy_of"
            "  WHERE original.session_id = ? AND m.session_id <> ? AND original.id BETWEEN ? AND ?",
            (part.session_id,) * 4 + (part.first, part.last),
        ).fetchall()
        return "branched" if any(name not in removed for (name,) in rows) else None


def _is_in(number: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= number <= last for first, last in ranges)


def _is_edited(connection: Connection, ids: tuple[Any, ...]) -> bool:
    """Whether a message was rewound or redacted here, or a text in it was forgotten: an import would restore it."""
    row = connection.execute(
        "SELECT 1 FROM messages WHERE session_id = ? AND id BETWEEN ? AND ? AND (rewound > 0 OR rewound < 0"
        " OR extra LIKE ? OR extra LIKE ? OR content LIKE ? OR tool_calls LIKE ? OR reasoning LIKE ?) LIMIT 1",
        (*ids, f'%"{REDACTED}":%', *(f"%{MARK}%",) * 4),
    ).fetchone()
    return row is not None


def _remove(connection: Connection, part: AddedMessages, found: UndoneSession) -> None:
    if found.whole:
        delete_row(connection, part.session_id, remember=False)
        return
    retire_message_ids(connection)
    connection.execute(
        "DELETE FROM messages WHERE session_id = ? AND id BETWEEN ? AND ? AND external_id IS NOT NULL",
        (part.session_id, part.first, part.last),
    )
    connection.execute(
        "UPDATE sessions SET title = ?, model = ? WHERE id = ?", (part.title, part.model, part.session_id)
    )
    recount(connection, part.session_id)
    note_change(connection, part.session_id, part.first)
