"""The doctor's checks of external memory: the jobs in `outbox.db`, the spool, and the settings files of providers.

A repair replaces a damaged file with a new one that has everything that can still be read, and keeps the damaged file
next to it. Jobs that are stuck are freed; no waiting job is ever deleted.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import get_args

from memoranda.db.connection import Connection
from memoranda.db.engine import Engine
from memoranda.db.health import CheckedDatabase, check_store, take_rows
from memoranda.db.position import Position
from memoranda.db.salvage.rebuild import DamagedDatabase
from memoranda.db.sqlite import Database
from memoranda.errors import ProviderError
from memoranda.providers.file_names import provider_of
from memoranda.providers.jobs import Kind
from memoranda.providers.outbox import Outbox
from memoranda.providers.outbox_schema import APPLICATION_ID, FILE_NAME, JOBS, SCHEMA, outbox_database
from memoranda.providers.setup import read_settings
from memoranda.providers.spool import DIRECTORY, UNREADABLE
from memoranda.support.durable_files import append_private
from memoranda.support.health_issues import HealthIssue, check_permissions

_DAY = 86_400


def check_outbox(home: Path, in_use: Sequence[str]) -> Iterator[HealthIssue]:
    """Report jobs that wait too long, were parked, or cannot be read."""
    yield from check_store(_checked_outbox(home, in_use))
    for file in sorted((home / DIRECTORY).glob(f"*{UNREADABLE}")):
        yield HealthIssue("warning", file, "cannot be read, so its job was not delivered", "look at it, then delete it")


def _checked_outbox(home: Path, in_use: Sequence[str]) -> CheckedDatabase:
    path = home / FILE_NAME

    def check_jobs(database: Database) -> Iterator[HealthIssue]:
        yield from _check_jobs(home, path, "has", database, in_use)

    def salvage(damaged: DamagedDatabase, fresh: Path) -> str:
        with closing(store.open(fresh)) as database, database.writing() as connection:
            counts = {table.name: take_rows(connection, damaged, table) for table in SCHEMA.tables[:-1]}
        return f"{counts[JOBS.name]:,} waiting deliveries"

    store = CheckedDatabase(path, APPLICATION_ID, SCHEMA, check_jobs, salvage)
    return store


def check_server_outbox(home: Path, setting: Path, server_url: str, in_use: Sequence[str]) -> Iterator[HealthIssue]:
    """Report the same about the outbox on a server; `setting` is the file that names it."""
    with closing(outbox_database(home, server_url)) as database:
        engine = database.open().acting_for(None, everyone=True)
        yield from _check_jobs(home, setting, "names a server that has", engine, in_use, server_url)
        with engine.reading() as connection:
            rows = connection.execute("SELECT provider, user_id, position FROM outbox_positions").fetchall()
    for provider, user, position in rows:
        try:
            Position.parse(position)
        except ValueError:
            yield HealthIssue(
                "error",
                setting,
                f"names a server that has an unreadable position of {provider} for {user or 'the owner'}, so its turns "
                "are not delivered",
                "delete that row of outbox_positions: what was completed from then on is delivered",
            )


def _check_jobs(
    home: Path, path: Path, has: str, database: Database | Engine, in_use: Sequence[str], server_url: str = ""
) -> Iterator[HealthIssue]:
    with database.reading() as connection:
        waiting = connection.execute(
            "SELECT provider, count(*), min(created), max(last_error) FROM jobs WHERE state = 'waiting'"
            " GROUP BY provider"
        ).fetchall()
        parked = connection.execute(
            "SELECT provider, count(*), max(last_error) FROM jobs WHERE state = 'parked' GROUP BY provider"
        ).fetchall()
        unreadable = list(_find_unreadable(connection))
    for provider, count, oldest, error in waiting:
        yield from _check_waiting(path, has, provider, count, oldest, error, provider in in_use)
    for provider, count, error in parked:
        yield HealthIssue(
            "warning",
            path,
            f"{has} {count} parked deliveries to {provider}: {error or 'no reason'}",
            "retry them",
            partial(_retry, home, provider, server_url),
            harmless=True,
        )
    if unreadable:
        yield HealthIssue(
            "error",
            path,
            f"{has} {len(unreadable)} deliveries that cannot be read and block others",
            "move them to a file",
            lambda: _move_unreadable(home, server_url),
        )


def _check_waiting(
    path: Path, has: str, provider: str, count: int, oldest: float, error: str, in_use: bool
) -> Iterator[HealthIssue]:
    days = int((time.time() - oldest) // _DAY)
    if not in_use:
        yield HealthIssue(
            "note",
            path,
            f"{has} {count} deliveries for {provider}, which is not in use",
            f"they are delivered once it is: 'memoranda provider use {provider}'",
        )
    elif days >= 1:
        yield HealthIssue(
            "warning",
            path,
            f"{has} {count} deliveries that {provider} has not accepted, the oldest for {days} days"
            + (f": {error}" if error else ""),
            "'memoranda provider test' says what is wrong with it; they are delivered when it works again",
        )


def _find_unreadable(connection: Connection) -> Iterator[tuple[int, str]]:
    for number, kind, payload in connection.execute("SELECT id, kind, payload FROM jobs"):
        try:
            found = json.loads(payload)
            usable = kind in get_args(Kind) and isinstance(found["args"], dict) and isinstance(found["facts"], dict)
        except (ValueError, TypeError, KeyError, RecursionError):
            usable = False
        if not usable:
            yield number, str(payload)


def _retry(home: Path, provider: str, server_url: str) -> str:
    with closing(Outbox(home, server_url=server_url)) as outbox:
        return f"{outbox.retry_parked(provider)} are retried at the next start of {provider}"


def _move_unreadable(home: Path, server_url: str) -> str:
    """Write unreadable jobs to a file before they leave the queue."""
    moved = home / f"outbox.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl"
    with closing(outbox_database(home, server_url)) as database, database.open().writing() as connection:
        names = [column.name for column in JOBS.columns]
        numbers = [number for number, _ in _find_unreadable(connection)]
        for number in numbers:
            row = connection.execute(f"SELECT {', '.join(names)} FROM jobs WHERE id = ?", (number,)).fetchone()
            line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=repr)
            append_private(moved, f"{line}\n".encode())
            connection.execute("DELETE FROM jobs WHERE id = ?", (number,))
    return f"{len(numbers)} are in {moved.name} now"


def check_settings(home: Path) -> Iterator[HealthIssue]:
    """Report settings files of providers that cannot be read."""
    for path in sorted((home / "providers").glob("*.json")):
        name = provider_of(path.name.removesuffix(".json"))
        if name.endswith(".status"):
            continue
        yield from check_permissions(path)
        try:
            read_settings(home, name)
        except ProviderError as error:
            yield HealthIssue(
                "error", path, str(error), f"'memoranda provider setup {name}' keeps a copy and writes another"
            )
