"""Finds damage, wrong counts and lost copies, and repairs counts and copies."""

from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.memory.record.copies import find_lost_copies, mark_lost_copies
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.item_tables import ITEMS
from memoranda.memory.record.message_rows import COUNTED, recount
from memoranda.memory.record.prompt_tables import SYSTEM_PROMPTS
from memoranda.memory.record.record import StoreMarker, count_lost
from memoranda.memory.record.schema import DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.memory.record.shared_prompts import drop_lost_prompts
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.storage.schema import STATE_META

SALVAGED = "salvaged"
"""The source of sessions that were lost except for their messages; also their user, if the store has several users."""


class Maintenance(StorePart):
    """Checks and repairs for the doctor, which sees the sessions of all users."""

    @property
    def journal(self) -> str:
        """How the engine keeps commits safe: `wal`, or `delete` on file systems without it."""
        return self._engine.journal

    @property
    def read_only(self) -> bool:
        return self._engine.read_only

    def check_integrity(self, *, thorough: bool = False) -> list[str]:
        """Describe damage in the engine's words; empty if there is none. Reads the whole database.

        A `thorough` check also compares the indexes of tables with their rows.
        """
        return self._engine.check(thorough=thorough)

    def count_lost(self, marker: StoreMarker | None) -> int:
        """How many of the messages that a marker counted are missing, although nothing was deleted since; 0 if none."""
        with self._engine.reading() as connection:
            return 0 if marker is None else count_lost(connection, marker)

    def miscounted_sessions(self) -> list[str]:
        """The sessions with a count that is not the number of their messages."""
        self._require_everyone()
        with self._engine.reading() as connection:
            rows = connection.execute(
                "SELECT sessions.id FROM sessions LEFT JOIN"
                f" (SELECT session_id, sum(CASE WHEN active = 1 THEN 1 ELSE 0 END) AS active,"
                f" sum(CASE WHEN {COUNTED} THEN 1 ELSE 0 END) AS said FROM messages GROUP BY session_id) counted"
                " ON counted.session_id = sessions.id WHERE sessions.message_count <> COALESCE(counted.active, 0)"
                " OR sessions.own_message_count <> COALESCE(counted.said, 0)"
            )
            return [row[0] for row in rows]

    def recount_sessions(self, session_ids: Iterable[str]) -> None:
        self._require_everyone()
        with self._engine.writing() as connection:
            for session_id in session_ids:
                recount(connection, session_id)

    def lost_repetitions(self) -> list[int]:
        """The ids of copies that have lost their original."""
        self._require_everyone()
        with self._engine.reading() as connection:
            return find_lost_copies(connection)

    def give_up_lost_repetitions(self) -> None:
        """Replace lost copies with a note that they are lost."""
        self._require_everyone()
        with self._engine.writing() as connection:
            for session_id in mark_lost_copies(connection):
                recount(connection, session_id)

    def take_rows(self, tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, int]:
        """Insert rows of another store unchanged, with their ids; skips rows that violate a constraint.

        Returns how many rows each table got.
        """
        taken: dict[str, int] = {}
        with self._engine.writing() as connection:
            # Parents may come after their children, or be lost.
            self._dialect.defer_references(connection)
            for table in (STATE_META, DELETED_SESSIONS, SYSTEM_PROMPTS, SESSIONS, MESSAGES, ITEMS):
                taken[table.name] = sum(
                    self._dialect.add_row_if_valid(connection, table.name, row) for row in tables.get(table.name, ())
                )
            _adopt_orphans(connection)
            drop_lost_prompts(connection)
            mark_lost_copies(connection)
            for (session_id,) in connection.execute("SELECT id FROM sessions").fetchall():
                recount(connection, session_id)
                note_change(connection, session_id)
        return taken


def _adopt_orphans(connection: Connection) -> None:
    """Create sessions for messages that lost their session, and clear links to lost sessions.

    Their user is unknown. Unless all other sessions belong to the home's own user, they get a separate user, so that
    only an operator sees them.
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
    existing = "(SELECT id FROM sessions)"
    connection.execute(
        f"UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id NOT IN {existing}"
    )
    connection.execute(f"UPDATE sessions SET successor_id = NULL WHERE successor_id NOT IN {existing}")
    connection.execute(
        f"UPDATE sessions SET conversation_id = id WHERE conversation_id IS NULL OR conversation_id NOT IN {existing}"
    )
