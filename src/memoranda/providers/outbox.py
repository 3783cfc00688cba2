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

import json
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memoranda.db.schema import bring_up, refuse_newer
from memoranda.db.sqlite import Connection, Database
from memoranda.errors import StorageError
from memoranda.providers.schema import APPLICATION_ID, SCHEMA
from memoranda.providers.settings import ProviderSettings

FILE_NAME = "outbox.db"

Kind = Literal["turn", "memory_write", "session_end", "session_switch", "delegation"]

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


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be delivered by this process: `args` in their order, `facts` by name.

    `orphan` says that another process put it there, which is gone.
    """

    id: int
    provider: str
    key: str
    kind: Kind
    session_id: str
    args: dict[str, Any]
    facts: dict[str, Any]
    attempts: int
    orphan: bool


@dataclass(frozen=True, slots=True)
class New:
    """Something to be queued."""

    kind: Kind
    session_id: str
    args: Mapping[str, Any]
    facts: Mapping[str, Any]
    key: str = ""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has not been delivered. `oldest` is when the oldest of it was put here; `failing` jobs failed before."""

    waiting: int = 0
    failing: int = 0
    parked: int = 0
    oldest: float | None = None
    last_error: str = ""

    def __bool__(self) -> bool:
        return bool(self.waiting or self.parked)


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
        key = key or uuid.uuid4().hex
        payload = _as_json({"args": args, "facts": facts})
        with self._db().writing() as connection:
            values = (key, provider, scope, kind, session_id, payload, self._clock(), self._owner, self._until())
            connection.execute(_INSERT, values)
        return key

    def place(self, provider: str, scope: str = "") -> int | None:
        """How far the record was looked through for a provider; None when it never was."""
        if not self._exists():
            return None
        with self._db().reading() as connection:
            return _place(connection, provider, scope)

    def catch_up(
        self,
        provider: str,
        scope: str,
        start: int,
        read: Callable[[int], tuple[int, Sequence[New]]],
        *,
        ours: str = "",
    ) -> int:
        """Queue what `read` finds behind the place where it was last looked, and move the place, in one commit.

        So each thing is queued once, however many processes look, and whenever one dies. For a provider for which
        nobody ever looked the place is `start`. What is not of the session `ours` is free for whoever comes first.
        """
        with self._db().writing() as connection:
            before = _place(connection, provider, scope)
            place, found = read(start if before is None else before)
            for new in found:
                holder = (self._owner, self._until()) if new.session_id == ours else (None, None)
                payload = _as_json({"args": new.args, "facts": new.facts})
                values = (new.key, provider, scope, new.kind, new.session_id, payload, self._clock(), *holder)
                connection.execute(_INSERT, values)
            if place != before:
                _keep_fact(connection, _place_of(provider, scope), str(place))
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
            row = connection.execute(query, values).fetchone()
        if row is None:
            return None
        *fields, owner, until = row
        if owner == self._owner and until > now + self._settings.lease_seconds / 2:
            return _job(fields, orphan=False)
        with self._db().writing() as connection:
            row = connection.execute(query, values).fetchone()
            if row is None:
                return None
            *fields, owner, _ = row
            held = (self._owner, self._until(), fields[0])
            connection.execute("UPDATE jobs SET owner = ?, until = ? WHERE id = ?", held)
        return _job(fields, orphan=owner != self._owner)

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
            _keep_fact(connection, _last_delivery(job.provider), str(self._clock()))

    def failed(self, job: Job, error: str) -> bool:
        """Let a job be tried again later; True when it was parked instead."""
        now = self._clock()
        with self._db().writing() as connection:
            row = connection.execute(
                "SELECT attempts + 1, COALESCE(first_failed, ?) FROM jobs WHERE id = ? AND owner = ?",
                (now, job.id, self._owner),
            ).fetchone()
            if row is None:
                return False
            attempts, since = int(row[0]), float(row[1])
            parked = attempts >= self._settings.tries and (
                _last_delivered(connection, job.provider) > since or now - since >= self._settings.patience_seconds
            )
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
        return None if due is None else max(0.0, due - now)

    def backlog(self, provider: str | None = None, scope: str | None = None) -> Backlog:
        """What is waiting: of one provider and scope, or of everybody."""
        if not self._exists():
            return Backlog()
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
        return Backlog(waiting, failing, parked, oldest, error[0] if error else "")

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

    @property
    def _owner(self) -> str:
        # A process that was forked holds nothing of its parent's.
        return f"{os.getpid()}-{self._token}"

    def _until(self) -> float:
        return self._clock() + self._settings.lease_seconds

    def _pause(self, attempts: int) -> float:
        longest = self._settings.longest_retry_seconds
        pause = self._settings.first_retry_seconds * 2.0 ** min(attempts - 1, 40)
        return min(pause, longest) * random.uniform(0.5, 1.0)

    def _exists(self) -> bool:
        return self._database is not None or self.path.exists()

    def _db(self) -> Database:
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} has been closed.")
            if self._database is None:
                self._database = _open(self.path, self._wait)
            return self._database


def _job(fields: list[Any], *, orphan: bool) -> Job:
    number, provider, key, kind, session_id, text, attempts = fields
    payload = json.loads(text)
    return Job(number, provider, key, kind, session_id, payload["args"], payload["facts"], attempts, orphan)


def _as_json(payload: object) -> str:
    """Any arguments as JSON; what JSON does not know is written as text."""
    try:
        return json.dumps(payload, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"What a provider is to be told cannot be written down: {error}.") from error


def _open(path: Path, wait: float) -> Database:
    database = Database(
        path,
        application_id=APPLICATION_ID,
        inspect=lambda connection: refuse_newer(connection, SCHEMA, path),
        wait=wait,
    )
    try:
        bring_up(database, SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _last_delivery(provider: str) -> str:
    return f"last_delivered:{provider}"


def _last_delivered(connection: Connection, provider: str) -> float:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (_last_delivery(provider),)).fetchone()
    return float(row[0]) if row else 0.0


def _place_of(provider: str, scope: str) -> str:
    return f"place:{json.dumps([provider, scope])}"


def _place(connection: Connection, provider: str, scope: str) -> int | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (_place_of(provider, scope),)).fetchone()
    return int(row[0]) if row else None


def _keep_fact(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def _whose(provider: str | None, scope: str | None) -> tuple[str, tuple[str, ...]]:
    wanted = [(name, value) for name, value in (("provider", provider), ("scope", scope)) if value is not None]
    condition = " AND ".join(f"{name} = ?" for name, _ in wanted)
    return condition or "1", tuple(value for _, value in wanted)
