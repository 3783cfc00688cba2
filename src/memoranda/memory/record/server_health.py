"""Checks a record on a server for the doctor: whether it can be reached, separates users, and keeps followers going."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.memory.record.health import check_rows
from memoranda.memory.record.record import open_record
from memoranda.memory.record.store import SessionStore
from memoranda.storage.postgres import diagnostics
from memoranda.storage.postgres.engine import PostgresEngine
from memoranda.storage.postgres.pool import without_password
from memoranda.support.health_issues import HealthIssue, Progress


def check_server(setting: Path, url: str, deep: Progress | None = None) -> Iterator[HealthIssue]:
    """Yield the problems of the record at a URL; `setting` is the file that names it."""
    try:
        engine = open_record(url, wait=5.0)
    except StorageError as error:
        yield HealthIssue("error", setting, str(error), "start the server, or correct store.url")
        return
    with SessionStore(engine) as store:
        if isinstance(engine, PostgresEngine):
            yield from _check_engine(setting, without_password(url), engine)
        yield from check_rows(setting, url, store, deep)


def _check_engine(setting: Path, shown: str, engine: PostgresEngine) -> Iterator[HealthIssue]:
    if reason := diagnostics.why_users_are_not_separated(engine):
        yield HealthIssue(
            "warning", setting, f"{shown} does not separate users by row-level security: {reason}",
            "log in as a role that is no superuser and lacks BYPASSRLS, such as the owner of the tables",
        )  # fmt: skip
    if unsafe := diagnostics.unsafe_settings(engine):
        yield HealthIssue(
            "error", setting, f"{shown} may lose what it has acknowledged, because {', '.join(unsafe)} "
            f"{'is' if len(unsafe) == 1 else 'are'} off",
            "switch them on in postgresql.conf",
        )  # fmt: skip
    for transaction in diagnostics.long_transactions(engine):
        yield HealthIssue(
            "warning", setting, f"{transaction.description} has had a transaction of {shown} open for "
            f"{transaction.seconds:,.0f} s, which holds back all search indexes and followers",
            "end that transaction; idle_in_transaction_session_timeout ends forgotten ones",
        )  # fmt: skip
    if diagnostics.was_restored_from_another_server(engine):
        yield HealthIssue(
            "error", setting, f"{shown} was restored from another server, whose transactions had higher numbers: "
            "search indexes and followers do not see all messages",
            "number the messages again; every node then builds its index again",
            partial(diagnostics.renumber_feeds, engine),
        )  # fmt: skip
