"""A checkpoint as it is stored: serialized values, which only the framework can read."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Serialized(NamedTuple):
    """A value as the framework's serializer encoded it, and the name of the encoding."""

    kind: str
    data: bytes

    @property
    def value_id(self) -> str:
        """The name of the value in its thread."""
        return hashlib.sha256(self.kind.encode() + b"\0" + self.data).hexdigest()


class CheckpointKey(NamedTuple):
    """Which checkpoint: a thread, a subgraph of its graph, and the framework's id."""

    thread_id: str
    namespace: str
    checkpoint_id: str


class Write(NamedTuple):
    """What a task wrote after a checkpoint; a negative `number` may be written again, any other stays."""

    task_id: str
    number: int
    channel: str
    value: Serialized
    task_path: str = ""


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint with the values of its channels, and what tasks have written after it, in the order of tasks."""

    key: CheckpointKey
    state: Serialized
    metadata: Serialized
    values: Mapping[str, Serialized]
    parent_id: str | None = None
    run_id: str | None = None
    writes: Sequence[Write] = field(default=())


class ChainLink(NamedTuple):
    """A checkpoint in the chain of its ancestors: its parent, and the channels whose values it has."""

    checkpoint_id: str
    parent_id: str | None
    channels: Mapping[str, str]
    metadata: Serialized
