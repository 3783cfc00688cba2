"""Looking for damage and wrong counts, and putting counts right."""

from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.db.dialect import add_row_that_fits, check_references_at_the_end
from memoranda.db.schema import STATE_META
from memoranda.db.sqlite import Connection
from memoranda.sessions.copies import give_up_lost, lost_repetitions
from memoranda.sessions.feed import note_change
from memoranda.sessions.messages import SAID, recount
from memoranda.sessions.schema import DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.sessions.store_part import StorePart

SALVAGED = "salvaged"
"""The source of sessions that were lost but for their messages, and their user where there are several."""


class Maintenance(StorePart):
    """For the doctor, who sees every user's sessions."""

    @property
    def journal(self) -> str:
        """How the database keeps itself safe: wal, or delete where that cannot be."""
        return self._db.journal

    @property
    def read_only(self) -> bool:
        return self._db.read_only

    def check_integrity(self) -> list[str]:
        """What is damaged, in the database's words; empty when all is well. Reads the whole file."""
        return self._db.check()

    def miscounted_sessions(self) -> list[str]:
        """Sessions whose message_count is not the number of their messages."""
        self._require_everyone()
        with self._db.reading() as connection:
            rows = connection.execute(
                "SELECT sessions.id FROM sessions LEFT JOIN"
                f" (SELECT session_id, count(*) AS said FROM messages WHERE {SAID} GROUP BY session_id) counted"
                " ON counted.session_id = sessions.id WHERE sessions.message_count <> COALESCE(counted.said, 0)"
            )
            return [row[0] for row in rows]

    def recount_sessions(self, session_ids: Iterable[str]) -> None:
        self._require_everyone()
        with self._db.writing() as connection:
            for session_id in session_ids:
                recount(connection, session_id)

    def lost_repetitions(self) -> list[int]:
        """Messages that only refer to another one, which is gone."""
        self._require_everyone()
        with self._db.reading() as connection:
            return lost_repetitions(connection)

    def give_up_lost_repetitions(self) -> None:
        """Say in their place that they are lost."""
        self._require_everyone()
        with self._db.writing() as connection:
            for session_id in give_up_lost(connection):
                recount(connection, session_id)

    def take_rows(self, tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, int]:
        """Take in rows of another store as they are, ids included; rows that do not fit are left out."""
        taken: dict[str, int] = {}
        with self._db.writing() as connection:
            # Parents may come after their children, or be lost.
            check_references_at_the_end(connection)
            for table in (STATE_META, DELETED_SESSIONS, SESSIONS, MESSAGES):
                taken[table.name] = sum(
                    add_row_that_fits(connection, table.name, row) for row in tables.get(table.name, ())
                )
            _adopt_orphans(connection)
            give_up_lost(connection)
            for (session_id,) in connection.execute("SELECT id FROM sessions").fetchall():
                recount(connection, session_id)
                note_change(connection, session_id)
        return taken


def _adopt_orphans(connection: Connection) -> None:
    """Give messages whose session is lost a session again, and sessions whose parent is lost none.

    Nobody knows whose they were. Unless all other sessions are the home's own, they belong to a user of their own, whom
    only an operator asks for.
    """
    owners = connection.execute("SELECT DISTINCT user_id FROM sessions").fetchall()
    user = None if owners == [(None,)] else SALVAGED
    orphans = "SELECT DISTINCT session_id FROM messages WHERE session_id NOT IN (SELECT id FROM sessions)"
    connection.execute(
        "INSERT INTO sessions (id, source, user_id, started_at, last_active, conversation_id)"
        f" SELECT lost.session_id, '{SALVAGED}', ?, min(m.timestamp), max(m.timestamp), lost.session_id"
        f" FROM ({orphans}) lost JOIN messages m ON m.session_id = lost.session_id GROUP BY lost.session_id",
        (user,),
    )
    there = "(SELECT id FROM sessions)"
    connection.execute(
        f"UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id NOT IN {there}"
    )
    connection.execute(f"UPDATE sessions SET successor_id = NULL WHERE successor_id NOT IN {there}")
    connection.execute(
        f"UPDATE sessions SET conversation_id = id WHERE conversation_id IS NULL OR conversation_id NOT IN {there}"
    )
