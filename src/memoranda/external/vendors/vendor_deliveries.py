"""What a vendor receives: turns, writes of curated memory, and boundaries of sessions, as values."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memoranda.external.provider import Message

_NAMESPACE = uuid.UUID("6f6e9c1c-2f0b-5d1c-9a52-2f2f6d0a7c11")


@dataclass(frozen=True, slots=True)
class Delivery:
    """What all deliveries have.

    `key` is the same for each attempt. `attempt` is 1 at first, and more if an earlier one may have been stored
    although its answer was lost: then look for the key at the vendor before storing again. `time` is when it was
    queued, in seconds since 1970.
    """

    key: str
    attempt: int
    time: float
    session_id: str

    @property
    def may_be_stored(self) -> bool:
        return self.attempt > 1

    @property
    def iso_time(self) -> str:
        """`time` in ISO 8601, UTC."""
        return datetime.fromtimestamp(self.time, UTC).isoformat()

    @property
    def uuid(self) -> str:
        """A UUID made from the key, for vendors that let the caller choose an id."""
        return str(uuid.uuid5(_NAMESPACE, self.key))


@dataclass(frozen=True, slots=True)
class Turn(Delivery):
    """A completed turn. `messages` is its transcript with tool calls; empty if the caller has none."""

    user: str
    assistant: str
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryWrite(Delivery):
    """A write of curated memory: `action` is add, replace or remove, `target` is memory or user.

    `old_text` is the entry that a replace or a remove changed.
    """

    action: str
    target: str
    content: str
    old_text: str = ""

    @property
    def entry_id(self) -> str:
        """A name for the entry as it is now; a later write of the entry has it as its `old_entry_id`."""
        return digest(self.target, self.content.strip())

    @property
    def old_entry_id(self) -> str:
        return digest(self.target, self.old_text.strip())


@dataclass(frozen=True, slots=True)
class Delegation(Delivery):
    """The work of a delegate of the session."""

    task: str
    result: str
    child_session_id: str = ""


@dataclass(frozen=True, slots=True)
class SessionEnd(Delivery):
    """The end of a session, with its transcript."""

    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionSwitch(Delivery):
    """The change from `session_id` to another id; `rewound` keeps the id, and turns were taken back.

    `reason` is compression, branch, resume, reset, new_session, or empty.
    """

    new_session_id: str
    parent_session_id: str = ""
    reset: bool = False
    rewound: bool = False
    reason: str = ""


def digest(*parts: str, chars: int = 32) -> str:
    """A name that is made from texts: the same for the same texts, and another one for others."""
    raw = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()[:chars]


def delivery_facts(facts: Mapping[str, Any], session_id: str, now: float) -> tuple[str, int, float, str]:
    """Key, attempt, time and session of a delivery from the facts of its hook.

    A caller without an outbox has none of them: its delivery is the first of its kind.
    """
    attempt, time = facts.get("attempt"), facts.get("timestamp")
    return (
        str(facts.get("idempotency_key") or uuid.uuid4().hex),
        attempt if isinstance(attempt, int) and attempt > 0 else 1,
        float(time) if isinstance(time, int | float) and time > 0 else now,
        session_id,
    )
