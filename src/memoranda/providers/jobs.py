"""What a provider is to be told, on its way: as it is queued, as it is stored, and as it is delivered."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from memoranda.errors import StorageError

Kind = Literal["turn", "memory_write", "session_end", "session_switch", "delegation"]


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
class NewJob:
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


class JobRow(NamedTuple):
    """A job as it goes into the outbox; `owner` is the process that holds it, until a moment."""

    key: str
    provider: str
    scope: str
    kind: str
    session_id: str
    payload: str
    created: float
    owner: str | None
    until: float | None


def job_from_row(fields: list[Any], *, orphan: bool) -> Job:
    """A job as it was read from the outbox, without who held it."""
    number, provider, key, kind, session_id, text, attempts = fields
    payload = json.loads(text)
    return Job(number, provider, key, kind, session_id, payload["args"], payload["facts"], attempts, orphan)


def payload_json(payload: object) -> str:
    """Any arguments as JSON; what JSON does not know is written as text."""
    try:
        return json.dumps(payload, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"What a provider is to be told cannot be written down: {error}.") from error
