"""The doctor's checks of external memory: the outbox, the settings files, and what providers check.

Jobs that are stuck are freed; no waiting job is ever deleted. An outbox that is missing needs no check: the record has
everything that waited in it.

No provider is started, and no unused plugin is imported: the doctor asks the providers in use, wherever they are
installed, and every bundled provider that has files in the home (discovery knows their names).
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError, StorageError
from memoranda.external.guarded_call import GuardedProvider
from memoranda.external.health import HealthTracker
from memoranda.external.loading.discovery import DiscoveredProvider, discover, find_by_name
from memoranda.external.loading.loader import load, run_guarded
from memoranda.external.loading.setup import read_settings
from memoranda.external.outbox.jobs import DAMAGED
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.record_feed import RecordFeed
from memoranda.external.outbox.schema import outbox_database, read_position
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.external.settings import provider_of
from memoranda.storage.lazy_database import opened_for_everyone
from memoranda.storage.position import Position
from memoranda.support.durable_files import append_private
from memoranda.support.health_issues import HealthIssue, check_permissions
from memoranda.support.home import Home

_DAY = 86_400
_MAX_SHOWN = 5
_ON_SERVER = "names a server that has"

# A check may read a whole database, and a repair may rewrite it.
_CHECK_SECONDS = 300.0
_REPAIR_SECONDS = 3_600.0


def _check_positions(path: Path, has: str, rows: Sequence[Any]) -> Iterator[HealthIssue]:
    for provider, user, *positions in rows:
        try:
            list(map(Position.parse, positions))
        except ValueError:
            yield HealthIssue(
                "error",
                path,
                f"{has} an unreadable position of {provider} for {user or 'the owner'}, so its turns are not delivered",
                "delete that row of outbox_positions: everything that was completed for it is delivered again",
            )


def check_jobs(home: Path, path: Path, has: str, server_url: str, in_use: Sequence[str]) -> Iterator[HealthIssue]:
    """Report jobs that wait too long or were parked; `path` is the file that has them, or that names their server."""
    with opened_for_everyone(outbox_database(home, server_url)) as engine, engine.reading() as connection:
        waiting = connection.execute(
            "SELECT provider, count(*), min(created), max(last_error) FROM jobs WHERE state = 'waiting'"
            " GROUP BY provider"
        ).fetchall()
        parked = connection.execute(
            "SELECT provider, count(*), max(last_error) FROM jobs WHERE state = 'parked' AND last_error <> ?"
            " GROUP BY provider",
            (DAMAGED,),
        ).fetchall()
        positions = connection.execute("SELECT provider, user_id, position, notified FROM outbox_positions").fetchall()
    yield from _check_positions(path, has, positions)
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


def check_notifications(home: Path, setting: Path = Path(), server_url: str = "") -> Iterator[HealthIssue]:
    """Report notifications of the record that cannot be sent, or that the outbox has not as they are."""
    path, has = (setting, _ON_SERVER) if server_url else (Home(home).state_db, "has")
    with closing(RecordFeed(home, server_url)) as feed:
        damaged = _read(lambda: _find_damaged(feed))
        unmatched = _read(lambda: _find_unmatched(home, feed, server_url))
    if damaged:
        shown = ", ".join(map(str, damaged[:_MAX_SHOWN])) + (" …" if len(damaged) > _MAX_SHOWN else "")
        yield HealthIssue(
            "error",
            path,
            f"{has} {len(damaged)} notifications for external memories that cannot be read or have changed on the "
            f"disk, and are not sent: {shown}",
            "move them to a file",
            lambda: _move_damaged(home, server_url),
        )
    if unmatched:
        yield HealthIssue(
            "error",
            path,
            f"{has} {len(unmatched)} notifications for external memories that are not as the outbox has them",
            "read them again",
            lambda: _read_again(home, server_url),
        )


def _read(find: Callable[[], list[int]]) -> list[int]:
    """What is found; nothing if it cannot be read, because the checks of the record and of the outbox say why."""
    try:
        return find()
    except StorageError:
        return []


def _find_unmatched(home: Path, feed: RecordFeed, server_url: str) -> list[int]:
    """The undamaged notifications before the position of their provider that have no job that names them."""
    with closing(outbox_database(home, server_url)) as database:
        if not feed.exists() or not database.exists():
            return []
        with database.open().acting_for(None, everyone=True).reading() as connection:
            jobs = connection.execute(
                "SELECT user_id, provider, key, kind, session_id, notification FROM jobs WHERE notification IS NOT NULL"
            ).fetchall()
            recipients = connection.execute("SELECT provider, user_id FROM outbox_positions").fetchall()
            read = {
                (provider, user): read_position(connection, provider, user).notifications
                for provider, user in recipients
            }
    found = {
        (user, provider, row.key, row.kind, row.session_id, row.id)
        for (provider, user), position in read.items()
        for row in feed.store(user).feed.notifications.until(provider, user, position)
        if row.content() is not None
    }
    return [number for *_, number in found.difference(map(tuple, jobs))]


def _read_again(home: Path, server_url: str) -> str:
    """Remove the jobs that do not match, and let all notifications be read again; others are known by their keys."""
    with closing(RecordFeed(home, server_url)) as feed, closing(outbox_database(home, server_url)) as database:
        numbers = _find_unmatched(home, feed, server_url)
        with database.open().writing() as connection:
            connection.executemany("DELETE FROM jobs WHERE notification = ?", [(number,) for number in numbers])
            connection.execute("DELETE FROM jobs WHERE last_error = ?", (DAMAGED,))
            connection.execute("UPDATE outbox_positions SET notified = '0'")
    return f"{len(numbers)} are read again when their provider is next started"


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


def _find_damaged(feed: RecordFeed) -> list[int]:
    """The numbers of the notifications that cannot be read, or do not match their checksums."""
    rows = feed.everyone().feed.notifications.select(None, None) if feed.exists() else []
    return [row.id for row in rows if row.content() is None]


def _retry(home: Path, provider: str, server_url: str) -> str:
    with closing(Outbox(home, server_url=server_url)) as outbox:
        return f"{outbox.retry_failed(provider)} are retried at the next start of {provider}"


def _move_damaged(home: Path, server_url: str) -> str:
    """Write damaged notifications to a file before they leave the record."""
    moved = home / f"outbox.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl"
    with closing(RecordFeed(home, server_url)) as feed:
        numbers = _find_damaged(feed)
        notifications = feed.everyone().feed.notifications
        for row in filter(None, map(notifications.get, numbers)):
            line = json.dumps(row._asdict(), ensure_ascii=False, default=repr)
            append_private(moved, f"{line}\n".encode("utf-8", "backslashreplace"))
        notifications.remove(numbers)
    with closing(outbox_database(home, server_url)) as database:
        if database.exists():
            with database.open().writing() as connection:
                connection.executemany("DELETE FROM jobs WHERE notification = ?", [(number,) for number in numbers])
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
