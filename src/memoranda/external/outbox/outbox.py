"""The outbox: a durable queue of notifications for providers, in one file of the home or on a server.

A job is durable when `put` returns, and stays until it was delivered. Jobs of a session are
delivered in their order: only its first job can be claimed, so a job that fails delays its own session and no other.
The process that puts a job here holds a lease on it and renews the lease while it lives: providers keep state about
sessions, so a process notifies its own provider about its own sessions. When the process ends, its jobs become free,
and another process delivers them, if necessary a second time, with the same key. Jobs belong to a provider and a scope,
the user that the provider was started for: messages of one user never go through a provider of another.

A job that the service refuses for what it contains is parked at once, and one that keeps failing while others are
delivered is parked after `max_attempts`: commands show it, its session continues without it, and it is retried after
pauses that grow to a day, with the others of its session in their order. While nothing is delivered at all, the service
is down or refuses everything, and nothing is parked. A service that asks to wait (`retry_after`) gets nothing from any
process until then.
"""

import logging
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.outbox.jobs import (
    DAMAGED,
    IDENTITY_COLUMNS,
    Backlog,
    DamagedJobError,
    Job,
    JobIdentity,
    JobRow,
    Kind,
    ListedJob,
    NewJob,
    job_from_row,
    list_jobs,
    seal_payload,
    stored_key,
)
from memoranda.external.outbox.marker import OutboxGuard
from memoranda.external.outbox.schema import FILE_NAME, OutboxState, outbox_database
from memoranda.external.outbox.spool import Spool
from memoranda.external.settings import ProviderSettings
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.files.fork_lock import ForkLock
from memoranda.storage.position import Position
from memoranda.storage.sqlite.stored_texts import first_readable_row
from memoranda.support.processes import has_ended, process_identity

_log = logging.getLogger(__name__)

# The first job of every session, found from session to session: as fast with many waiting jobs as with few.
_WAITING = "FROM jobs WHERE provider = ? AND scope = ? AND state = 'waiting'"
_HEADS = f"""id IN (
    WITH RECURSIVE sessions (name) AS (
        SELECT min(session_id) {_WAITING}
        UNION ALL
        SELECT (SELECT min(session_id) {_WAITING} AND session_id > sessions.name) FROM sessions WHERE name IS NOT NULL
    )
    SELECT (SELECT min(id) {_WAITING} AND session_id = sessions.name) FROM sessions
)"""
# Due, and not leased by another process. Timestamps too far ahead were written before the clock was set back.
_FREE = """(next_try <= ? OR next_try > ?)
    AND (owner = ? OR until IS NULL OR until <= ? OR until > ?)"""
