"""What has yet to reach a provider: a durable queue in one SQLite file of the home.

A job is durable when `put` returns and is there until it was delivered; there is no other way out. Jobs of a session
are delivered in their order: only its first one can be claimed, so one that fails holds up its own session and no
other. Whoever puts a job here holds it, and renews that while it lives: providers keep state of their sessions, so a
process tells its own provider what happened in its own sessions. If the process ends or dies, its jobs become free, and
another one delivers them, if need be once more, with the same key. Jobs belong to a provider and a scope, the user that
the provider was started for: what one user said is never delivered through a provider that was started for another.

A job that keeps failing while others get through is parked: it stays, it is shown, and its session goes on without it.
While nothing gets through at all, the other side is down, and nothing is parked for it.
"""

import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.db.orphaned_wal import database_exists
from memoranda.db.position import Position
from memoranda.db.schema import open_database
from memoranda.db.sqlite import Database
from memoranda.errors import StorageError
from memoranda.providers.jobs import Backlog, Job, JobRow, Kind, NewJob, job_from_row, payload_json
from memoranda.providers.outbox_schema import APPLICATION_ID, SCHEMA
from memoranda.providers.outbox_state import (
    last_delivered,
    note_delivery,
    pause_deliveries,
    paused_until,
    place,
    resume_deliveries,
    write_position,
)
from memoranda.providers.settings import ProviderSettings
from memoranda.providers.spool import Spool
from memoranda.support.processes import has_ended, process_identity

FILE_NAME = "outbox.db"
_MAX_RETRY_AFTER = 86_400.0

# The first job of every session, found from session to session: as quick with many jobs waiting as with few.
_WAITING = "FROM jobs WHERE provider = :provider AND scope = :scope AND state = 'waiting'"
_HEADS = f"""id IN (
    WITH RECURSIVE sessions (name) AS (
        SELECT min(session_id) {_WAITING}
        UNION ALL
        SELECT (SELECT min(session_id) {_WAITING} AND session_id > sessions.name) FROM sessions WHERE name IS NOT NULL
    )
    SELECT (SELECT min(id) {_WAITING} AND session_id = sessions.name) FROM sessions
)"""
# Due, and not another's. Moments too far ahead were written by a clock that has been set.
_FREE = """(next_try <= :now OR next_try > :too_late)
    AND (owner = :owner OR until IS NULL OR until <= :now OR until > :too_long)"""
