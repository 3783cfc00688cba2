"""Jobs of the outbox: a notification for a provider, as it is given, found in the record, delivered and listed.

A job has no text of its own. It names what the record has: the messages of a completed turn, or a row of notifications.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from memoranda.support.lazy_dataclass import dataclass

Kind = Literal["turn", "memory_write", "session_end", "session_switch", "delegation", "forget"]
DAMAGED = "it has changed on the disk since it was recorded, so it is not sent"
"""The error of a job whose notification does not match its checksum."""


class Found(NamedTuple):
    """What the record has for a provider: a turn from its first to its last message, or a notification.

    `owner` is the process that delivers it while it lives; empty: any process. `created` is when it was
    recorded; of a turn, when it was said.
    """

    key: str
    kind: str
    session_id: str
    first_message: int | None = None
    last_message: int | None = None
    notification: int | None = None
    owner: str = ""
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """A notification that this process delivers: `args` in their order, `facts` by name.

    `orphan`: a process that has ended put it into the outbox. `created` is when it was recorded. `attempts` counts
    failed deliveries; at least 1 if there was any, even after parked jobs were retried. `notification` is its row in
    the record, None for a turn.
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
    notification: int | None = None


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
