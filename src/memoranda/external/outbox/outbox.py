"""The outbox: what the record has for providers and they have not received, in `home.db` or on a server.

The record is the durable queue: a completed turn is marked in it, everything else is a row of its notifications. The
outbox keeps a position in that feed for each provider and user, and a job for each notification before the position
that was not delivered: whose turn it is, how often it failed, and who delivers it. A job has no text, and the outbox
may be lost: the record is read again, and what was delivered before comes again with the same key.

Jobs of a session are delivered in their order: only its first job can be claimed, so a job that fails delays its own
session and no other. The process that notified, or found a turn of its session, holds a lease on the job and renews it
while it lives: providers keep state about sessions, so a process notifies its own provider about its own sessions. When
the process ends, its jobs become free, and another process delivers them, if necessary a second time, with the same
key. Jobs belong to a provider and a scope, the user that the provider was started for: messages of one user never go
through a provider of another.

A job that the service refuses for what it contains is parked at once, and one that keeps failing while others are
delivered is parked after `max_attempts`: commands show it, its session continues without it, and it is retried after
pauses that grow to a day, with the others of its session in their order. While nothing is delivered at all, the service
is down or refuses everything, and nothing is parked. A service that asks to wait (`retry_after`) gets nothing from any
process until then.
"""

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.external.outbox import schema
from memoranda.external.outbox.backfill import BackfillState, EarlierTurn, read_state, write_state
from memoranda.external.outbox.jobs import DAMAGED, Backlog, Found, Job, Kind, ListedJob, NewJob
from memoranda.external.outbox.record_feed import DamagedNotificationError, OpenRecord, RecordFeed
from memoranda.external.outbox.recorded_turns import join_turns
from memoranda.external.settings import ProviderSettings
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.support.processes import has_ended, process_identity

_log = logging.getLogger(__name__)

# The first job of every session, found from session to session: as fast with many waiting jobs as with few.
_WAITING = "FROM jobs WHERE provider = ? AND user_id = ? AND state = 'waiting'"
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
_FOUND = "key, kind, session_id, first_message, last_message, notification"
_INSERT = f"""INSERT INTO jobs (provider, user_id, created, owner, until, {_FOUND})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (provider, user_id, key) DO NOTHING"""
_PARK = "UPDATE jobs SET state = 'parked', attempts = attempts + 1, last_error = ? WHERE id = ?"
# SQLite accepts no more than 32,766 values in a statement.
_MAX_IDS = 10_000
_MAX_RETRY_AFTER = 86_400.0
_MAX_PARKED_PAUSE = 86_400.0


