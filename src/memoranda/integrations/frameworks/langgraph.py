"""LangGraph: a store whose items and a checkpointer whose checkpoints are in the home, durable, per user.

    graph = builder.compile(checkpointer=MemorandaSaver(memory), store=MemorandaStore(memory))

Items have a history and are found by their words. Checkpoints are opaque, and credentials in them are not redacted; the
messages in them are also recorded as a conversation, which is searched. Needs the package langgraph-checkpoint, which
langgraph installs (extra `langgraph`).
"""

import random
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_never, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from memoranda.integrations.frameworks import blocking_calls
from memoranda.integrations.frameworks.langchain_history import THREADS, record_thread
from memoranda.integrations.frameworks.recorded_session import RecordedSession
from memoranda.memory.checkpoints import threads
from memoranda.memory.checkpoints.schema import Serialized
from memoranda.memory.checkpoints.store import CheckpointKey, CheckpointStore, StoredCheckpoint, Write
from memoranda.types import DeleteItem, PutItem
from memoranda.types import Item as StoredItem

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from memoranda.api.memory import Memory

_SECONDS_PER_MINUTE = 60
_WHOLE_VALUE = ["$"]
_ALL_NAMESPACES = 1_000_000
_STRATEGIES = ("keep_latest", "delete")
_DELTA_COUNTERS = "counters_since_delta_snapshot"


