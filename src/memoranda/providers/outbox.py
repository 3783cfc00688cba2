"""The outbox: a durable queue of notifications for providers, in one SQLite file of the home.

A job is durable when `put` returns, and stays until it was delivered. Jobs of a session are
delivered in their order: only its first job can be claimed, so a job that fails delays its own session and no other.
The process that puts a job here holds a lease on it and renews the lease while it lives: providers keep state about
sessions, so a process notifies its own provider about its own sessions. When the process ends, its jobs become free,
and another process delivers them, if necessary a second time, with the same key. Jobs belong to a provider and a scope,
the user that the provider was started for: messages of one user never go through a provider of another.

A job that fails permanently is parked at once, and one that keeps failing while others are delivered is parked after
`max_attempts`: it stays, commands show it, and its session continues without it. While nothing is delivered at all, the
service is down, and nothing is parked for `park_after_seconds`. A service that asks to wait (`retry_after`) gets
nothing from any process until then.
"""

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.db.orphaned_wal import database_exists
from memoranda.db.position import Position
from memoranda.db.schema_upgrade import open_database
from memoranda.db.sqlite import Database
from memoranda.errors import StorageError
from memoranda.providers.jobs import Backlog, Job, JobRow, Kind, NewJob, job_from_row, payload_json, stored_key
from memoranda.providers.outbox_schema import APPLICATION_ID, SCHEMA
from memoranda.providers.outbox_state import (
    last_delivered,
    note_delivery,
    pause_deliveries,
    paused_until,
    read_position,
    resume_deliveries,
    write_position,
)
from memoranda.providers.settings import ProviderSettings
from memoranda.providers.spool import Spool
from memoranda.support.processes import has_ended, process_identity

FILE_NAME = "outbox.db"
_MAX_RETRY_AFTER = 86_400.0

# The first job of every session, found from session to session: as fast with many waiting jobs as with few.
_WAITING = "FROM jobs WHERE provider = :provider AND scope = :scope AND state = 'waiting'"
_HEADS = f"""id IN (
    WITH RECURSIVE sessions (name) AS (
        SELECT min(session_id) {_WAITING}
        UNION ALL
        SELECT (SELECT min(session_id) {_WAITING} AND session_id > sessions.name) FROM sessions WHERE name IS NOT NULL
    )
    SELECT (SELECT min(id) {_WAITING} AND session_id = sessions.name) FROM sessions
)"""
# Due, and not leased by another process. Timestamps too far ahead were written before the clock was set back.
_FREE = """(next_try <= :now OR next_try > :too_late)
    AND (owner = :owner OR until IS NULL OR until <= :now OR until > :too_long)"""
