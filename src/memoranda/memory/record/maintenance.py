"""Finds damage, wrong counts and lost copies, repairs counts and copies, and prunes old sessions at intervals.

A scheduled prune deletes in steps that leave room for other writers.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memoranda.memory.record.copies import find_lost_copies, mark_lost_copies
from memoranda.memory.record.deletion import Deletion
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.items import Items
from memoranda.memory.record.message_rows import COUNTED, recount
from memoranda.memory.record.record import StoreMarker, count_lost
from memoranda.memory.record.schema import (
    DELETED_SESSIONS,
    ITEMS,
    MESSAGES,
    NOTIFICATIONS,
    SESSIONS,
    SYSTEM_PROMPTS,
    VERSION_TABLES,
)
from memoranda.memory.record.store_part import StorePart
from memoranda.memory.record.system_prompts import drop_lost_prompts
from memoranda.storage.connection import Connection
from memoranda.storage.engine import add_row_if_valid
from memoranda.storage.schema import STATE_META
from memoranda.storage.state_meta import read_meta, write_meta

SALVAGED = "salvaged"
"""The source of sessions that were lost except for their messages; also their user, if the store has several users."""

_TAKEN_TABLES = (
    STATE_META, DELETED_SESSIONS, SYSTEM_PROMPTS, SESSIONS, MESSAGES, ITEMS, NOTIFICATIONS, *VERSION_TABLES,
)  # fmt: skip


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
        rows = self._fetch_all(
            "SELECT sessions.id FROM sessions LEFT JOIN"
            f" (SELECT session_id, sum(CASE WHEN active = 1 THEN 1 ELSE 0 END) AS active,"
            f" sum(CASE WHEN {COUNTED} THEN 1 ELSE 0 END) AS said FROM messages GROUP BY session_id) counted"
            " ON counted.session_id = sessions.id WHERE sessions.message_count <> COALESCE(counted.active, 0)"
            " OR sessions.own_message_count <> COALESCE(counted.said, 0)"
        )
        return [row[0] for row in rows]

    def recount_sessions(self, session_ids: Iterable[str]) -> None:
        session_ids = self._stored_names(session_ids)
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
            for table in _TAKEN_TABLES:
                taken[table.name] = sum(
                    add_row_if_valid(connection, table.name, row) for row in tables.get(table.name, ())
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


_LAST_PRUNE = "last_auto_prune"


class ScheduledPrune(StorePart):
    """Deletes old sessions and expired items when it is time to."""

    def __init__(self, deletion: Deletion, items: Items) -> None:
        super().__init__(*deletion.common)
        self._deletion = deletion
        self._items = items

    def last_prune(self) -> float | None:
        """When sessions were last pruned at an interval, in seconds since 1970; None if never."""
        with self._engine.reading() as connection:
            return _read_time(connection)

    def prune_when_due(
        self,
        /,
        older_than_days: float,
        *,
        interval_hours: float = 24,
        vacuum: bool = True,
        stopped: Callable[[], bool] = lambda: False,
        **filters: Any,
    ) -> int | None:
        """Prune if the last time is long enough ago, and return how many sessions were deleted; None if it is not due.

        The store remembers the time, so that several processes together prune once per interval. Archived sessions
        stay, unless `archived` says otherwise; `filters` are the fields of `SessionFilter`. A few sessions are deleted
        at a time, so that other writers never wait long, and `stopped` is asked in between. A prune that is stopped or
        fails stays due. If something was deleted, the file shrinks afterwards as `release_space` says.
        """
        now = time.time()
        claimed, last = self._claim(now, interval_hours)
        if not claimed:
            return None
        was_stopped = False

        def ask() -> bool:
            nonlocal was_stopped
            was_stopped = was_stopped or stopped()
            return was_stopped

        completed = False
        try:
            chosen = {"archived": False, **filters}
            self._items.remove_expired()
            count = self._deletion.prune_sessions(older_than_days, stopped=ask, **chosen)
            completed = not was_stopped
        finally:
            if not completed:
                self._release(now, last)
        if count and vacuum and not ask():
            self._deletion.release_space(ask)
        return count

    def _claim(self, now: float, interval_hours: float) -> tuple[bool, float | None]:
        """Set the time of the last prune to now unless that was recent; returns whether it did, and the time before."""
        with self._engine.writing() as connection:
            last = _read_time(connection)
            # A time in the future is from a clock that was wrong.
            if last is not None and 0 <= now - last < interval_hours * 3600:
                return False, last
            write_meta(connection, _LAST_PRUNE, repr(now))
            return True, last

    def _release(self, claimed: float, last: float | None) -> None:
        """Set the time back to the one before, so that the next process continues; unless another has claimed it."""
        with self._engine.writing() as connection:
            if last is None:
                connection.execute("DELETE FROM state_meta WHERE key = ? AND value = ?", (_LAST_PRUNE, repr(claimed)))
            else:
                connection.execute(
                    "UPDATE state_meta SET value = ? WHERE key = ? AND value = ?",
                    (repr(last), _LAST_PRUNE, repr(claimed)),
                )


def _read_time(connection: Any) -> float | None:
    stored = read_meta(connection, _LAST_PRUNE)
    try:
        return None if stored is None else float(stored)
    except ValueError:
        # Another program may have stored something else.
        return None