class MemorandaStore(BaseStore):
    """The items of one user as a store of LangGraph; search needs no embeddings. Times to live are in minutes there."""

    supports_ttl = True

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads see what was stored before, and all writes are one transaction after them."""
        operations = list(ops)
        for op in operations:
            _check_labels(op)
        results = [None if isinstance(op, PutOp) else self._read(op) for op in operations]
        if changes := [_change(op) for op in operations if isinstance(op, PutOp)]:
            self._memory.items.write(changes)
        return results

    abatch = blocking_calls.asynchronous(batch)

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        items = self._memory.items
        if isinstance(op, GetOp):
            found = items.get(op.namespace, op.key, refresh=op.refresh_ttl)
            return Item(**_fields(found)) if found is not None else None
        if isinstance(op, SearchOp):
            hits = items.search(
                op.namespace_prefix,
                op.query,
                filter=op.filter,
                limit=op.limit,
                offset=op.offset,
                refresh=op.refresh_ttl,
            )
            return [SearchItem(**_fields(hit.item), score=hit.score) for hit in hits]
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        assert_never(op)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        prefixes = [each.path for each in conditions if each.match_type == "prefix"]
        # One condition narrows what is read; there may be several.
        found = self._memory.items.list_namespaces(prefix=prefixes[0] if prefixes else (), limit=_ALL_NAMESPACES)
        matching = [each for each in found if all(_matches(each, condition) for condition in conditions)]
        cut = dict.fromkeys(each[: op.max_depth] for each in matching)
        return list(cut)[op.offset : op.offset + op.limit]


def _check_labels(op: Op) -> None:
    """Refuse the namespaces that `put` and the other methods refuse, also if a caller passes operations to `batch`."""
    if isinstance(op, ListNamespacesOp):
        namespaces: Sequence[Sequence[str]] = [condition.path for condition in op.match_conditions or ()]
    else:
        namespaces = [op.namespace_prefix if isinstance(op, SearchOp) else op.namespace]
    for label in (label for namespace in namespaces for label in namespace):
        if not isinstance(label, str) or not label or "." in label:
            raise InvalidNamespaceError(f"A label is text that is not empty and has no dot, not {label!r}.")


def _matches(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _change(op: PutOp) -> PutItem | DeleteItem:
    if op.value is None:
        return DeleteItem(op.namespace, op.key)
    index = None if op.index is None or list(op.index or ()) == _WHOLE_VALUE else op.index
    ttl = None if op.ttl is None else op.ttl * _SECONDS_PER_MINUTE
    return PutItem(op.namespace, op.key, dict(op.value), ttl=ttl, index=index)


def _fields(item: StoredItem) -> dict[str, Any]:
    return {
        "namespace": item.namespace,
        "key": item.key,
        "value": item.value,
        "created_at": datetime.fromtimestamp(item.created_at, UTC),
        "updated_at": datetime.fromtimestamp(item.updated_at, UTC),
    }


class MemorandaSaver(BaseCheckpointSaver[str]):
    """The checkpoints of one user, for any number of graphs, threads and processes.

    `serde` is a serializer of LangGraph: by default its own, which writes msgpack. One that falls back to pickle is
    refused, because a program that can write a pickle into the home could run code in this process.

    The messages in the state of a thread are also a conversation of the record, unless `record` is False: they are
    found by search, and completed turns reach the providers. Those of graphs inside the graph are not.
    """

    def __init__(self, memory: "Memory", *, serde: SerializerProtocol | None = None, record: bool = True) -> None:
        super().__init__(serde=serde)
        if any(getattr(each, "pickle_fallback", False) for each in (serde, getattr(serde, "serde", None))):
            raise ValueError("Checkpoints are not stored as pickle: use a serializer without pickle_fallback.")
        self._memory = memory
        self._records = record

    def get_tuple(self, config: "RunnableConfig") -> CheckpointTuple | None:
        """The checkpoint that the config names, or the latest of its thread; None if there is none."""
        thread_id, namespace = _thread_of(config), _namespace_of(config)
        found = self._store.get(thread_id, namespace, get_checkpoint_id(config) or None)
        return None if found is None else self._as_tuple(found)

    def list(
        self,
        config: "RunnableConfig | None",
        *,
        filter: dict[str, Any] | None = None,
        before: "RunnableConfig | None" = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all, newest first; `filter` compares fields of the metadata."""
        configurable = config["configurable"] if config else {}

        def matches(metadata: Serialized) -> bool:
            if not filter:
                return True
            found = self.serde.loads_typed(metadata)
            return all(found.get(name) == value for name, value in filter.items())

        for stored in self._store.iter_checkpoints(
            str(configurable["thread_id"]) if config else None,
            configurable.get("checkpoint_ns"),
            configurable.get("checkpoint_id") or None,
            before=get_checkpoint_id(before) if before else None,
            limit=limit,
            matches=matches,
        ):
            yield self._as_tuple(stored)

    def put(
        self,
        config: "RunnableConfig",
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> "RunnableConfig":
        """Store a checkpoint, durably when the call returns; values that the thread has already are stored once."""
        state = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        described = get_checkpoint_metadata(config, metadata)
        key = CheckpointKey(_thread_of(config), _namespace_of(config), checkpoint["id"])
        run_id = described.get("run_id")
        self._store.put(
            StoredCheckpoint(
                key,
                self._serialize(state),
                self._serialize(described),
                {channel: self._serialize(value) for channel, value in checkpoint["channel_values"].items()},
                get_checkpoint_id(config),
                None if run_id is None else str(run_id),
            )
        )
        if self._records and not key.namespace:
            for channel in new_versions:
                value = checkpoint["channel_values"].get(channel)
                messages = [each for each in value if isinstance(each, BaseMessage)] if isinstance(value, list) else []
                record_thread(self._thread(key.thread_id), messages, channel)
        return _config_of(key)

    def put_writes(
        self, config: "RunnableConfig", writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote after a checkpoint, so that a resumed step does not run the task again."""
        key = CheckpointKey(_thread_of(config), _namespace_of(config), config["configurable"]["checkpoint_id"])
        rows = [
            Write(task_id, WRITES_IDX_MAP.get(channel, number), channel, self._serialize(value), task_path)
            for number, (channel, value) in enumerate(writes)
        ]
        self._store.put_writes(key, rows)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with everything in it, and its conversation."""
        self._delete_threads([str(thread_id)])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with everything in it."""
        threads.copy_thread(self._store, str(source_thread_id), str(target_thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs; raises StorageError if a later one needs their part of a delta channel."""
        threads.delete_runs(self._store, [str(run_id) for run_id in run_ids], self._delta_channels)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the latest checkpoint of each namespace and what its delta channels need, or `delete` all."""
        if strategy not in _STRATEGIES:
            raise ValueError(f"strategy is {strategy!r}, but must be one of {', '.join(_STRATEGIES)}")
        named = [str(thread_id) for thread_id in thread_ids]
        if strategy == "delete":
            self._delete_threads(named)
        else:
            threads.keep_latest(self._store, named, self._delta_channels)

    def get_delta_channel_history(
        self, *, config: "RunnableConfig", channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What delta channels contributed before a checkpoint, read in three statements."""
        found = threads.read_channel_history(
            self._store, _thread_of(config), _namespace_of(config), get_checkpoint_id(config) or None, channels
        )
        result: dict[str, DeltaChannelHistory] = {}
        for channel, history in found.items():
            writes = [(task_id, channel, self.serde.loads_typed(value)) for task_id, value in history.writes]
            result[channel] = {"writes": writes}
            if history.start is not None:
                result[channel]["seed"] = self.serde.loads_typed(history.start)
        return result

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # type: ignore[override]
        """A number that grows and a random part, so that two processes never give two values one version."""
        last = 0 if current is None else current if isinstance(current, int) else int(current.split(".")[0])
        return f"{last + 1:032}.{random.random():016}"

    async def alist(
        self,
        config: "RunnableConfig | None",
        *,
        filter: dict[str, Any] | None = None,
        before: "RunnableConfig | None" = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, each step of it outside the event loop."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await blocking_calls.read(next, found, None)) is not None:
            yield each

    aget_tuple = blocking_calls.asynchronous(get_tuple, blocking_calls.read)
    aget_delta_channel_history = blocking_calls.asynchronous(get_delta_channel_history, blocking_calls.read)
    aput = blocking_calls.asynchronous(put)
    aput_writes = blocking_calls.asynchronous(put_writes)
    adelete_thread = blocking_calls.asynchronous(delete_thread)
    acopy_thread = blocking_calls.asynchronous(copy_thread)
    adelete_for_runs = blocking_calls.asynchronous(delete_for_runs)
    aprune = blocking_calls.asynchronous(prune)

    def _thread(self, thread_id: str) -> RecordedSession:
        return RecordedSession.of(self._memory, THREADS, thread_id)

    def _delete_threads(self, thread_ids: Sequence[str]) -> None:
        threads.delete_threads(self._store, thread_ids)
        recorded = [session.id for session in map(self._thread, thread_ids) if session.row() is not None]
        if self._records and recorded:
            self._memory.sessions.delete_sessions(recorded)

    @property
    def _store(self) -> CheckpointStore:
        return self._memory.services.checkpoints_for(self._memory.user)

    def _serialize(self, value: Any) -> Serialized:
        kind, data = self.serde.dumps_typed(value)
        return Serialized(kind, bytes(data))

    def _delta_channels(self, metadata: Serialized) -> Collection[str]:
        return (self.serde.loads_typed(metadata) or {}).get(_DELTA_COUNTERS) or ()

    def _as_tuple(self, stored: StoredCheckpoint) -> CheckpointTuple:
        load, key = self.serde.loads_typed, stored.key
        parent = None if stored.parent_id is None else _config_of(key._replace(checkpoint_id=stored.parent_id))
        values = {channel: load(value) for channel, value in stored.values.items()}
        return CheckpointTuple(
            _config_of(key),
            cast("Checkpoint", {**load(stored.state), "channel_values": values}),
            load(stored.metadata),
            parent,
            [(write.task_id, write.channel, load(write.value)) for write in stored.writes],
        )


def _thread_of(config: "RunnableConfig") -> str:
    return str(config["configurable"]["thread_id"])


def _namespace_of(config: "RunnableConfig") -> str:
    return str(config["configurable"].get("checkpoint_ns", ""))


def _config_of(key: CheckpointKey) -> "RunnableConfig":
    return {
        "configurable": {
            "thread_id": key.thread_id,
            "checkpoint_ns": key.namespace,
            "checkpoint_id": key.checkpoint_id,
        }
    }
