"""Jobs of the outbox: as they are queued, stored and delivered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Kind = Literal["turn", "memory_write", "session_end", "session_switch", "delegation", "forget"]
DAMAGED = "it has changed on the disk since it was queued, so it is not sent"
"""The error of a job that cannot be read, or does not match its checksum."""


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