# A job with an error was attempted, even if `retry_failed` counts its attempts from zero.
_ATTEMPTS = "CASE WHEN attempts = 0 AND last_error <> '' THEN 1 ELSE attempts END"
_FIELDS = f"id, payload, {_ATTEMPTS}, {IDENTITY_COLUMNS}, owner, until"
_INSERT = """INSERT INTO jobs (key, provider, scope, kind, session_id, payload, created, owner, until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""
_PARK = "UPDATE jobs SET state = 'parked', attempts = attempts + 1, last_error = ? WHERE id = ?"
# SQLite accepts no more than 32,766 values in a statement.
_MAX_IDS = 10_000
_MAX_RETRY_AFTER = 86_400.0
_MAX_PARKED_PAUSE = 86_400.0


class Outbox:
    """The queue of one home, shared by any number of processes. The file is created when it is first needed."""

    def __init__(
        self,
        home: Path,
        settings: ProviderSettings | None = None,
        *,
        server_url: str = "",
        wait: float = 10.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`wait` is how many seconds another process may keep the file locked before StorageError is raised.

        `server_url` names the server that has the queue for all nodes, instead of the file in the home.
        """
        self.path = home / FILE_NAME
        self._file = outbox_database(home, server_url, wait=wait)
        self._state = OutboxState(on_server=bool(server_url))
        self._settings = settings or ProviderSettings()
        self._given_clock = clock
        self._spool = Spool(home)
        self._lock = ForkLock()
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
        if spooled is not None or not self._file.exists():
            return spooled
        with self._db(scope).reading() as connection:
            return self._state.read_position(connection, provider, scope)

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
        while True:
            # Reading takes a connection of its own, so it comes before the transaction, which checks the position.
            with self._db(scope).reading() as connection:
                before = self._state.read_position(connection, provider, scope)
            spooled = self._spool.position(provider, scope)
            reached, found = read(next(position for position in (before, spooled, start) if position is not None))
            rows = [self._row(provider, scope, job, leased=job.session_id == ours) for job in found]
            with self._locked(provider, scope) as connection:
                if self._state.read_position(connection, provider, scope) != before:
                    continue
                for row in rows:
                    connection.execute(_INSERT, row)
                if reached != before:
                    self._state.write_position(connection, provider, scope, reached)
            if spooled is not None:
                self._spool.delete_position(provider, scope)
            return len(found)

    def claim(self, provider: str, scope: str = "") -> Job | None:
        """Lease the next job that can be delivered now; None when there is none. Damaged jobs are parked."""
        while self._file.exists() and (row := self._claim_row(provider, scope)) is not None:
            try:
                return job_from_row(row)
            except DamagedJobError as error:
                _log.error("Job %d for the memory provider %s is parked: %s", row[0], provider, error)
                with self._db().writing() as connection:
                    connection.execute(_PARK, (str(error), row[0]))
        return None

    def _claim_row(self, provider: str, scope: str) -> list[Any] | None:
        """Lease the next row that is due; returns its fields, and whether a process that has ended had put it here."""
        now = self._clock()
        query = f"SELECT {_FIELDS} FROM jobs WHERE {_HEADS} AND {_FREE} ORDER BY id LIMIT 1"
        too_late = now + 2 * self._settings.max_retry_seconds
        too_long = now + 2 * max(self._settings.lease_seconds, 60.0)
        values = (*_head_values(provider, scope), now, too_late, self._owner, now, too_long)
        # Reading first: there may be no job, or one that is leased for long enough.
        with self._db(scope).reading() as connection:
            if self._state.paused_until(connection, provider, now) > now:
                return None
            row = first_readable_row(connection, query, values)
        if row is None:
            released = self._release_jobs_of_ended_processes(provider, scope, now)
            return self._claim_row(provider, scope) if released else None
        *fields, owner, until = row
        if owner == self._owner and until > now + self._settings.lease_seconds / 2:
            return [*fields, False]
        with self._locked(provider, scope) as connection:
            row = first_readable_row(connection, query, values)
            if row is None:
                return None
            *fields, owner, _ = row
            lease = (self._owner, self._until(), fields[0])
            connection.execute("UPDATE jobs SET owner = ?, until = ? WHERE id = ?", lease)
        return [*fields, owner != self._owner]

    def renew(self, job: Job | None = None, error: str = "") -> None:
        """Renew the leases of this process, and the marker; `error` is shown with a running job meanwhile."""
        if not self._file.exists():
            return
        with self._db().writing() as connection:
            connection.execute("UPDATE jobs SET until = ? WHERE owner = ?", (self._until(), self._owner))
            if job is not None and error:
                connection.execute("UPDATE jobs SET last_error = ? WHERE id = ?", (error, job.id))
        if not self._file.server_url:
            with self._db().reading() as connection:
                OutboxGuard(self.path).note(connection)

    def release(self, running: Job | None = None) -> None:
        """Release the leases of this process, except that of a job whose delivery may still be running."""
        if self._file.exists():
            with self._db().writing() as connection:
                connection.execute(
                    "UPDATE jobs SET owner = NULL, until = NULL WHERE owner = ? AND id <> ?",
                    (self._owner, running.id if running else 0),
                )

    def delivered(self, job: Job) -> None:
        """Remove a delivered job."""
        now = self._clock()
        with self._db().writing() as connection:
            keys = (job.key, stored_key(job.provider, job.key))
            connection.execute("DELETE FROM jobs WHERE id = ? AND key IN (?, ?)", (job.id, *keys))
            self._state.note_delivery(connection, job.provider, now)

    def failed(self, job: Job, error: str, *, permanent: bool = False, retry_after: float | None = None) -> bool:
        """Schedule a job to be retried later; True when it was parked instead.

        A `permanent` failure is parked at once. `retry_after` is how many seconds the provider's service asked to wait:
        until then no job is delivered to that provider, and a failure for this reason does not count against the job.
        """
        now = self._clock()
        with self._db().writing() as connection:
            row = connection.execute(
                "UPDATE jobs SET attempts = attempts + 1, first_failed = COALESCE(first_failed, ?), last_error = ?"
                " WHERE id = ? AND owner = ? RETURNING attempts, first_failed",
                (now, error, job.id, self._owner),
            ).fetchone()
            if row is None:
                return False
            attempts, since = int(row[0]), float(row[1])
            others_delivered = retry_after is None and self._state.last_delivered(connection, job.provider) > since
            parked = permanent or (attempts >= self._settings.max_attempts and others_delivered)
            if retry_after is not None:
                self._state.pause_deliveries(connection, job.provider, now, now + min(retry_after, _MAX_RETRY_AFTER))
            connection.execute(
                "UPDATE jobs SET next_try = ?, state = ? WHERE id = ?",
                (now + self._pause(attempts, parked=parked), "parked" if parked else "waiting", job.id),
            )
        return parked

    def resume_parked(self, provider: str, scope: str = "") -> float | None:
        """Let parked jobs whose pause is over be delivered again; returns the seconds until others are due, or None.

        All parked jobs of a session are resumed together, so that they are delivered in their order.
        """
        if not self._file.exists():
            return None
        parked = "provider = ? AND scope = ? AND state = 'parked' AND last_error <> ?"
        values, now = (provider, scope, DAMAGED), self._clock()
        with self._db(scope).reading() as connection:
            (due,) = connection.execute(f"SELECT min(next_try) FROM jobs WHERE {parked}", values).fetchone()
        if due is None or due > now:
            return None if due is None else float(due - now)
        with self._locked(provider, scope) as connection:
            connection.execute(
                f"UPDATE jobs SET state = 'waiting', next_try = 0 WHERE {parked}"
                f" AND session_id IN (SELECT session_id FROM jobs WHERE {parked} AND next_try <= ?)",
                (*values, *values, now),
            )
        return 0.0

    def retry_failed(self, provider: str, scope: str | None = None) -> int:
        """Retry what was parked or failed now, of all scopes or of one, and end a pause; returns how many there are."""
        if not self._file.exists():
            return 0
        ((condition, values),) = _conditions(self._db(), provider, scope)
        with self._db().writing() as connection:
            self._state.resume_deliveries(connection, provider)
            return connection.execute(
                "UPDATE jobs SET state = 'waiting', attempts = 0, first_failed = NULL, next_try = 0"
                f" WHERE (state = 'parked' OR attempts > 0) AND {condition}",
                values,
            ).rowcount

    def list_jobs(self, scope: str, limit: int, *, after: int = 0) -> list[ListedJob]:
        """The undelivered jobs of a scope in the order of their delivery, after the one with a number."""
        if not self._file.exists():
            return []
        with self._db(scope).reading() as connection:
            return list_jobs(connection, scope, limit, after)

    def drop(self, provider: str | None, scope: str | None = "", session_ids: Collection[str] | None = None) -> int:
        """Remove jobs that no provider may receive any more, and return how many; None stands for all.

        One whose delivery is running may still arrive.
        """
        if not self._file.exists() and not self.has_spooled(provider, scope):
            return 0
        self.load_spooled(provider, scope)
        with self._db().writing() as connection:
            return sum(
                connection.execute(f"DELETE FROM jobs WHERE {condition}", values).rowcount
                for condition, values in _conditions(self._db(), provider, scope, session_ids)
            )

    def count(self, provider: str | None, scope: str, session_ids: Collection[str] | None = None) -> int:
        """How many jobs `drop` would remove; spooled ones only count if their session does not matter."""
        spooled = len(self._spool.files(provider, scope)) if session_ids is None else 0
        if not self._file.exists():
            return spooled
        with self._db().reading() as connection:
            stored = sum(
                connection.execute(f"SELECT count(*) FROM jobs WHERE {condition}", values).fetchone()[0]
                for condition, values in _conditions(self._db(), provider, scope, session_ids)
            )
        return int(stored) + spooled

    def seconds_until_due(self, provider: str, scope: str = "") -> float | None:
        """Seconds until a job can be delivered; None when none is waiting."""
        if not self._file.exists():
            return None
        now = self._clock()
        with self._db(scope).reading() as connection:
            (due,) = connection.execute(
                "SELECT min(CASE WHEN owner = ? OR until IS NULL OR until < next_try THEN next_try ELSE until END)"
                f" FROM jobs WHERE {_HEADS}",
                (self._owner, *_head_values(provider, scope)),
            ).fetchone()
            paused = self._state.paused_until(connection, provider, now)
        return None if due is None else max(0.0, due - now, paused - now)

    def backlog(self, provider: str | None = None, scope: str | None = None) -> Backlog:
        """Counts of undelivered jobs: of one provider and scope, or of all."""
        spooled = len(self._spool.files(provider, scope))
        if not self._file.exists():
            return Backlog(waiting=spooled)
        ((condition, values),) = _conditions(self._db(), provider, scope)
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
        reopened = Outbox(self.path.parent, self._settings, server_url=self._file.server_url, clock=self._given_clock)
        reopened._token = self._token
        return reopened

    def close(self) -> None:
        """Close the file. Jobs and leases stay."""
        with self._lock:
            self._closed = True
            self._file.close()

    def _release_jobs_of_ended_processes(self, provider: str, scope: str, now: float) -> bool:
        """Release the jobs of processes that are known to have ended; True when there were some."""
        leased = f"SELECT DISTINCT owner FROM jobs WHERE {_HEADS} AND owner <> ? AND until > ?"
        values = (*_head_values(provider, scope), self._owner, now)
        with self._db(scope).reading() as connection:
            owners = [row[0] for row in connection.execute(leased, values)]
        ended = [owner for owner in owners if has_ended(owner.rpartition("-")[0])]
        if ended:
            with self._db().writing() as connection:
                statement = "UPDATE jobs SET owner = NULL, until = NULL WHERE owner = ?"
                connection.executemany(statement, [(owner,) for owner in ended])
        return bool(ended)

    def _row(self, provider: str, scope: str, job: NewJob, *, leased: bool = True) -> JobRow:
        key, created = stored_key(provider, job.key or uuid.uuid4().hex), self._clock()
        identity = JobIdentity(provider, scope, key, job.kind, job.session_id, created)
        payload = seal_payload(identity, job.args, job.facts)
        lease = (self._owner, self._until()) if leased else (None, None)
        return JobRow(key, provider, scope, job.kind, job.session_id, payload, created, *lease)

    @property
    def _owner(self) -> str:
        # A forked process does not have the leases of its parent.
        return f"{process_identity()}-{self._token}"

    def _until(self) -> float:
        return self._clock() + self._settings.lease_seconds

    def _pause(self, attempts: int, *, parked: bool = False) -> float:
        longest = self._settings.max_retry_seconds
        first, longest = (longest, _MAX_PARKED_PAUSE) if parked else (self._settings.first_retry_seconds, longest)
        return min(first * 2.0 ** min(attempts - 1, 40), longest) * random.uniform(0.5, 1.0)

    def _clock(self) -> float:
        """Seconds since 1970; the nodes of a server use its clock, because one node's lease binds the others."""
        if self._given_clock is not None or not self._file.server_url:
            return (self._given_clock or time.time)()
        try:
            return self._db().current_time()
        except StorageError:
            # The job goes to the spool, and gets another lease later.
            return time.time()

    def _db(self, scope: str | None = None) -> Engine:
        """The database, for one user if a scope is given."""
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} has been closed.")
            engine = self._file.open()
        return engine if scope is None else engine.acting_for(scope or None)

    @contextmanager
    def _locked(self, provider: str, scope: str) -> Iterator[Connection]:
        """A transaction in which no other process claims jobs of a provider and scope, or reads turns for it."""
        engine = self._db(scope)
        with engine.writing() as connection:
            engine.lock_session(connection, f"outbox:{provider}:{scope}")
            yield connection


def _head_values(provider: str, scope: str) -> tuple[str, ...]:
    """The values of `_HEADS`."""
    return (provider, scope) * _HEADS.count(_WAITING)


def _conditions(
    engine: Engine, provider: str | None, scope: str | None, session_ids: Collection[str] | None = None
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Conditions that together match these jobs, each of them once; None stands for all."""
    filters = [(name, value) for name, value in (("provider", provider), ("scope", scope)) if value is not None]
    condition = " AND ".join(["1 = 1", *(f"{name} = ?" for name, _ in filters)])
    values = tuple(value for _, value in filters)
    if session_ids is None:
        yield condition, values
        return
    names = sorted(set(session_ids))
    for start in range(0, len(names), _MAX_IDS):
        among, ids = engine.dialect.one_of("session_id", names[start : start + _MAX_IDS])
        yield f"{condition} AND {among}", (*values, *ids)
