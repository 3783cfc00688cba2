"""Changes of whole threads of checkpoints: copy, delete, prune.

A framework may store only what changed in a channel (a delta channel of LangGraph): then a checkpoint without the value
needs its ancestors back to one that has it. Those ancestors are never removed while a checkpoint that needs them stays.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from memoranda.errors import StorageError
from memoranda.memory.checkpoints.schema import CHECKPOINTS, TABLES, VALUES, WRITES, Serialized
from memoranda.memory.checkpoints.store import ChainLink, CheckpointKey, CheckpointStore, lock_thread
from memoranda.storage.connection import Connection
from memoranda.storage.schema import Table

DeltaChannels = Callable[[Serialized], Collection[str]]
"""Given the metadata of a checkpoint, the channels whose values it may leave to its ancestors."""


class ChannelHistory(NamedTuple):
    """What one channel contributed before a checkpoint: a value to start from, and the later writes, oldest first."""

    start: Serialized | None
    writes: list[tuple[str, Serialized]]
    """Each with the id of the task that wrote it."""


def copy_thread(store: CheckpointStore, source: str, target: str) -> None:
    """Copy a thread with everything in it; checkpoints that the target has already stay as they are."""
    if not store.exists():
        return
    engine = store.engine
    with engine.writing() as connection:
        for thread_id in sorted({source, target}):
            lock_thread(engine, connection, store.user, thread_id)
        for table in TABLES:
            _copy_rows(connection, table, store.user, source, target)


def delete_threads(store: CheckpointStore, thread_ids: Iterable[str]) -> None:
    """Delete threads with everything in them."""
    if not store.exists():
        return
    engine = store.engine
    for thread_id in thread_ids:
        with engine.writing() as connection:
            lock_thread(engine, connection, store.user, thread_id)
            for table in TABLES:
                connection.execute(
                    f"DELETE FROM {table.name} WHERE user_id = ? AND thread_id = ?", (store.user, thread_id)
                )


def keep_latest(store: CheckpointStore, thread_ids: Iterable[str], delta_channels: DeltaChannels) -> None:
    """Delete all checkpoints of threads but the latest of each namespace, and the ancestors that those need."""
    if not store.exists():
        return
    engine = store.engine
    for thread_id in thread_ids:
        with engine.writing() as connection:
            lock_thread(engine, connection, store.user, thread_id)
            for namespace in _namespaces(connection, store.user, thread_id):
                chain = store.chain(connection, thread_id, namespace)
                latest = max(chain, default="")
                kept = {latest, *_needed(chain, latest, delta_channels)}
                keys = [CheckpointKey(thread_id, namespace, each) for each in chain if each not in kept]
                _delete_checkpoints(connection, store.user, keys)
            _delete_unused_values(store, connection, thread_id)


def delete_runs(store: CheckpointStore, run_ids: Sequence[str], delta_channels: DeltaChannels) -> None:
    """Delete the checkpoints of runs; raises StorageError and deletes none if a later checkpoint needs one."""
    if not store.exists() or not run_ids:
        return
    engine = store.engine
    runs = engine.dialect.one_of("run_id", run_ids)
    with engine.writing() as connection:
        rows = connection.execute(
            f"SELECT thread_id, namespace, checkpoint_id FROM checkpoints WHERE user_id = ? AND {runs.text}",
            (store.user, *runs.values),
        ).fetchall()
        removed: dict[tuple[str, str], set[str]] = {}
        for thread_id, namespace, checkpoint_id in rows:
            removed.setdefault((thread_id, namespace), set()).add(checkpoint_id)
        for thread_id in sorted({thread_id for thread_id, _ in removed}):
            lock_thread(engine, connection, store.user, thread_id)
        for (thread_id, namespace), ids in removed.items():
            chain = store.chain(connection, thread_id, namespace)
            for remaining in chain.keys() - ids:
                if needed := ids & _needed(chain, remaining, delta_channels):
                    raise StorageError(
                        f"Checkpoint {remaining} of thread {thread_id} is stored as changes since {min(needed)}, which "
                        "belongs to a run that was to be deleted. Nothing was deleted; delete the later runs too, or "
                        "the thread."
                    )
        _delete_checkpoints(connection, store.user, [CheckpointKey(*row) for row in rows])
        for thread_id in {thread_id for thread_id, _ in removed}:
            _delete_unused_values(store, connection, thread_id)


def delete_unless_continued(store: CheckpointStore, keys: Collection[CheckpointKey], *, preview: bool) -> int:
    """Delete checkpoints, but none of a thread in which another one follows them; returns how many are deleted."""
    deleted = 0
    if not store.exists():
        return deleted
    engine = store.engine
    for thread_id in sorted({key.thread_id for key in keys}):
        with engine.reading() if preview else engine.writing() as connection:
            if not preview:
                lock_thread(engine, connection, store.user, thread_id)
            parents = {
                CheckpointKey(thread_id, namespace, name): CheckpointKey(thread_id, namespace, link.parent_id or "")
                for namespace in _namespaces(connection, store.user, thread_id)
                for name, link in store.chain(connection, thread_id, namespace).items()
            }
            found = [key for key in parents if key in keys]
            if any(parent in keys for key, parent in parents.items() if key not in keys):
                continue
            deleted += len(found)
            if not preview:
                _delete_checkpoints(connection, store.user, found)
                _delete_unused_values(store, connection, thread_id)
    return deleted


def read_channel_history(
    store: CheckpointStore, thread_id: str, namespace: str, checkpoint_id: str | None, channels: Sequence[str]
) -> dict[str, ChannelHistory]:
    """For each channel, the value at the nearest ancestor that has one, and the writes since then."""
    if not store.exists():
        return {channel: ChannelHistory(None, []) for channel in channels}
    engine = store.engine
    with engine.reading() as connection:
        chain = store.chain(connection, thread_id, namespace)
        ancestors = _ancestors(chain, checkpoint_id or max(chain, default=""))
        # Newest first: a channel is complete at the first ancestor that has its value.
        starts: dict[str, str] = {}
        visited: dict[str, list[str]] = {channel: [] for channel in channels}
        for link in ancestors:
            open_channels = [channel for channel in visited if channel not in starts]
            if not open_channels:
                break
            for channel in open_channels:
                visited[channel].append(link.checkpoint_id)
                if channel in link.channels:
                    starts[channel] = link.channels[channel]
        ids = sorted({each for found in visited.values() for each in found})
        values = store.read_values(connection, engine, [thread_id], list(starts.values()))
        writes = store.read_writes(connection, engine, [thread_id], ids)
    return {
        channel: ChannelHistory(
            values[thread_id, starts[channel]] if channel in starts else None,
            [
                (write.task_id, write.value)
                for each in reversed(visited[channel])
                for write in writes.get(CheckpointKey(thread_id, namespace, each), [])
                if write.channel == channel
            ],
        )
        for channel in channels
    }


def _needed(chain: Mapping[str, ChainLink], checkpoint_id: str, delta_channels: DeltaChannels) -> set[str]:
    """The ancestors without which the delta channels of a checkpoint cannot be read."""
    if checkpoint_id not in chain:
        return set()
    link = chain[checkpoint_id]
    missing = set(delta_channels(link.metadata)) - link.channels.keys()
    needed = set()
    for ancestor in _ancestors(chain, checkpoint_id) if missing else ():
        needed.add(ancestor.checkpoint_id)
        missing -= ancestor.channels.keys()
        if not missing:
            break
    return needed


def _ancestors(chain: Mapping[str, ChainLink], checkpoint_id: str) -> list[ChainLink]:
    """The parent of a checkpoint, its parent, and so on, as far as they are stored."""
    found: dict[str, ChainLink] = {}
    link = chain.get(checkpoint_id)
    while link is not None and link.parent_id is not None and link.parent_id not in found:
        link = chain.get(link.parent_id)
        if link is not None:
            found[link.checkpoint_id] = link
    return list(found.values())


def _namespaces(connection: Connection, user: str, thread_id: str) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT namespace FROM checkpoints WHERE user_id = ? AND thread_id = ?", (user, thread_id)
    )
    return [namespace for (namespace,) in rows]


def _delete_checkpoints(connection: Connection, user: str, keys: Sequence[CheckpointKey]) -> None:
    for table in (CHECKPOINTS, WRITES):
        connection.executemany(
            f"DELETE FROM {table.name} WHERE user_id = ? AND thread_id = ? AND namespace = ? AND checkpoint_id = ?",
            [(user, *key) for key in keys],
        )


def _delete_unused_values(store: CheckpointStore, connection: Connection, thread_id: str) -> None:
    used = {
        value_id
        for namespace in _namespaces(connection, store.user, thread_id)
        for link in store.chain(connection, thread_id, namespace).values()
        for value_id in link.channels.values()
    }
    rows = connection.execute(
        "SELECT id, value_id FROM checkpoint_values WHERE user_id = ? AND thread_id = ?", (store.user, thread_id)
    ).fetchall()
    connection.executemany(
        f"DELETE FROM {VALUES.name} WHERE id = ?", [(number,) for number, value_id in rows if value_id not in used]
    )


def _copy_rows(connection: Connection, table: Table, user: str, source: str, target: str) -> None:
    columns = [column.name for column in table.columns if column.name not in ("id", "thread_id")]
    names = ", ".join(columns)
    connection.execute(
        f"INSERT INTO {table.name} (thread_id, {names}) SELECT ?, {names} FROM {table.name}"
        " WHERE user_id = ? AND thread_id = ? ORDER BY id ON CONFLICT DO NOTHING",
        (target, user, source),
    )
