"""The payload of a job: arguments and facts as JSON, with a checksum by which damage on the disk is noticed.

The checksum also covers the columns that decide who receives the job and in which order. It is the first name in the
JSON, so that it can be computed over the text that follows, byte by byte. Jobs of earlier versions have none.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast, get_args

from memoranda.errors import StorageError
from memoranda.external.outbox.jobs import DAMAGED, Job, Kind, stored_key
from memoranda.storage.connection import Connection
from memoranda.storage.files.marker_file import CHECKSUM_PATTERN, checksum
from memoranda.storage.sqlite.stored_texts import readable_rows

_SEALED = re.compile(rf'\{{"checksum": "({CHECKSUM_PATTERN})", (?=")')
_NAMES = {"args", "facts"}


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
    if not usable or not isinstance(payload, str) or not _matches(identity, payload, content):
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
    # Rows of earlier versions have the key without the provider.
    key = identity.key.removeprefix(stored_key(provider, ""))
    return Job(number, provider, key, kind, session_id, args, facts, attempts, orphan, identity.created)


def replace_payload(identity: JobIdentity, payload: str, content: Mapping[str, Any]) -> str:
    """Put other arguments and facts in place of those of a payload; one that is damaged keeps its wrong checksum."""
    body = _to_json({name: value for name, value in content.items() if name != "checksum"})
    found = _SEALED.match(payload)
    if found is not None and not is_intact(identity, payload):
        return _with_checksum(found[1], body)
    return _seal(identity, body)


@contextmanager
def resealed_jobs(connection: Connection) -> Iterator[None]:
    """Seal the jobs of a database again after a block that changes their texts; damaged ones stay as they are."""
    rows = list(readable_rows(connection, f"SELECT id, payload, {IDENTITY_COLUMNS} FROM jobs"))
    intact = [number for number, payload, *columns in rows if is_intact(JobIdentity(*columns), payload)]
    yield
    for number in intact:
        payload, *columns = connection.execute(
            f"SELECT payload, {IDENTITY_COLUMNS} FROM jobs WHERE id = ?", (number,)
        ).fetchone()
        sealed = _seal(JobIdentity(*columns), _SEALED.sub("{", payload, count=1))
        connection.execute("UPDATE jobs SET payload = ? WHERE id = ?", (sealed, number))


def _matches(identity: JobIdentity, payload: str, content: Mapping[str, Any]) -> bool:
    found = _SEALED.match(payload)
    if found is None:
        # An earlier version wrote it, which had no other names; a damaged checksum has another one.
        return set(content) == _NAMES
    return found[1] == _checksum(identity, "{" + payload[found.end() :])


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
