"""Deleting: one session, or those that are old; nothing is ever deleted without being asked for."""

import time
from collections.abc import Collection, Iterable
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.sessions.copies import release
from memoranda.sessions.feed import note_change
from memoranda.sessions.messages import delete_of, recount
from memoranda.sessions.rotation import drop_compression_state
from memoranda.sessions.store_part import StorePart

_DAY = 86_400
_SHOWN = ("id", "title", "source", "started_at", "last_active", "message_count", "conversation_id")
_AT_ONCE = 500


class Deletion(StorePart):
    """Deleted text is overwritten in the file, and whoever follows the store is told."""

    def delete_session(self, session_id: str) -> bool:
        """Delete a session, its messages and the work it delegated; False when there is none.

        What continued or branched from it stays and stands on its own.
        """
        return self.delete_sessions([session_id]) > 0

    def list_deletion(self, session_ids: Iterable[str]) -> list[dict[str, Any]]:
        """What `delete_sessions` would delete: those sessions and all work they delegated, each once."""
        with self._db.reading() as connection:
            return list(self._with_delegates(connection, session_ids).values())

    def delete_sessions(self, session_ids: Iterable[str]) -> int:
        """Delete several sessions and the work they delegated in one commit; how many sessions that were."""
        with self._db.writing() as connection:
            count = self._delete(connection, session_ids)
        if count:
            self._db.shrink_log()
        return count

    def deleted_sessions(self, session_ids: Iterable[str]) -> set[str]:
        """Those of the sessions that were deleted and have not come back; their names are all that is left of them."""
        names = list(session_ids)
        found: set[str] = set()
        with self._db.reading() as connection:
            for start in range(0, len(names), _AT_ONCE):
                some = names[start : start + _AT_ONCE]
                rows = connection.execute(
                    f"SELECT id FROM deleted_sessions WHERE id IN ({', '.join('?' * len(some))})"
                    " AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = deleted_sessions.id)",
                    some,
                )
                found |= {row[0] for row in rows}
        return found

    def list_prune_candidates(self, older_than_days: float = 90, source: str | None = None) -> list[dict[str, Any]]:
        """What `prune_sessions` would delete, delegated work included: id, title, source, started_at, message_count."""
        with self._db.reading() as connection:
            return self._candidates(connection, older_than_days, source)

    def prune_sessions(
        self, older_than_days: float = 90, source: str | None = None, *, among: Collection[str] | None = None
    ) -> int:
        """Delete ended sessions in which nothing was said for so many days, with the work they delegated; how many.

        One whose delegate has said something since stays, with everything that it did.
        `among` limits it to sessions that somebody has looked at; one that has come to life since stays.
        """
        with self._db.writing() as connection:
            found = [row["id"] for row in self._candidates(connection, older_than_days, source)]
            count = self._delete(connection, found if among is None else [each for each in found if each in among])
        if count:
            self._db.shrink_log()
        return count

    def empty_log(self) -> bool:
        """Whether deleted text has left the log as well; it stays there while another process reads."""
        return self._db.shrink_log()

    def vacuum(self) -> None:
        """Give the room of deleted messages back to the disk."""
        self._db.vacuum()

    def _candidates(self, connection: Connection, days: float, source: str | None) -> list[dict[str, Any]]:
        condition, values = self._old(days, source)
        old = dict(connection.execute(f"SELECT id, conversation_id FROM sessions WHERE {condition}", values))
        cutoff = time.time() - days * _DAY
        families = {session_id: self._with_delegates(connection, [session_id]) for session_id in old}
        living = {
            old[session_id]
            for session_id, family in families.items()
            if any(member["last_active"] >= cutoff for member in family.values())
        }
        found = {
            member["id"]: member
            for session_id, family in families.items()
            if old[session_id] not in living
            for member in family.values()
        }
        return sorted(found.values(), key=lambda row: (row["last_active"], row["id"]))

    def _delete(self, connection: Connection, session_ids: Iterable[str]) -> int:
        family = self._with_delegates(connection, session_ids)
        for session_id in family:
            _delete(connection, session_id)
        return len(family)

    def _with_delegates(self, connection: Connection, session_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Sessions and those that worked for them, with their continuations and those that worked for these."""
        step = "SELECT sessions.id FROM sessions JOIN below ON sessions.parent_session_id = below.id"
        found: dict[str, dict[str, Any]] = {}
        # One name is not a list of its letters.
        for session_id in [session_ids] if isinstance(session_ids, str) else dict.fromkeys(session_ids):
            rows = connection.execute(
                "WITH RECURSIVE below (id) AS ("
                f" SELECT id FROM sessions WHERE parent_session_id = ? AND relation = 'delegation' AND {self._seen}"
                f" UNION {step} WHERE sessions.relation IN ('delegation', 'compression') AND {self._seen})"
                f" SELECT {', '.join(_SHOWN)} FROM sessions WHERE id = ? AND {self._seen}"
                f" UNION ALL SELECT {', '.join(_SHOWN)} FROM sessions WHERE id IN (SELECT id FROM below)",
                (session_id, *self._scope.values * 2, session_id, *self._scope.values),
            )
            found |= {row[0]: dict(zip(_SHOWN, row, strict=True)) for row in rows}
        return found

    def _old(self, days: float, source: str | None) -> tuple[str, list[Any]]:
        condition = f"{self._seen} AND ended_at IS NOT NULL AND last_active < ?"
        values: list[Any] = [*self._scope.values, time.time() - days * _DAY]
        if source is not None:
            condition += " AND source = ?"
            values.append(source)
        # A conversation is old when its last session is: an earlier one of a living chain stays.
        condition += (
            " AND NOT EXISTS (SELECT 1 FROM sessions later WHERE later.conversation_id = sessions.conversation_id"
            " AND (later.ended_at IS NULL OR later.last_active >= ?))"
        )
        return condition, [*values, values[len(self._scope.values)]]


def _delete(connection: Connection, session_id: str) -> None:
    """Delete one session and mend the chain that it stood in."""
    row = connection.execute(
        "SELECT parent_session_id, successor_id, conversation_id FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        return
    parent, successor, conversation = row
    relatives = connection.execute(
        "SELECT id FROM sessions WHERE parent_session_id = ? UNION SELECT id FROM sessions WHERE conversation_id = ?"
        " EXCEPT SELECT ?",
        (session_id, conversation, session_id),
    ).fetchall()
    connection.execute(
        "UPDATE sessions SET successor_id = NULL WHERE id = ? AND successor_id = ?", (parent, session_id)
    )
    connection.execute(
        "UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id = ?", (session_id,)
    )
    if successor is not None:
        # What follows is a conversation of its own now.
        _begin_conversation(connection, successor)
    for heir in release(connection, session_id):
        recount(connection, heir)
    for (relative,) in relatives:
        note_change(connection, relative)
    delete_of(connection, session_id)
    connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    connection.execute("INSERT INTO deleted_sessions (id) VALUES (?) ON CONFLICT (id) DO NOTHING", (session_id,))
    drop_compression_state(connection, session_id)
    note_change(connection, session_id)


def _begin_conversation(connection: Connection, first: str) -> None:
    member: str | None = first
    seen: set[str] = set()
    while member is not None and member not in seen:
        seen.add(member)
        connection.execute("UPDATE sessions SET conversation_id = ? WHERE id = ?", (first, member))
        row = connection.execute("SELECT successor_id FROM sessions WHERE id = ?", (member,)).fetchone()
        member = row[0] if row else None
