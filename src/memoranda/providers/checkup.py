"""What the doctor looks at of external memory: what waits in `outbox.db`, and whether its files are whole.

A damaged file is replaced by a new one with everything that can still be read, and kept beside it. What is stuck is set
free, and nothing that waits is ever thrown away.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import get_args

from memoranda.db.damaged import SIDE_FILES, readable_rows, rebuild
from memoranda.db.schema import Schema, Table, bring_up, refuse_newer
from memoranda.db.sqlite import Connection, Database
from memoranda.errors import CorruptStoreError, NewerStoreError, ProviderError, StorageError
from memoranda.providers.outbox import FILE_NAME, Kind, Outbox
from memoranda.providers.schema import APPLICATION_ID, JOBS, SCHEMA
from memoranda.providers.setup import read_settings
from memoranda.support.files import append_private
from memoranda.support.findings import Finding, loose_permissions

_DAY = 86_400
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Store:
    """A database of external memory: how it is signed, what is in it, and how it is saved when it is damaged."""

    path: Path
    application_id: int
    schema: Schema
    inside: Callable[[Database], Iterator[Finding]]
    save: Callable[[Connection, Path], str]

    def open(self, path: Path | None = None) -> Database:
        path = path or self.path
        database = Database(
            path,
            application_id=self.application_id,
            inspect=lambda connection: refuse_newer(connection, self.schema, path),
            wait=_PATIENCE,
        )
        try:
            bring_up(database, self.schema)
        except BaseException:
            database.close()
            raise
        return database


def check_store(store: Store) -> Iterator[Finding]:
    """Can it be read, is it whole, may others read it, and what there is to say about what is inside."""
    if not store.path.exists():
        return
    for ending in SIDE_FILES:
        if (file := Path(f"{store.path}{ending}")).exists():
            yield from loose_permissions(file)
    try:
        with closing(store.open()) as database:
            problems = database.check()
            if problems:
                yield _damaged(store, f"is damaged: {problems[0]}")
            else:
                yield from store.inside(database)
    except NewerStoreError as error:
        yield Finding("error", store.path, str(error), "upgrade Memoranda")
    except CorruptStoreError as error:
        yield _damaged(store, str(error))
    except StorageError as error:
        yield Finding("error", store.path, str(error), "mend its permissions, or stop the program that holds it")


def _damaged(store: Store, problem: str) -> Finding:
    if not _is_ours(store):
        return Finding("error", store.path, problem, "move it away; a new one is made when it is next needed")
    return Finding(
        "error",
        store.path,
        problem,
        "stop every program that uses it, then 'memoranda doctor --mend': it keeps the damaged file beside it and "
        "saves everything that can still be read",
        lambda: _saved(store),
    )


def _is_ours(store: Store) -> bool:
    """Only a file that was ours is replaced; anything else is left for a person."""
    address = f"{store.path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone()[0] == store.application_id)
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def _saved(store: Store) -> str:
    kept = store.path.with_name(f"{store.path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    told = rebuild(store.path, kept, store.save)
    return f"saved {told}, which is all that could be read; the damaged file is {kept.name}"


def take_rows(connection: Connection, damaged: Connection, table: Table) -> int:
    """Copy the rows that can be read; one that does not fit is left out."""
    taken = 0
    for row in readable_rows(damaged, table):
        filled = {name: value for name, value in row.items() if value is not None}
        taken += connection.execute(
            f"INSERT INTO {table.name} ({', '.join(filled)}) VALUES ({', '.join('?' * len(filled))})"
            " ON CONFLICT DO NOTHING",
            tuple(filled.values()),
        ).rowcount
    return taken


def check_outbox(home: Path, active: str) -> Iterator[Finding]:
    """What waits too long, what was given up, and what cannot be delivered at all."""
    yield from check_store(_outbox(home, active))


def _outbox(home: Path, active: str) -> Store:
    path = home / FILE_NAME

    def inside(database: Database) -> Iterator[Finding]:
        with database.reading() as connection:
            waiting = connection.execute(
                "SELECT provider, count(*), min(created), max(last_error) FROM jobs WHERE state = 'waiting'"
                " GROUP BY provider"
            ).fetchall()
            parked = connection.execute(
                "SELECT provider, count(*), max(last_error) FROM jobs WHERE state = 'parked' GROUP BY provider"
            ).fetchall()
            unreadable = list(_unreadable(connection))
        for provider, count, oldest, error in waiting:
            yield from _waiting(path, provider, count, oldest, error, provider == active)
        for provider, count, error in parked:
            yield Finding(
                "warning", path, f"has {count} deliveries to {provider} that were given up: {error or 'no reason'}",
                "try them again", partial(_retry, home, provider),
            )  # fmt: skip
        if unreadable:
            yield Finding(
                "error", path, f"has {len(unreadable)} deliveries that cannot be read and hold up others",
                "put them into a file of their own", lambda: _take_out(home),
            )  # fmt: skip

    def save(damaged: Connection, fresh: Path) -> str:
        with closing(store.open(fresh)) as database, database.writing() as connection:
            counts = {table.name: take_rows(connection, damaged, table) for table in SCHEMA.tables[:-1]}
        return f"{counts[JOBS.name]:,} deliveries that wait"

    store = Store(path, APPLICATION_ID, SCHEMA, inside, save)
    return store


def _waiting(path: Path, provider: str, count: int, oldest: float, error: str, used: bool) -> Iterator[Finding]:
    days = int((time.time() - oldest) // _DAY)
    if not used:
        yield Finding("note", path, f"has {count} deliveries for {provider}, which is not in use",
                      f"they are delivered once it is: 'memoranda provider use {provider}'")  # fmt: skip
    elif days >= 1:
        yield Finding(
            "warning", path, f"has {count} deliveries that {provider} has not taken, the oldest for {days} days"
            + (f": {error}" if error else ""),
            "'memoranda provider test' says what is wrong with it; they are delivered when it is back",
        )  # fmt: skip


def _unreadable(connection: Connection) -> Iterator[tuple[int, str]]:
    for number, kind, payload in connection.execute("SELECT id, kind, payload FROM jobs"):
        try:
            found = json.loads(payload)
            usable = kind in get_args(Kind) and isinstance(found["args"], dict) and isinstance(found["facts"], dict)
        except (ValueError, TypeError, KeyError, RecursionError):
            usable = False
        if not usable:
            yield number, str(payload)


def _retry(home: Path, provider: str) -> str:
    with closing(Outbox(home)) as outbox:
        return f"{outbox.retry_parked(provider)} are tried again at the next start of {provider}"


def _take_out(home: Path) -> str:
    """Write what cannot be delivered into a file before it leaves the queue."""
    store = _outbox(home, "")
    aside = home / f"outbox.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl"
    with closing(store.open()) as database, database.writing() as connection:
        names = [column.name for column in JOBS.columns]
        numbers = [number for number, _ in _unreadable(connection)]
        for number in numbers:
            row = connection.execute(f"SELECT {', '.join(names)} FROM jobs WHERE id = ?", (number,)).fetchone()
            line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=repr)
            append_private(aside, f"{line}\n".encode())
            connection.execute("DELETE FROM jobs WHERE id = ?", (number,))
    return f"{len(numbers)} are in {aside.name} now"


def check_settings(home: Path) -> Iterator[Finding]:
    """Settings of providers that cannot be read."""
    for path in sorted((home / "providers").glob("*.json")):
        name = path.name.removesuffix(".json")
        if name.endswith(".status"):
            continue
        yield from loose_permissions(path)
        try:
            read_settings(home, name)
        except ProviderError as error:
            yield Finding(
                "error", path, str(error), f"'memoranda provider setup {name}' keeps a copy and writes it anew"
            )