# A job with an error was attempted, even if `retry_parked` counts its attempts from zero.
_ATTEMPTS = "max(attempts, last_error <> '')"
_FIELDS = f"id, provider, key, kind, session_id, payload, created, {_ATTEMPTS}, owner, until"
_INSERT = """INSERT INTO jobs (key, provider, scope, kind, session_id, payload, created, owner, until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""


class Outbox:
    """The queue of one home, shared by any number of processes. The file is created when it is first needed."""

    def __init__(
        self,
        home: Path,
        settings: ProviderSettings | None = None,
        *,
        wait: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`wait` is how many seconds another process may keep the file locked before StorageError is raised."""
        self.path = home / FILE_NAME
        self._wait = wait
        self._settings = settings or ProviderSettings()
        self._clock = clock
        self._spool = Spool(home)
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._closed = False
        self._token = uuid.uuid4().hex[:12]

    def put(
        self,
        provider: str,
        kind: Kind,
        session_id: str,
        args: Mapping[str, Any],
        facts: Mapping[str, Any],
        *,
        scope: str = "",
        key: str = "",
    ) -> str:
        """Queue a job; it is durable when this returns its key. A key that the provider has already adds nothing."""
        key = key or uuid.uuid4().hex
        row = self._row(provider, scope, NewJob(kind, session_id, args, facts, key))
        with self._db().writing() as connection:
            connection.execute(_INSERT, row)
        return key

    def spool(self, provider: str, scope: str, job: NewJob, *, leased: bool = True) -> None:
        """Spool a job while the file cannot be written; it is durable when this returns.

        Raises OSError when the spool cannot be written either.
        """
        self._spool.write(self._row(provider, scope, job, leased=leased))

    def has_spooled(self, provider: str | None, scope: str | None = "") -> bool:
        """Whether the spool has jobs, from any process."""
        return bool(self._spool.files(provider, scope))

    def load_spooled(self, provider: str | None, scope: str | None = "") -> None:
        """Move jobs from the spool into the queue; the process that spooled a job keeps its lease while it lives."""
        if not self.has_spooled(provider, scope):
            return
        with self._db().writing() as connection:
            files = self._spool.files(provider, scope)
            for row in filter(None, map(self._spool.read, files)):
                connection.execute(_INSERT, row._replace(until=self._until()) if row.owner == self._owner else row)
        for file in files:
            file.unlink(missing_ok=True)

    def position(self, provider: str, scope: str = "") -> Position | None:
        """How far the record has been read for a provider; None when it never was."""
        spooled = self._spool.position(provider, scope)
        if spooled is not None or not self._exists():
            return spooled
        with self._db().reading() as connection:
            return read_position(connection, provider, scope)

    def spool_position(self, provider: str, scope: str, start: Position) -> None:
        """Spool the start position while the file cannot be written; OSError when the spool fails as well."""
        self._spool.write_position(provider, scope, start)

    def catch_up(
        self,
        provider: str,
        scope: str,
        start: Position,
        read: Callable[[Position], tuple[Position, Sequence[NewJob]]],
        *,
        ours: str = "",
    ) -> int:
        """Queue what `read` finds after the stored position, and move the position, in one commit.

        So each turn is queued once, however many processes read, and whenever one dies. `start` is the position for a
        provider that has none. Jobs of other sessions than `ours` are not leased: any process may deliver them.
        """
        with self._db().writing() as connection:
            before, spooled = read_position(connection, provider, scope), self._spool.position(provider, scope)
            reached, found = read(next(position for position in (before, spooled, start) if position is not None))
            for job in found:
                connection.execute(_INSERT, self._row(provider, scope, job, leased=job.session_id == ours))
            if reached != before:
                write_position(connection, provider, scope, reached)
        if spooled is not None:
            self._spool.delete_position(provider, scope)
        return len(found)

    def claim(self, provider: str, scope: str = "") -> Job | None:
        """Lease the next job that can be delivered now; None when there is none."""
        if not self._exists():
            return None
        now = self._clock()
        query = f"SELECT {_FIELDS} FROM jobs WHERE {_HEADS} AND {_FREE} ORDER BY id LIMIT 1"
        values = {
            "provider": provider,
            "scope": scope,
            "owner": self._owner,
            "now": now,
            "too_late": now + 2 * self._settings.max_retry_seconds,
            "too_long": now + 2 * max(self._settings.lease_seconds, 60.0),
        }
        # Reading first: there may be no job, or one that this process has leased for long enough anyway.
        with self._db().reading() as connection:
            if paused_until(connection, provider, now) > now:
                return None
            row = connection.execute(query, values).fetchone()
        if row is None:
            return self.claim(provider, scope) if self._release_jobs_of_ended_processes(values) else None
        *fields, owner, until = row
        if owner == self._owner and until > now + self._settings.lease_seconds / 2:
            return job_from_row(fields, orphan=False)
        with self._db().writing() as connection:
            row = connection.execute(query, values).fetchone()
            if row is None:
                return None
            *fields, owner, _ = row
            lease = (self._owner, self._until(), fields[0])
            connection.execute("UPDATE jobs SET owner = ?, until = ? WHERE id = ?", lease)
        return job_from_row(fields, orphan=owner != self._owner)

    def renew(self, job: Job | None = None, error: str = "") -> None:
        """Renew the leases of this process; `error` is shown with a running job meanwhile."""
        if not self._exists():
            return
        with self._db().writing() as connection:
            connection.execute("UPDATE jobs SET until = ? WHERE owner = ?", (self._until(), self._owner))
            if job is not None and error:
                connection.execute("UPDATE jobs SET last_error = ? WHERE id = ?", (error, job.id))

    def release(self, running: Job | None = None) -> None:
        """Release the leases of this process, except that of a job whose delivery may still be running."""
        if self._exists():
            with self._db().writing() as connection:
                connection.execute(
                    "UPDATE jobs SET owner = NULL, until = NULL WHERE owner = ? AND id <> ?",
                    (self._owner, running.id if running else 0),
                )

    def delivered(self, job: Job) -> None:
        """Remove a delivered job."""
        with self._db().writing() as connection:
            keys = (job.key, stored_key(job.provider, job.key))
            connection.execute("DELETE FROM jobs WHERE id = ? AND key IN (?, ?)", (job.id, *keys))
            note_delivery(connection, job.provider, self._clock())

    def failed(self, job: Job, error: str, *, permanent: bool = False, retry_after: float | None = None) -> bool:
        """Schedule a job to be retried later; True when it was parked instead.

        A `permanent` failure is parked at once. `retry_after` is how many seconds the provider's service asked to wait:
        until then no job is delivered to that provider, and a failure for this reason does not count against the job.
        """
        now = self._clock()
        with self._db().writing() as connection:
            row = connection.execute(
                "SELECT attempts + 1, COALESCE(first_failed, ?) FROM jobs WHERE id = ? AND owner = ?",
                (now, job.id, self._owner),
            ).fetchone()
            if row is None:
                return False
            attempts, since = int(row[0]), float(row[1])
            others_delivered = retry_after is None and last_delivered(connection, job.provider) > since
            may_park = others_delivered or now - since >= self._settings.park_after_seconds
            parked = permanent or (attempts >= self._settings.max_attempts and may_park)
            if retry_after is not None:
                pause_deliveries(connection, job.provider, now, now + min(retry_after, _MAX_RETRY_AFTER))
            connection.execute(
                "UPDATE jobs SET attempts = ?, first_failed = ?, next_try = ?, last_error = ?, state = ? WHERE id = ?",
                (attempts, since, now + self._pause(attempts), error, "parked" if parked else "waiting", job.id),
            )
        return parked

    def retry_parked(self, provider: str) -> int:
        """Retry parked jobs and end a pause of the provider; returns how many jobs were parked."""
        if not self._exists():
            return 0
        with self._db().writing() as connection:
            resume_deliveries(connection, provider)
            return connection.execute(
                "UPDATE jobs SET state = 'waiting', attempts = 0, first_failed = NULL, next_try = 0"
                " WHERE state = 'parked' AND provider = ?",
                (provider,),
            ).rowcount

    def drop(self, provider: str | None, scope: str | None = "", session_ids: Collection[str] | None = None) -> int:
        """Remove jobs that no provider may receive any more, and return how many; None stands for all.

        One whose delivery is running may still arrive.
        """
        if not self._exists() and not self.has_spooled(provider, scope):
            return 0
        self.load_spooled(provider, scope)
        condition, values = _condition(provider, scope, session_ids)
        with self._db().writing() as connection:
            return connection.execute(f"DELETE FROM jobs WHERE {condition}", values).rowcount

    def count(self, provider: str | None, scope: str, session_ids: Collection[str] | None = None) -> int:
        """How many jobs `drop` would remove; spooled ones only count if their session does not matter."""
        spooled = len(self._spool.files(provider, scope)) if session_ids is None else 0
        if not self._exists():
            return spooled
        condition, values = _condition(provider, scope, session_ids)
        with self._db().reading() as connection:
            (stored,) = connection.execute(f"SELECT count(*) FROM jobs WHERE {condition}", values).fetchone()
        return int(stored) + spooled

    def seconds_until_due(self, provider: str, scope: str = "") -> float | None:
        """Seconds until a job can be delivered; None when none is waiting."""
        if not self._exists():
            return None
        now = self._clock()
        with self._db().reading() as connection:
            (due,) = connection.execute(
                "SELECT min(max(next_try, CASE WHEN owner = :owner THEN 0 ELSE COALESCE(until, 0) END))"
                f" FROM jobs WHERE {_HEADS}",
                {"provider": provider, "scope": scope, "owner": self._owner},
            ).fetchone()
            paused = paused_until(connection, provider, now)
        return None if due is None else max(0.0, due - now, paused - now)

    def backlog(self, provider: str | None = None, scope: str | None = None) -> Backlog:
        """Counts of undelivered jobs: of one provider and scope, or of all."""
        spooled = len(self._spool.files(provider, scope))
        if not self._exists():
            return Backlog(waiting=spooled)
        condition, values = _condition(provider, scope)
        with self._db().reading() as connection:
            waiting, failing, parked, oldest = connection.execute(
                "SELECT count(*) FILTER (WHERE state = 'waiting'),"
                " count(*) FILTER (WHERE state = 'waiting' AND last_error <> ''),"
                f" count(*) FILTER (WHERE state = 'parked'), min(created) FROM jobs WHERE {condition}",
                values,
            ).fetchone()
            error = connection.execute(
                f"SELECT last_error FROM jobs WHERE {condition} AND last_error <> ''"
                " ORDER BY state = 'parked', next_try DESC LIMIT 1",
                values,
            ).fetchone()
        return Backlog(waiting + spooled, failing, parked, oldest, error[0] if error else "")

    def reopen(self) -> "Outbox":
        """Open the same queue again after it was closed, with the leases that this one had."""
        reopened = Outbox(self.path.parent, self._settings, clock=self._clock)
        reopened._token = self._token
        return reopened

    def close(self) -> None:
        """Close the file. Jobs and leases stay."""
        with self._lock:
            self._closed = True
            if self._database is not None:
                self._database.close()
                self._database = None

    def _release_jobs_of_ended_processes(self, values: Mapping[str, Any]) -> bool:
        """Release the jobs of processes that are known to have ended; True when there were some."""
        leased = f"SELECT DISTINCT owner FROM jobs WHERE {_HEADS} AND owner <> :owner AND until > :now"
        with self._db().reading() as connection:
            owners = [row[0] for row in connection.execute(leased, values)]
        ended = [owner for owner in owners if has_ended(owner.rpartition("-")[0])]
        if ended:
            with self._db().writing() as connection:
                for owner in ended:
                    connection.execute("UPDATE jobs SET owner = NULL, until = NULL WHERE owner = ?", (owner,))
        return bool(ended)

    def _row(self, provider: str, scope: str, job: NewJob, *, leased: bool = True) -> JobRow:
        payload = payload_json({"args": job.args, "facts": job.facts})
        key, lease = job.key or uuid.uuid4().hex, (self._owner, self._until()) if leased else (None, None)
        return JobRow(
            stored_key(provider, key), provider, scope, job.kind, job.session_id, payload, self._clock(), *lease
        )

    @property
    def _owner(self) -> str:
        # A forked process does not have the leases of its parent.
        return f"{process_identity()}-{self._token}"

    def _until(self) -> float:
        return self._clock() + self._settings.lease_seconds

    def _pause(self, attempts: int) -> float:
        max_pause = self._settings.max_retry_seconds
        pause = self._settings.first_retry_seconds * 2.0 ** min(attempts - 1, 40)
        return min(pause, max_pause) * random.uniform(0.5, 1.0)

    def _exists(self) -> bool:
        return self._database is not None or database_exists(self.path)

    def _db(self) -> Database:
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} has been closed.")
            if self._database is None:
                self._database = open_database(self.path, SCHEMA, APPLICATION_ID, wait=self._wait)
            return self._database


def _condition(
    provider: str | None, scope: str | None, session_ids: Collection[str] | None = None
) -> tuple[str, tuple[str, ...]]:
    filters = [(name, value) for name, value in (("provider", provider), ("scope", scope)) if value is not None]
    condition = " AND ".join(f"{name} = ?" for name, _ in filters)
    values = tuple(value for _, value in filters)
    if session_ids is None:
        return condition or "1", values
    return f"{condition or '1'} AND session_id IN (SELECT value FROM json_each(?))", (
        *values,
        json.dumps([*session_ids]),
    )
