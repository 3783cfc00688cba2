"""Jobs of the outbox: as they are queued, stored, delivered and listed.

The payload of a job is its arguments and facts as JSON, with a checksum by which damage on the disk is noticed.

The checksum also covers the columns that decide who receives the job and in which order. It is the first name in the
JSON, so that it can be computed over the text that follows, byte by byte.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast, get_args

from memoranda.errors import StorageError
from memoranda.storage.connection import Connection
from memoranda.storage.files.marker_file import CHECKSUM_PATTERN, checksum
from memoranda.storage.sqlite.stored_texts import readable_rows

Kind = Literal["turn", "memory_write", "session_end", "session_switch", "delegation", "forget"]
DAMAGED = "it has changed on the disk since it was queued, so it is not sent"
"""The error of a job that cannot be read, or does not match its checksum."""

_SEALED = re.compile(rf'\{{"checksum": "({CHECKSUM_PATTERN})", (?=")')


@dataclass(frozen=True, slots=True)
class Job:
    """A notification that this process delivers: `args` in their order, `facts` by name.

    `orphan`: a process that has ended put it into the outbox. `created` is when it was queued. `attempts` counts failed
    deliveries; at least 1 if there was any, even after parked jobs were retried.
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
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class NewJob:
    """A notification to be queued."""

    kind: Kind
    session_id: str
    args: Mapping[str, Any]
    facts: Mapping[str, Any]
    key: str = ""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The jobs that have not been delivered. `oldest` is a timestamp; `failing` jobs have failed at least once."""

    waiting: int = 0
    failing: int = 0
    parked: int = 0
    oldest: float | None = None
    last_error: str = ""

    def __bool__(self) -> bool:
        return bool(self.waiting or self.parked)


class JobRow(NamedTuple):
    """A job as the outbox stores it; `owner` is the process that leases it, `until` when the lease expires."""

    key: str
    provider: str
    scope: str
    kind: str
    session_id: str
    payload: str
    created: float
    owner: str | None
    until: float | None


def stored_key(provider: str, key: str) -> str:
    """The key of a job in the outbox, where several providers may have a job for the same event."""
    return f"{provider}:{key}"


class JobIdentity(NamedTuple):
    """The columns of a job that never change."""

    provider: str
    scope: str
    key: str
    kind: str
    session_id: str
    created: float


IDENTITY_COLUMNS = ", ".join(JobIdentity._fields)


class DamagedJobError(ValueError):
    """A job that cannot be read, or has changed on the disk since it was queued."""

    def __init__(self) -> None:
        super().__init__(DAMAGED)


def seal_payload(identity: JobIdentity, args: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The payload of a job with its checksum."""
    return _seal(identity, _to_json({"args": args, "facts": facts}))


def open_payload(identity: JobIdentity, payload: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments and facts of a payload; raises DamagedJobError if the job is not as it was queued."""
    try:
        content = json.loads(str(payload))
        args, facts = content["args"], content["facts"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedJobError from error
    usable = isinstance(args, dict) and isinstance(facts, dict) and identity.kind in get_args(Kind)
    if not usable or not isinstance(payload, str) or not _matches(identity, payload):
        raise DamagedJobError
    return args, facts


def is_intact(identity: JobIdentity, payload: str) -> bool:
    """Whether a job is as it was queued, as far as that can be known."""
    try:
        open_payload(identity, payload)
    except DamagedJobError:
        return False
    return True


def job_from_row(fields: Sequence[Any]) -> Job:
    """A job from the columns that the outbox reads, and whether it is an orphan; raises DamagedJobError."""
    number, payload, attempts, *columns, orphan = fields
    identity = JobIdentity(*columns)
    args, facts = open_payload(identity, payload)
    provider, kind, session_id = identity.provider, cast(Kind, identity.kind), identity.session_id
    key = identity.key.removeprefix(stored_key(provider, ""))
    return Job(number, provider, key, kind, session_id, args, facts, attempts, orphan, identity.created)


def replace_payload(identity: JobIdentity, payload: str, content: Mapping[str, Any]) -> str:
    """Put other arguments and facts in place of those of a payload; one that is damaged keeps its wrong checksum."""
    body = _to_json({name: value for name, value in content.items() if name != "checksum"})
    if is_intact(identity, payload):
        return _seal(identity, body)
    found = _SEALED.match(payload)
    return _with_checksum(found[1], body) if found is not None else body


def _matches(identity: JobIdentity, payload: str) -> bool:
    found = _SEALED.match(payload)
    return found is not None and found[1] == _checksum(identity, "{" + payload[found.end() :])


def _seal(identity: JobIdentity, body: str) -> str:
    return _with_checksum(_checksum(identity, body), body)


def _with_checksum(sum_: str, body: str) -> str:
    return f'{{"checksum": "{sum_}", {body[1:]}'


def _checksum(identity: JobIdentity, body: str) -> str:
    # Damage can change the type of a column.
    created = float(identity.created) if isinstance(identity.created, int | float) else identity.created
    columns = json.dumps([*identity[:-1], created], default=repr)
    return checksum(f"{columns}{body}".encode())


def _to_json(payload: object) -> str:
    """Arguments as JSON; a value that JSON does not know is written as text."""
    try:
        return json.dumps(payload, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"A notification for a provider cannot be written as JSON: {error}.") from error


@dataclass(frozen=True, slots=True)
class ListedJob:
    """One undelivered job; `texts` are the texts that the provider will receive, by the names of its arguments.

    `next_try` is a timestamp, in the past if it can be delivered now.
    """

    id: int
    provider: str
    kind: str
    session_id: str
    created: float
    attempts: int
    next_try: float
    last_error: str
    state: Literal["waiting", "parked"]
    texts: tuple[tuple[str, str], ...]


def list_jobs(connection: Connection, scope: str, limit: int, after: int = 0) -> list[ListedJob]:
    """The jobs of a scope in order, after the one with a number."""
    rows = readable_rows(
        connection,
        "SELECT id, provider, kind, session_id, created, attempts, next_try, last_error, state, payload FROM jobs"
        " WHERE scope = ? AND id > ? ORDER BY id LIMIT ?",
        (scope, after, limit),
    )
    return [
        ListedJob(number, provider, kind, session, created, attempts, next_try, error, state, _texts(payload))
        for number, provider, kind, session, created, attempts, next_try, error, state, payload in rows
    ]


def _texts(payload: str) -> tuple[tuple[str, str], ...]:
    try:
        args: Any = json.loads(payload)["args"]
    except (ValueError, TypeError, KeyError, RecursionError):
        # A damaged job; the doctor reports it.
        return ()
    if not isinstance(args, dict):
        return ()
    return tuple((str(name), value) for name, value in args.items() if isinstance(value, str) and value)