class _Row(NamedTuple):
    """A row of `jobs` that can be claimed: its number, its lease, and what it names in the record."""

    id: int
    attempts: int
    created: float
    owner: str | None
    until: float | None
    key: str
    kind: Kind
    session_id: str
    first_message: int | None
    last_message: int | None
    notification: int | None

    @property
    def found(self) -> Found:
        return Found(*self[5:])


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
        record: OpenRecord | None = None,
    ) -> None:
        """`wait` is how many seconds another process may keep the file locked before StorageError is raised.

        `server_url` names the server that has the tables for all nodes, instead of the file in the home. `record`
        returns the home's record if the caller has it open, and creates it if it does not exist.
        """
        self._file = schema.outbox_database(home, server_url, wait=wait)
        self.path = self._file.path
        self._record = RecordFeed(home, server_url, record)
        self._settings = settings or ProviderSettings()
        self._given_clock = clock
        self._lock = threading.Lock()
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
        leased: bool = True,
    ) -> str:
        """Record a notification and queue it; it is durable when this returns its key.

        A key that the provider has already adds nothing. A job that is not `leased` is for the next process that
        starts the provider.
        """
        key = key or uuid.uuid4().hex
        self.record(provider, scope, NewJob(kind, session_id, args, facts, key), leased=leased)
        try:
            self.catch_up(provider, scope)
        except StorageError as error:
            _log.warning("A notification for %s is recorded, and queued later: %s", provider, error)
        return key

    def record(self, provider: str, scope: str, job: NewJob, *, leased: bool = True) -> None:
        """Record a notification, which `catch_up` finds; it is durable when this returns."""
        self._require_open()
        self._record.add(provider, scope, job, self._owner if leased else "", self._clock())

    def catch_up(self, provider: str, scope: str = "", *, ours: str = "", together: int = 1, hold: bool = False) -> int:
        """Queue what the record has after the stored position, and move the position, in one commit.

        So each notification is queued once, however many processes read, and whenever one dies. Turns of other sessions
        than `ours` are not leased: any process may deliver them. Up to `together` turns of a session are one job; with
        `hold`, fewer turns stay after the position until there are so many, or something else follows them.
        """
        while self._record.exists():
            # Reading takes a connection of its own, so it comes before the transaction, which checks the position.
            with self._db(scope).reading() as connection:
                before = schema.read_position(connection, provider, scope)
            reached, found = self._record.after(provider, scope, before)
            if reached == before and not found:
                return 0
            if hold and len(found) < together and all(each.notification is None for each in found):
                return 0
            rows = [self._row(provider, scope, each, ours) for each in join_turns(found, together)]
            with self._locked(provider, scope) as connection:
                if schema.read_position(connection, provider, scope) != before:
                    continue
                for row in rows:
                    connection.execute(_INSERT, row)
                schema.write_position(connection, provider, scope, reached)
            return len(found)
        return 0

    def backfill_state(self, provider: str, scope: str = "") -> BackfillState:
        """How far a provider was given what was there before it."""
        if not self._file.exists():
            return BackfillState()
        with self._db(scope).reading() as connection:
            return read_state(connection, provider, scope)

    def backfill(self, provider: str, scope: str, turns: Sequence[EarlierTurn], entries: Sequence[NewJob]) -> None:
        """Queue turns and entries from before a provider was in use, and note in the same commit how far that came."""
        for entry in entries:
            # Recorded first: an entry whose state is lost is recorded again under the same key.
            self.record(provider, scope, entry, leased=False)
        self.catch_up(provider, scope)
        with self._locked(provider, scope) as connection:
            for turn in turns:
                connection.execute(_INSERT, self._row(provider, scope, turn.as_found(), ""))
            state = read_state(connection, provider, scope)
            last = max((turn.last_message for turn in turns), default=0)
            known = state.entries.union(entry.key for entry in entries)
            write_state(connection, provider, scope, BackfillState(max(state.last_message, last), known))

    def claim(self, provider: str, scope: str = "") -> Job | None:
        """Lease the next job that can be delivered now; None when there is none.

        Jobs whose text was forgotten are dropped, and damaged ones are parked.
        """
        while self._file.exists() and (claimed := self._claim_row(provider, scope)) is not None:
            row, orphan = claimed
            try:
                content = self._record.content(scope, row.found)
            except DamagedNotificationError as error:
                _log.error("Job %d for the memory provider %s is parked: %s", row.id, provider, error)
                self._execute(_PARK, (str(error), row.id))
                continue
            if content is not None:
                return Job(
                    row.id,
                    provider,
                    row.key,
                    row.kind,
                    row.session_id,
                    content.args,
                    content.facts,
                    row.attempts,
                    orphan,
                    row.created,
                    row.notification,
                )
            self._execute("DELETE FROM jobs WHERE id = ?", (row.id,))
        return None

    def _claim_row(self, provider: str, scope: str) -> tuple[_Row, bool] | None:
        """Lease the next row that is due; returns it, and whether a process that has ended had put it here."""
        now = self._clock()
        # A deletion comes before everything else: what a person wants forgotten must not wait.
        query = (
            f"SELECT id, {_ATTEMPTS}, created, owner, until, {_FOUND} FROM jobs WHERE {_HEADS} AND {_FREE}"
            " ORDER BY CASE WHEN kind = 'forget' THEN 0 ELSE 1 END, id LIMIT 1"
        )
        too_late = now + 2 * self._settings.max_retry_seconds
        too_long = now + 2 * max(self._settings.lease_seconds, 60.0)
        values = (*_head_values(provider, scope), now, too_late, self._owner, now, too_long)
        # Reading first: there may be no job, or one that is leased for long enough.
        with self._db(scope).reading() as connection:
            if schema.paused_until(connection, provider, now) > now:
                return None
            found = connection.execute(query, values).fetchone()
        if found is None:
            released = self._release_jobs_of_ended_processes(provider, scope, now)
            return self._claim_row(provider, scope) if released else None
        row = _Row(*found)
        if row.owner == self._owner and (row.until or 0.0) > now + self._settings.lease_seconds / 2:
            return row, False
        with self._locked(provider, scope) as connection:
            found = connection.execute(query, values).fetchone()
            if found is None:
                return None
            row = _Row(*found)
            lease = (self._owner, self._until(), row.id)
            connection.execute("UPDATE jobs SET owner = ?, until = ? WHERE id = ?", lease)
        return row, row.owner != self._owner

    def renew(self, job: Job | None = None, error: str = "") -> None:
        """Renew the leases of this process; `error` is shown with a running job meanwhile."""
        if not self._file.exists():
            return
        with self._db().writing() as connection:
            connection.execute("UPDATE jobs SET until = ? WHERE owner = ?", (self._until(), self._owner))
            if job is not None and error:
                connection.execute("UPDATE jobs SET last_error = ? WHERE id = ?", (error, job.id))

    def release(self, running: Job | None = None) -> None:
        """Release the leases of this process, except that of a job whose delivery may still be running."""
        if self._file.exists():
            with self._db().writing() as connection:
                connection.execute(
                    "UPDATE jobs SET owner = NULL, until = NULL WHERE owner = ? AND id <> ?",
                    (self._owner, running.id if running else 0),
                )

    def delivered(self, job: Job) -> None:
        """Remove a delivered job, and its notification first: a job without one delivers nothing."""
        now = self._clock()
        if job.notification is not None:
            self._record.everyone().feed.notifications.remove([job.notification])
        with self._db().writing() as connection:
            connection.execute("DELETE FROM jobs WHERE id = ? AND key = ?", (job.id, job.key))
            schema.note_delivery(connection, job.provider, now)

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
            others_delivered = retry_after is None and schema.last_delivered(connection, job.provider) > since
            parked = permanent or (attempts >= self._settings.max_attempts and others_delivered)
            if retry_after is not None:
                schema.pause_deliveries(connection, job.provider, now, now + min(retry_after, _MAX_RETRY_AFTER))
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
        parked = "provider = ? AND user_id = ? AND state = 'parked' AND last_error <> ?"
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
            schema.resume_deliveries(connection, provider)
            return connection.execute(
                "UPDATE jobs SET state = 'waiting', attempts = 0, first_failed = NULL, next_try = 0"
                f" WHERE (state = 'parked' OR attempts > 0) AND {condition}",
                values,
            ).rowcount

    def list_jobs(self, scope: str, limit: int, *, after: int = 0) -> list[ListedJob]:
        """The undelivered jobs of a scope in the order of their delivery, after the one with a number."""
        self._queue_recorded(None, scope)
        if not self._file.exists():
            return []
        with self._db(scope).reading() as connection:
            rows = connection.execute(
                f"SELECT id, provider, created, attempts, next_try, last_error, state, {_FOUND} FROM jobs"
                " WHERE user_id = ? AND id > ? ORDER BY id LIMIT ?",
                (scope, after, limit),
            ).fetchall()
        return [self._as_listed(scope, row[:7], Found(*row[7:])) for row in rows]

    def _as_listed(self, scope: str, columns: Sequence[Any], found: Found) -> ListedJob:
        number, provider, created, attempts, next_try, error, state = columns
        try:
            content = self._record.content(scope, found)
        except DamagedNotificationError:
            # The doctor reports it.
            content = None
        args = {} if content is None else content.args
        texts = tuple((name, value) for name, value in args.items() if isinstance(value, str) and value)
        kind, session_id = found.kind, found.session_id
        return ListedJob(number, provider, kind, session_id, created, attempts, next_try, error, state, texts)

    def drop(self, provider: str | None, scope: str | None = "", session_ids: Collection[str] | None = None) -> int:
        """Remove jobs that no provider may receive any more, and return how many; None stands for all.

        One whose delivery is running may still arrive.
        """
        self._queue_recorded(provider, scope)
        if self._record.exists():
            self._record.everyone().feed.notifications.remove_of(provider, scope, session_ids)
        if not self._file.exists():
            return 0
        with self._db().writing() as connection:
            return sum(
                connection.execute(f"DELETE FROM jobs WHERE {condition}", values).rowcount
                for condition, values in _conditions(self._db(), provider, scope, session_ids)
            )

    def count(self, provider: str | None, scope: str, session_ids: Collection[str] | None = None) -> int:
        """How many jobs `drop` would remove."""
        self._queue_recorded(provider, scope)
        if not self._file.exists():
            return 0
        with self._db().reading() as connection:
            return sum(
                connection.execute(f"SELECT count(*) FROM jobs WHERE {condition}", values).fetchone()[0]
                for condition, values in _conditions(self._db(), provider, scope, session_ids)
            )

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
            paused = schema.paused_until(connection, provider, now)
        return None if due is None else max(0.0, due - now, paused - now)

    def backlog(self, provider: str | None = None, scope: str | None = None) -> Backlog:
        """Counts of undelivered jobs: of one provider and scope, or of all."""
        self._queue_recorded(provider, scope)
        if not self._file.exists():
            return Backlog()
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
        return Backlog(waiting, failing, parked, oldest, error[0] if error else "")

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
        self._record.close()

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

    def _queue_recorded(self, provider: str | None, scope: str | None) -> None:
        """Queue what was recorded for providers and not read yet, so that it is counted and listed."""
        if self._record.exists():
            for recipient in self._record.everyone().feed.notifications.recipients(provider, scope):
                self.catch_up(*recipient)

    def _row(self, provider: str, scope: str, found: Found, ours: str) -> tuple[Any, ...]:
        *columns, owner, created = found
        if found.notification is None and found.session_id == ours:
            owner = self._owner
        lease = (owner, self._until()) if owner else (None, None)
        return (provider, scope, created, *lease, *columns)

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
            # A notification is recorded all the same; it gets its lease when it is read.
            return time.time()

    def _db(self, scope: str | None = None) -> Engine:
        """The database, for one user if a scope is given."""
        with self._lock:
            self._require_open()
            engine = self._file.open()
        return engine if scope is None else engine.acting_for(scope or None)

    def _execute(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._db().writing() as connection:
            connection.execute(statement, values)

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.path} has been closed.")

    @contextmanager
    def _locked(self, provider: str, scope: str) -> Iterator[Connection]:
        """A transaction in which no other process claims jobs of a provider and scope, or reads turns for it."""
        engine = self._db(scope)
        with engine.writing() as connection:
            engine.lock_session(connection, f"outbox:{provider}:{scope}")
            yield connection


def _head_values(provider: str, scope: str) -> tuple[str, ...]:
    return (provider, scope) * _HEADS.count(_WAITING)


def _conditions(
    engine: Engine, provider: str | None, scope: str | None, session_ids: Collection[str] | None = None
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Conditions that together match these jobs, each of them once; None stands for all."""
    filters = [(name, value) for name, value in (("provider", provider), ("user_id", scope)) if value is not None]
    condition = " AND ".join(["1 = 1", *(f"{name} = ?" for name, _ in filters)])
    values = tuple(value for _, value in filters)
    if session_ids is None:
        yield condition, values
        return
    names = sorted(set(session_ids))
    for start in range(0, len(names), _MAX_IDS):
        among, ids = engine.dialect.one_of("session_id", names[start : start + _MAX_IDS])
        yield f"{condition} AND {among}", (*values, *ids)
