"""Deleting: one session, or those that are old; nothing is ever deleted without being asked for."""

import time
from collections.abc import Collection, Iterable
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.sessions.feed import note_change
from memoranda.sessions.messages import delete_of, recount
from memoranda.sessions.part import Part
from memoranda.sessions.repetition import release
from memoranda.sessions.rotation import drop_compression_state

_DAY = 86_400


class Upkeep(Part):
    """Deleted text is overwritten in the file, and whoever follows the store is told."""

    def delete_session(self, session_id: str) -> bool:
        """Delete a session, its messages and the work it delegated; False when there is none.

        What continued or branched from it stays and stands on its own.
        """
        return self.delete_sessions([session_id]) > 0

    def delete_sessions(self, session_ids: Iterable[str]) -> int:
        """Delete several sessions in one commit; how many of them were there."""
        with self._db.writing() as connection:
            count = self._delete(connection, session_ids)
        if count:
            self._db.shrink_log()
        return count

    def list_prune_candidates(self, older_than_days: float = 90, source: str | None = None) -> list[dict[str, Any]]:
        """The ended sessions that `prune_sessions` would delete: id, title, source, started_at, message_count."""
        with self._db.reading() as connection:
            return self._candidates(connection, older_than_days, source)

    def prune_sessions(
        self, older_than_days: float = 90, source: str | None = None, *, among: Collection[str] | None = None
    ) -> int:
        """Delete ended sessions in which nothing was said for so many days; how many.

        `among` limits it to sessions that somebody has looked at; one that has come to life since stays.
        """
        with self._db.writing() as connection:
            found = [row["id"] for row in self._candidates(connection, older_than_days, source)]
            count = self._delete(connection, found if among is None else [each for each in found if each in among])
        if count:
            self._db.shrink_log()
        return count

    def vacuum(self) -> None:
        """Give the room of deleted messages back to the disk."""
        self._db.vacuum()

    def _candidates(self, connection: Connection, days: float, source: str | None) -> list[dict[str, Any]]:
        condition, values = self._old(days, source)
        names = ("id", "title", "source", "started_at", "last_active", "message_count")
        rows = connection.execute(
            f"SELECT {', '.join(names)} FROM sessions WHERE {condition} ORDER BY last_active, id", values
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _delete(self, connection: Connection, session_ids: Iterable[str]) -> int:
        count = 0
        for session_id in dict.fromkeys(session_ids):
            if self._exists(connection, session_id):
                count += 1
                for member in [session_id, *self._delegates(connection, session_id)]:
                    _delete(connection, member)
        return count

    def _delegates(self, connection: Connection, session_id: str) -> list[str]:
        """The sessions that worked for one, with their continuations and those that worked for them."""
        step = "SELECT sessions.id FROM sessions JOIN below ON sessions.parent_session_id = below.id"
        rows = connection.execute(
            "WITH RECURSIVE below (id) AS ("
            f" SELECT id FROM sessions WHERE parent_session_id = ? AND relation = 'delegation' AND {self._seen}"
            f" UNION {step} WHERE sessions.relation IN ('delegation', 'compression') AND {self._seen})"
            " SELECT id FROM below",
            (session_id, *self._scope.values, *self._scope.values),
        )
        return [row[0] for row in rows]

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
