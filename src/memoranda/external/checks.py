"""The doctor's checks of external memory: the outbox, its spool, the settings files, and what providers check.

A repair replaces a damaged file with a new one that has everything that can still be read, and keeps the damaged file
next to it. Jobs that are stuck are freed; no waiting job is ever deleted.

No provider is started, and no unused plugin is imported: the doctor asks the providers in use, wherever they are
installed, and every bundled provider that has files in the home (discovery knows their names).
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.guarded_call import GuardedProvider
from memoranda.external.health import HealthTracker
from memoranda.external.loading.discovery import DiscoveredProvider, discover, find_by_name
from memoranda.external.loading.loader import load, run_guarded
from memoranda.external.loading.setup import read_settings
from memoranda.external.outbox.jobs import DAMAGED, IDENTITY_COLUMNS, JobIdentity, JobRow, is_intact
from memoranda.external.outbox.marker import OutboxGuard, OutboxMarker, file_is_lost
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.schema import APPLICATION_ID, FILE_NAME, JOBS, SCHEMA, outbox_database
from memoranda.external.outbox.spool import DIRECTORY, UNREADABLE, Spool
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.external.settings import provider_of
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.health import CheckedDatabase, check_store, take_rows
from memoranda.storage.position import Position
from memoranda.storage.salvage.rebuild import DamagedDatabase
from memoranda.storage.schema import STATE_META
from memoranda.storage.sqlite.database import Database
from memoranda.storage.sqlite.stored_texts import first_readable_row, readable_rows
from memoranda.support.durable_files import append_private
from memoranda.support.health_issues import HealthIssue, check_permissions

_DAY = 86_400
_MAX_SHOWN = 5

# A check may read a whole database, and a repair may rewrite it.
_CHECK_SECONDS = 300.0
_REPAIR_SECONDS = 3_600.0


def check_outbox(home: Path, in_use: Sequence[str]) -> Iterator[HealthIssue]:
    """Report jobs that wait too long, were parked, or cannot be read."""
    path, guard = home / FILE_NAME, OutboxGuard(home / FILE_NAME)
    if file_is_lost(path):
        # Before anything opens it, which would create a new file.
        yield from _check_loss(path, guard, guard.find_loss(None))
    else:
        yield from check_store(_checked_outbox(home, in_use))
    for file in sorted((home / DIRECTORY).glob(f"*{UNREADABLE}")):
        yield HealthIssue("warning", file, "cannot be read, so its job was not delivered", "look at it, then delete it")
    for file in Spool(home).files():
        if not _is_spooled_job(file):
            yield HealthIssue(
                "warning", file, "has changed on the disk, so its job is not sent", "look at it, then delete it"
            )


def _check_loss(path: Path, guard: OutboxGuard, loss: OutboxMarker | None) -> Iterator[HealthIssue]:
    if loss is None:
        return

    def accept() -> str:
        if file_is_lost(path):
            guard.accept(None)
        else:
            with closing(outbox_database(path.parent)) as database, database.open().reading() as connection:
                guard.accept(connection)
        return "the present queue counts from now on; the conversations themselves are in the record"

    if file_is_lost(path):
        what = "is empty" if path.exists() else "is missing"
    else:
        what = "was deleted, emptied or replaced by another file or an older copy"
    waited = f"{loss.lost:,} deliveries that waited are lost" if loss.lost else "no lost deliveries are known"
    yield HealthIssue(
        "error" if loss.lost else "warning",
        path,
        f"{what} since it was last used: {waited}",
        "put the file back from a backup while nothing uses the home; --fix accepts the loss",
        accept,
    )


def _is_spooled_job(file: Path) -> bool:
    try:
        row = JobRow(**json.loads(file.read_text("utf-8")))
    except FileNotFoundError:
        # A process has moved it into the queue.
        return True
    except (ValueError, TypeError, RecursionError):
        return False
    return is_intact(JobIdentity(*(getattr(row, name) for name in JobIdentity._fields)), row.payload)


def _checked_outbox(home: Path, in_use: Sequence[str]) -> CheckedDatabase:
    path, guard = home / FILE_NAME, OutboxGuard(home / FILE_NAME)

    def check_jobs(database: Database) -> Iterator[HealthIssue]:
        with database.reading() as connection:
            loss = guard.find_loss(connection)
        yield from _check_loss(path, guard, loss)
        yield from _check_jobs(home, path, "has", database, in_use)

    def salvage(damaged: DamagedDatabase, fresh: Path) -> str:
        with closing(store.open(fresh)) as database, database.writing() as connection:
            count = take_rows(connection, damaged, JOBS)
            take_rows(connection, damaged, STATE_META)
            guard.continue_in(connection)
        return f"{count:,} waiting deliveries"

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
            "SELECT provider, count(*), max(last_error) FROM jobs WHERE state = 'parked' AND last_error <> ?"
            " GROUP BY provider",
            (DAMAGED,),
        ).fetchall()
        damaged = _find_damaged(connection)
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
    if damaged:
        shown = ", ".join(map(str, damaged[:_MAX_SHOWN])) + (" …" if len(damaged) > _MAX_SHOWN else "")
        yield HealthIssue(
            "error",
            path,
            f"{has} {len(damaged)} deliveries that cannot be read or have changed on the disk, and are not sent: "
            f"{shown}",
            "move them to a file",
            lambda: _move_damaged(home, server_url),
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


def _find_damaged(connection: Connection) -> list[int]:
    """The numbers of the jobs that cannot be read, or do not match their checksums."""
    rows = readable_rows(connection, f"SELECT id, payload, {IDENTITY_COLUMNS} FROM jobs ORDER BY id")
    return [number for number, payload, *columns in rows if not is_intact(JobIdentity(*columns), payload)]


def _retry(home: Path, provider: str, server_url: str) -> str:
    with closing(Outbox(home, server_url=server_url)) as outbox:
        return f"{outbox.retry_failed(provider)} are retried at the next start of {provider}"


def _move_damaged(home: Path, server_url: str) -> str:
    """Write damaged jobs to a file before they leave the queue."""
    moved = home / f"outbox.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl"
    with closing(outbox_database(home, server_url)) as database, database.open().writing() as connection:
        names = [column.name for column in JOBS.columns]
        numbers = _find_damaged(connection)
        for number in numbers:
            row = first_readable_row(connection, f"SELECT {', '.join(names)} FROM jobs WHERE id = ?", (number,))
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


def check_providers(home: Path, in_use: Sequence[str]) -> Iterator[HealthIssue]:
    """Yield what the providers of a home report about their own files. Nothing that a provider does is raised."""
    chosen = [found for name in in_use if (found := find_by_name(home, name)) is not None]
    for found in chosen:
        yield from _check_provider(found, home)
    for found in discover(home).values():
        if found.has_data(home) and found not in chosen:
            yield from _check_provider(found, home)


def check_provider_tables(setting: Path, url: str) -> Iterator[HealthIssue]:
    """Check what bundled providers have on a server; `setting` is the file that names the server."""
    # A provider is imported only where it has something.
    from memoranda.external.holographic.health import check_shared_facts  # noqa: PLC0415

    yield from check_shared_facts(setting, url)


def _check_provider(found: DiscoveredProvider, home: Path) -> Iterator[HealthIssue]:
    failure = f"has the provider {found.name}, which cannot be checked"
    try:
        provider: MemoryProvider = run_guarded(lambda: _load(found, home), failure, _CHECK_SECONDS)
        if not has_own(provider, "check"):
            return
        guarded = GuardedProvider(provider, found.name, HealthTracker())
        result = guarded.call("check", {"hermes_home": str(home)}, within=_CHECK_SECONDS)
        guarded.close()
        if not result.ok or not isinstance(result.value, list | tuple):
            reason = result.error or f"its check answered with {type(result.value).__name__} instead of a list"
            raise ProviderError(reason)
        # Guarded too: the reports are the provider's objects.
        yield from run_guarded(
            lambda: [_as_issue(guarded, dict(report), home) for report in result.value], failure, _CHECK_SECONDS
        )
    except ProviderError as error:
        problem = str(error).removeprefix(f"{failure}: ").rstrip(".")
        yield HealthIssue("warning", home, f"{failure}: {problem}", "'memoranda provider test' says more about it")


def _load(found: DiscoveredProvider, home: Path) -> MemoryProvider:
    try:
        settings = read_settings(home, found.name)
    except ProviderError:
        # The check of the settings files reports this one.
        settings = {}
    return load(found, home, settings)


def _as_issue(guarded: GuardedProvider, report: dict[str, Any], home: Path) -> HealthIssue:
    """An issue of the doctor; fills in what a report leaves out."""
    severity = report.get("severity")
    return HealthIssue(
        severity if severity in ("error", "note") else "warning",
        Path(str(report.get("path") or home)),
        str(report.get("problem") or f"has a problem that the provider {guarded.name} does not describe"),
        str(report.get("remedy") or "'memoranda provider test' may say more about it"),
        partial(_repair, guarded, report, home) if report.get("repairable") is True else None,
    )


def _repair(guarded: GuardedProvider, report: dict[str, Any], home: Path) -> str:
    result = guarded.call("repair", {"issue": report, "hermes_home": str(home)}, within=_REPAIR_SECONDS)
    guarded.close()
    if not result.ok:
        raise ProviderError(f"The provider {guarded.name} could not repair it: {result.error}")
    return result.value if isinstance(result.value, str) else ""