_FIELDS = "id, provider, key, kind, session_id, payload, attempts, owner, until"
_INSERT = """INSERT INTO jobs (key, provider, scope, kind, session_id, payload, created, owner, until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""


class Outbox:
    """The queue of one home, shared by any number of processes. The file is made when it is first needed."""

    def __init__(
        self,
        home: Path,
        settings: ProviderSettings | None = None,
        *,
        wait: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`wait` is how long somebody else may keep the file locked before StorageError is raised."""
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
        """Queue something; it is durable when this returns its key. A key that is queued already adds nothing."""
        row = self._row(provider, scope, NewJob(kind, session_id, args, facts, key))
        with self._db().writing() as connection:
            connection.execute(_INSERT, row)
        return row.key

    def spool(self, provider: str, scope: str, new: NewJob, *, held: bool = True) -> None:
        """Keep something while the file cannot be written; it is durable when this returns, and taken in later.

        Raises OSError when the disk does not take it either.
        """
        self._spool.keep(self._row(provider, scope, new, held=held))

    def has_spooled(self, provider: str, scope: str = "") -> bool:
        """Whether anything waits to be taken in, whoever put it aside."""
        return bool(self._spool.files(provider, scope))

    def load_spooled(self, provider: str, scope: str = "") -> None:
        """Queue what was put aside, as if it had been queued then; the process that did so holds it while it lives."""
        if not self.has_spooled(provider, scope):
            return
        with self._db().writing() as connection:
            files = self._spool.files(provider, scope)
            for row in filter(None, map(self._spool.read, files)):
                connection.execute(_INSERT, row._replace(until=self._until()) if row.owner == self._owner else row)
        for file in files:
            file.unlink(missing_ok=True)

    def place(self, provider: str, scope: str = "") -> Position | None:
        """How far the record was looked through for a provider; None when it never was."""
        aside = self._spool.place(provider, scope)
        if aside is not None or not self._exists():
            return aside
        with self._db().reading() as connection:
            return place(connection, provider, scope)

    def spool_position(self, provider: str, scope: str, start: Position) -> None:
        """Keep the place where looking begins while the file cannot be written; OSError when the disk refuses too."""
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
        """Queue what `read` finds behind the place where it was last looked, and move the place, in one commit.

        So each thing is queued once, however many processes look, and whenever one dies. For a provider for which
        nobody ever looked the place is `start`. What is not of the session `ours` is free for whoever comes first.
        """
        with self._db().writing() as connection:
            before, aside = place(connection, provider, scope), self._spool.place(provider, scope)
            reached, found = read(next(each for each in (before, aside, start) if each is not None))
            for new in found:
                connection.execute(_INSERT, self._row(provider, scope, new, held=new.session_id == ours))
            if reached != before:
                write_position(connection, provider, scope, reached)
        if aside is not None:
            self._spool.delete_position(provider, scope)
        return len(found)

    def claim(self, provider: str, scope: str = "") -> Job | None:
        """The next job that can be delivered now, for this process alone; None when there is none."""
        if not self._exists():
            return None
        now = self._clock()
        query = f"SELECT {_FIELDS} FROM jobs WHERE {_HEADS} AND {_FREE} ORDER BY id LIMIT 1"
        values = {
            "provider": provider,
            "scope": scope,
            "owner": self._owner,
            "now": now,
            "too_late": now + 2 * self._settings.longest_retry_seconds,
            "too_long": now + 2 * max(self._settings.lease_seconds, 60.0),
        }
        # Reading first: there may be nothing to do, or something that this process holds for long enough anyway.
        with self._db().reading() as connection:
            if paused_until(connection, provider, now) > now:
                return None
            row = connection.execute(query, values).fetchone()
        if row is None:
            return self.claim(provider, scope) if self._free_what_the_dead_hold(values) else None
        *fields, owner, until = row
        if owner == self._owner and until > now + self._settings.lease_seconds / 2:
            return job_from_row(fields, orphan=False)
        with self._db().writing() as connection:
            row = connection.execute(query, values).fetchone()
            if row is None:
                return None
            *fields, owner, _ = row
            held = (self._owner, self._until(), fields[0])
            connection.execute("UPDATE jobs SET owner = ?, until = ? WHERE id = ?", held)
        return job_from_row(fields, orphan=owner != self._owner)

    def renew(self, job: Job | None = None, error: str = "") -> None:
        """Keep what this process holds; `error` is shown with a job meanwhile."""
        if not self._exists():
            return
        with self._db().writing() as connection:
            connection.execute("UPDATE jobs SET until = ? WHERE owner = ?", (self._until(), self._owner))
            if job is not None and error:
                connection.execute("UPDATE jobs SET last_error = ? WHERE id = ?", (error, job.id))

    def release(self, kept: Job | None = None) -> None:
        """Let others have what this process holds, except for a job whose delivery may still be under way."""
        if self._exists():
            with self._db().writing() as connection:
                connection.execute(
                    "UPDATE jobs SET owner = NULL, until = NULL WHERE owner = ? AND id <> ?",
                    (self._owner, kept.id if kept else 0),
                )

    def delivered(self, job: Job) -> None:
        """Take a job off the queue."""
        with self._db().writing() as connection:
            connection.execute("DELETE FROM jobs WHERE id = ? AND key = ?", (job.id, job.key))
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
            given_up = others_delivered or now - since >= self._settings.patience_seconds
            parked = permanent or (attempts >= self._settings.tries and given_up)
            if retry_after is not None:
                pause_deliveries(connection, job.provider, now, now + min(retry_after, _MAX_RETRY_AFTER))
            connection.execute(
                "UPDATE jobs SET attempts = ?, first_failed = ?, next_try = ?, last_error = ?, state = ? WHERE id = ?",
                (attempts, since, now + self._pause(attempts), error, "parked" if parked else "waiting", job.id),
            )
        return parked

    def retry_parked(self, provider: str) -> int:
        """Give parked jobs another go, behind whatever was delivered since; how many there are."""
        if not self._exists():
            return 0
        with self._db().writing() as connection:
            resume_deliveries(connection, provider)
            return connection.execute(
                "UPDATE jobs SET state = 'waiting', attempts = 0, first_failed = NULL, next_try = 0"
                " WHERE state = 'parked' AND provider = ?",
                (provider,),
            ).rowcount

    def pause(self, provider: str, scope: str = "") -> float | None:
        """Seconds until something can be tried; None when nothing is waiting."""
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
        """What is waiting: of one provider and scope, or of everybody."""
        aside = len(self._spool.files(provider, scope))
        if not self._exists():
            return Backlog(waiting=aside)
        condition, values = _whose(provider, scope)
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
        return Backlog(waiting + aside, failing, parked, oldest, error[0] if error else "")

    def reopened(self) -> "Outbox":
        """The same queue, for somebody who has something to say after it was closed; it holds what this one did."""
        again = Outbox(self.path.parent, self._settings, clock=self._clock)
        again._token = self._token
        return again

    def close(self) -> None:
        """Close the file; nothing is lost by it."""
        with self._lock:
            self._closed = True
            if self._database is not None:
                self._database.close()
                self._database = None

    def _free_what_the_dead_hold(self, values: Mapping[str, Any]) -> bool:
        """Let others have what a process holds that is known to have ended; whether there was anything."""
        held = f"SELECT DISTINCT owner FROM jobs WHERE {_HEADS} AND owner <> :owner AND until > :now"
        with self._db().reading() as connection:
            owners = [row[0] for row in connection.execute(held, values)]
        dead = [owner for owner in owners if has_ended(owner.rpartition("-")[0])]
        if dead:
            with self._db().writing() as connection:
                for owner in dead:
                    connection.execute("UPDATE jobs SET owner = NULL, until = NULL WHERE owner = ?", (owner,))
        return bool(dead)

    def _row(self, provider: str, scope: str, new: NewJob, *, held: bool = True) -> JobRow:
        payload = payload_json({"args": new.args, "facts": new.facts})
        key, holder = new.key or uuid.uuid4().hex, (self._owner, self._until()) if held else (None, None)
        return JobRow(key, provider, scope, new.kind, new.session_id, payload, self._clock(), *holder)

    @property
    def _owner(self) -> str:
        # A process that was forked holds nothing of its parent's.
        return f"{process_identity()}-{self._token}"

    def _until(self) -> float:
        return self._clock() + self._settings.lease_seconds

    def _pause(self, attempts: int) -> float:
        longest = self._settings.longest_retry_seconds
        pause = self._settings.first_retry_seconds * 2.0 ** min(attempts - 1, 40)
        return min(pause, longest) * random.uniform(0.5, 1.0)

    def _exists(self) -> bool:
        return self._database is not None or database_exists(self.path)

    def _db(self) -> Database:
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} has been closed.")
            if self._database is None:
                self._database = open_database(self.path, SCHEMA, APPLICATION_ID, wait=self._wait)
            return self._database


def _whose(provider: str | None, scope: str | None) -> tuple[str, tuple[str, ...]]:
    wanted = [(name, value) for name, value in (("provider", provider), ("scope", scope)) if value is not None]
    condition = " AND ".join(f"{name} = ?" for name, _ in wanted)
    return condition or "1", tuple(value for _, value in wanted)
