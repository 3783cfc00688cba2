"""What the doctor asks a server about, because it can be wrong although every statement works.

These are its settings, long transactions, the numbers of its feeds, and whether users are separated.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from memoranda.storage.postgres import row_security
from memoranda.storage.postgres.connection import RawConnection
from memoranda.storage.postgres.dialect import TRANSACTION
from memoranda.storage.postgres.row_security import EVERYONE, set_locally

LONG_SECONDS = 60


class LongTransaction(NamedTuple):
    """A transaction in progress that holds back every follower, and where it comes from."""

    description: str
    seconds: float


def long_transactions(raw: RawConnection, min_seconds: float = LONG_SECONDS) -> list[LongTransaction]:
    """The transactions that have been open for long, as far as this role may see them, the oldest first."""
    rows = raw.execute(
        "SELECT format('process %s of %s (%s, %s)', pid, usename, COALESCE(NULLIF(application_name, ''), 'unnamed'),"
        " COALESCE(client_addr::text, 'local')), extract(epoch FROM now() - xact_start)::float8 FROM pg_stat_activity"
        " WHERE backend_xid IS NOT NULL AND xact_start < now() - make_interval(secs => $1)"
        " UNION ALL SELECT format('the prepared transaction %L of %s', gid, owner),"
        " extract(epoch FROM now() - prepared)::float8 FROM pg_prepared_xacts"
        " WHERE prepared < now() - make_interval(secs => $1) ORDER BY 2 DESC",
        [float(min_seconds)],
    ).fetchall()
    return [LongTransaction(str(description), float(seconds)) for description, seconds in rows]


def unsafe_settings(raw: RawConnection) -> list[str]:
    """The settings that let the server acknowledge what a power cut or a crash may take back."""
    rows = raw.execute(
        "SELECT name::text FROM pg_settings WHERE setting = 'off'"
        " AND name IN ('fsync', 'synchronous_commit', 'full_page_writes') ORDER BY name"
    ).fetchall()
    return [str(name) for (name,) in rows]


def comes_from_another_server(raw: RawConnection, feeds: list[str]) -> bool:
    """Whether rows have numbers of transactions that this server has not reached, because they were restored here."""
    with raw.transaction():
        raw.execute(set_locally(EVERYONE), prepare=False)
        ahead = " OR ".join(
            f"EXISTS (SELECT 1 FROM {table} WHERE {TRANSACTION} >= pg_snapshot_xmax(pg_current_snapshot()))"
            for table in feeds
        )
        return bool((raw.execute(f"SELECT {ahead}").fetchone() or (False,))[0])


def renumber_feeds(raw: RawConnection, feeds: list[str]) -> None:
    """Give all rows the number of one new transaction; within it they are ordered by their ids.

    Followers recognise a store by its id, so it gets a new one, and they start again.
    """
    with raw.transaction():
        raw.execute(set_locally(EVERYONE), prepare=False)
        for table in feeds:
            raw.execute(f"UPDATE {table} SET {TRANSACTION} = pg_current_xact_id()")
        raw.execute("UPDATE state_meta SET value = replace(gen_random_uuid()::text, '-', '') WHERE key = 'store_id'")


_Answer = TypeVar("_Answer")


class ServerDiagnostics(ABC):
    """The questions of the doctor, for the engine of a server."""

    @abstractmethod
    def _inspect(self, ask: Callable[[RawConnection], _Answer]) -> _Answer:
        """Ask on a connection outside the pool."""

    @abstractmethod
    def _user_tables(self) -> list[str]:
        """The tables that have rows of several users."""

    @abstractmethod
    def _feed_tables(self) -> list[str]:
        """The tables that followers read in the order of commits."""

    def why_users_are_not_separated(self) -> str:
        """Why row-level security does not apply to this login; '' if it does."""
        return self._inspect(lambda raw: row_security.why_not_effective(raw, self._user_tables()))

    def unsafe_settings(self) -> list[str]:
        """The settings with which the server acknowledges what a power cut may take back."""
        return self._inspect(unsafe_settings)

    def long_transactions(self, min_seconds: float = LONG_SECONDS) -> list[LongTransaction]:
        """The transactions that hold back every follower, as far as this login may see them."""
        return self._inspect(lambda raw: long_transactions(raw, min_seconds))

    def was_restored_from_another_server(self) -> bool:
        """Whether followers cannot read some rows, because another server numbered their transactions."""
        return self._inspect(lambda raw: comes_from_another_server(raw, self._feed_tables()))

    def renumber_feeds(self) -> None:
        """Let followers read all rows again, after a dump of another server was restored."""
        self._inspect(lambda raw: renumber_feeds(raw, self._feed_tables()))
