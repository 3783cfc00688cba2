"""Deleting: one session, or those that are old; nothing is ever deleted without being asked for."""

import time
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.sessions.feed import note_change
from memoranda.sessions.part import Part

_DAY = 86_400


class Upkeep(Part):
    """Deleted text is overwritten in the file, and whoever follows the store is told."""

    def delete_session(self, session_id: str) -> bool:
        """Delete a session, its messages and the work it delegated; False when there is none.

        What continued or branched from it stays and stands on its own.
        """
        return self.delete_sessions([session_id]) > 0

    def delete_sessions(self, session_ids: list[str]) -> int:
        """Delete several sessions in one commit; how many were there, delegated ones not counted."""
        with self._db.writing() as connection:
            there = [session_id for session_id in session_ids if self._exists(connection, session_id)]
            for session_id in there:
                for member in [session_id, *_delegates(connection, session_id)]:
                    _delete(connection, member)
        if there:
            self._db.shrink_log()
        return len(there)

    def list_prune_candidates(self, older_than_days: float = 90, source: str | None = None) -> list[dict[str, Any]]:
        """The ended sessions that `prune_sessions` would delete: id, title, source, started_at, message_count."""
        condition, values = self._old(older_than_days, source)
        names = ("id", "title", "source", "started_at", "last_active", "message_count")
        with self._db.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(names)} FROM sessions WHERE {condition} ORDER BY last_active, id", values
            )
            return [dict(zip(names, row, strict=True)) for row in rows]

    def prune_sessions(self, older_than_days: float = 90, source: str | None = None) -> int:
        """Delete ended sessions in which nothing was said for so many days; how many."""
        return self.delete_sessions([row["id"] for row in self.list_prune_candidates(older_than_days, source)])

    def vacuum(self) -> None:
        """Give the room of deleted messages back to the disk."""
        self._db.vacuum()

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


def _delegates(connection: Connection, session_id: str) -> list[str]:
    rows = connection.execute(
        "WITH RECURSIVE below (id) AS ("
        " SELECT id FROM sessions WHERE parent_session_id = ? AND relation = 'delegation'"
        " UNION SELECT s.id FROM sessions s JOIN below b ON s.parent_session_id = b.id AND s.relation = 'delegation')"
        " SELECT id FROM below",
        (session_id,),
    )
    return [row[0] for row in rows]


def _delete(connection: Connection, session_id: str) -> None:
    """Delete one session and mend the chain that it stood in."""
    successor, conversation = connection.execute(
        "SELECT successor_id, conversation_id FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    relatives = connection.execute(
        "SELECT id FROM sessions WHERE parent_session_id = ? OR (conversation_id = ? AND id <> ?) OR successor_id = ?",
        (session_id, conversation, session_id, session_id),
    ).fetchall()
    connection.execute("UPDATE sessions SET successor_id = NULL WHERE successor_id = ?", (session_id,))
    connection.execute(
        "UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id = ?", (session_id,)
    )
    if successor is not None:
        # What follows is a conversation of its own now.
        _begin_conversation(connection, successor)
    connection.execute("DELETE FROM messages WHERE session_id = ?", (session_id,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    for (relative,) in relatives:
        note_change(connection, relative)
    note_change(connection, session_id)


def _begin_conversation(connection: Connection, first: str) -> None:
    member: str | None = first
    seen: set[str] = set()
    while member is not None and member not in seen:
        seen.add(member)
        connection.execute("UPDATE sessions SET conversation_id = ? WHERE id = ?", (first, member))
        row = connection.execute("SELECT successor_id FROM sessions WHERE id = ?", (member,)).fetchone()
        member = row[0] if row else None
