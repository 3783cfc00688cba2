"""What the doctor asks a server about, because it can be wrong although every statement works.

These are its settings, long transactions, the numbers of its feeds, and whether users are separated.
"""

from typing import NamedTuple

from memoranda.storage.postgres.connection import RawConnection
from memoranda.storage.postgres.dialect import TRANSACTION
from memoranda.storage.postgres.engine import PostgresEngine
from memoranda.storage.postgres.row_security import EVERYONE, set_locally, why_not_effective

LONG_SECONDS = 60


class LongTransaction(NamedTuple):
    """A transaction in progress that holds back every follower, and where it comes from."""

    description: str
    seconds: float


def why_users_are_not_separated(engine: PostgresEngine) -> str:
    """Why row-level security does not apply to this login; '' if it does."""
    return engine.inspect(lambda raw: why_not_effective(raw, engine.user_tables))


def long_transactions(engine: PostgresEngine, min_seconds: float = LONG_SECONDS) -> list[LongTransaction]:
    """The transactions that have been open for long, as far as this role may see them, the oldest first."""
    statement = (
        "SELECT format('process %s of %s (%s, %s)', pid, usename, COALESCE(NULLIF(application_name, ''), 'unnamed'),"
        " COALESCE(client_addr::text, 'local')), extract(epoch FROM now() - xact_start)::float8 FROM pg_stat_activity"
        " WHERE backend_xid IS NOT NULL AND xact_start < now() - make_interval(secs => $1)"
        " UNION ALL SELECT format('the prepared transaction %L of %s', gid, owner),"
        " extract(epoch FROM now() - prepared)::float8 FROM pg_prepared_xacts"
        " WHERE prepared < now() - make_interval(secs => $1) ORDER BY 2 DESC"
    )
    rows = engine.inspect(lambda raw: raw.execute(statement, [float(min_seconds)]).fetchall())
    return [LongTransaction(str(description), float(seconds)) for description, seconds in rows]


def unsafe_settings(engine: PostgresEngine) -> list[str]:
    """The settings that let the server acknowledge what a power cut or a crash may take back."""
    statement = (
        "SELECT name::text FROM pg_settings WHERE setting = 'off'"
        " AND name IN ('fsync', 'synchronous_commit', 'full_page_writes') ORDER BY name"
    )
    rows = engine.inspect(lambda raw: raw.execute(statement).fetchall())
    return [str(name) for (name,) in rows]


def was_restored_from_another_server(engine: PostgresEngine) -> bool:
    """Whether rows have numbers of transactions that this server has not reached, because they were restored here."""
    ahead = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE {TRANSACTION} >= pg_snapshot_xmax(pg_current_snapshot()))"
        for table in engine.feed_tables
    )

    def ask(raw: RawConnection) -> bool:
        with raw.transaction():
            raw.execute(set_locally(EVERYONE), prepare=False)
            return bool((raw.execute(f"SELECT {ahead}").fetchone() or (False,))[0])

    return engine.inspect(ask)


def renumber_feeds(engine: PostgresEngine) -> None:
    """Give all rows the number of one new transaction; within it they are ordered by their ids.

    Followers recognise a store by its id, so it gets a new one, and they start again.
    """

    def renumber(raw: RawConnection) -> None:
        with raw.transaction():
            raw.execute(set_locally(EVERYONE), prepare=False)
            for table in engine.feed_tables:
                raw.execute(f"UPDATE {table} SET {TRANSACTION} = pg_current_xact_id()")
            raw.execute(
                "UPDATE state_meta SET value = replace(gen_random_uuid()::text, '-', '') WHERE key = 'store_id'"
            )

    engine.inspect(renumber)
