"""Stores checkpoints: written in one transaction each, durable when the call returns, and read as they were.

A checkpoint consists of serialized values, which only the framework can read. Every call names threads of one user;
threads of other users with the same name are others. Several threads and processes may write to one thread: a
checkpoint is a new row, so none replaces another. The database is `checkpoints.db` in the home, or the server that has
the record; the doctor checks it for damage, for checkpoints whose values are missing, and for changed bits.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import CorruptStoreError
from memoranda.memory.checkpoints.schema import (
    APPLICATION_ID,
    CHECKPOINT_KEY,
    FILE_NAME,
    SCHEMA,
    VALUE_KEY,
    WRITE_KEY,
    Serialized,
    checksum,
)
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, Engine
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.support.lazy_dataclass import dataclass

_FIRST_PAGE, _MAX_PAGE = 5, 50
_COLUMNS = (
    "id, thread_id, namespace, checkpoint_id, parent_id, run_id, channels, state_kind, state, metadata_kind, metadata"
)
_PUT = (
    "INSERT INTO checkpoints (user_id, thread_id, namespace, checkpoint_id, parent_id, run_id, channels, state_kind,"
    " state, metadata_kind, metadata, created_at, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    f" ON CONFLICT ({', '.join(CHECKPOINT_KEY)}) DO UPDATE SET parent_id = excluded.parent_id,"
    " run_id = excluded.run_id, channels = excluded.channels, state_kind = excluded.state_kind,"
    " state = excluded.state, metadata_kind = excluded.metadata_kind, metadata = excluded.metadata,"
    " created_at = excluded.created_at, checksum = excluded.checksum"
)
_PUT_VALUE = (
    "INSERT INTO checkpoint_values (user_id, thread_id, value_id, kind, value) VALUES (?, ?, ?, ?, ?)"
    f" ON CONFLICT ({', '.join(VALUE_KEY)}) DO NOTHING"
)
_PUT_WRITE = (
    "INSERT INTO checkpoint_writes (user_id, thread_id, namespace, checkpoint_id, task_id, number, task_path, channel,"
    f" kind, value, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT ({', '.join(WRITE_KEY)})"
)
_REPLACE_WRITE = (
    "UPDATE SET task_path = excluded.task_path, channel = excluded.channel, kind = excluded.kind,"
    " value = excluded.value, checksum = excluded.checksum"
)


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


class CheckpointStore:
    """The checkpoints of one user; None is the home itself."""

    def __init__(self, database: LazyDatabase, user: str | None) -> None:
        self.user = user or ""
        self._database = database
        self._acting_for = user

    @property
    def engine(self) -> Engine:
        """The database, opened or created now."""
        return self._database.open().acting_for(self._acting_for)

    def exists(self) -> bool:
        """Whether there may be checkpoints; asking creates no file."""
        return self._database.exists()

    def put(self, checkpoint: StoredCheckpoint) -> None:
        """Store a checkpoint; one with the same key is replaced, so that a repeated call adds nothing."""
        engine = self.engine
        engine.write(lambda connection: self._put(connection, engine, checkpoint))

    def put_all(self, checkpoints: Sequence[StoredCheckpoint]) -> None:
        """Store checkpoints of any threads, each with what tasks wrote after it, in one transaction."""
        engine = self.engine

        def write(connection: Connection) -> None:
            for each in sorted(checkpoints, key=lambda checkpoint: checkpoint.key):
                self._put(connection, engine, each)
                self._put_writes(connection, each.key, each.writes)

        engine.write(write)

    def known(self, keys: Collection[CheckpointKey]) -> set[CheckpointKey]:
        """Those of the keys whose checkpoints are stored."""
        if not self.exists():
            return set()
        engine = self.engine
        names = engine.dialect.one_of("checkpoint_id", [key.checkpoint_id for key in keys])
        with engine.reading() as connection:
            rows = connection.execute(
                f"SELECT thread_id, namespace, checkpoint_id FROM checkpoints WHERE user_id = ? AND {names.text}",
                (self.user, *names.values),
            )
            return {CheckpointKey(*row) for row in rows}.intersection(keys)

    def _put(self, connection: Connection, engine: Engine, checkpoint: StoredCheckpoint) -> None:
        key = checkpoint.key
        channels = {channel: value.value_id for channel, value in checkpoint.values.items()}
        values = {channels[channel]: value for channel, value in checkpoint.values.items()}
        sealed = (
            checkpoint.parent_id, checkpoint.run_id, json.dumps(channels), checkpoint.state.kind,
            checkpoint.state.data, checkpoint.metadata.kind, checkpoint.metadata.data, time.time(),
        )  # fmt: skip
        lock_thread(engine, connection, self.user, key.thread_id)
        known = self._known_values(connection, engine, key.thread_id, values)
        new = [
            (self.user, key.thread_id, value_id, value.kind, value.data)
            for value_id, value in values.items()
            if value_id not in known
        ]
        if new:
            connection.executemany(_PUT_VALUE, new)
        connection.execute(_PUT, (self.user, *key, *sealed, checksum(sealed)))

    def put_writes(self, key: CheckpointKey, writes: Sequence[Write]) -> None:
        """Store what a task wrote after a checkpoint; what it has written already stays, except negative numbers."""
        if writes:
            self.engine.write(lambda connection: self._put_writes(connection, key, writes))

    def _put_writes(self, connection: Connection, key: CheckpointKey, writes: Sequence[Write]) -> None:
        for each in writes:
            sealed = (each.task_path, each.channel, *each.value)
            connection.execute(
                f"{_PUT_WRITE} DO {_REPLACE_WRITE if each.number < 0 else 'NOTHING'}",
                (self.user, *key, each.task_id, each.number, *sealed, checksum(sealed)),
            )

    def get(self, thread_id: str, namespace: str, checkpoint_id: str | None = None) -> StoredCheckpoint | None:
        """A checkpoint, or the latest one; None if there is none."""
        condition, values = self._condition(thread_id, namespace, checkpoint_id)
        if not self.exists():
            return None
        engine = self.engine
        with engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM checkpoints WHERE {condition} ORDER BY checkpoint_id DESC LIMIT 1", values
            ).fetchall()
            found = self._load(connection, engine, rows)
        return found[0] if found else None

    def iter_checkpoints(
        self,
        thread_id: str | None = None,
        namespace: str | None = None,
        checkpoint_id: str | None = None,
        *,
        before: str | None = None,
        limit: int | None = None,
        matches: Callable[[Serialized], bool] = lambda metadata: True,
    ) -> Iterator[StoredCheckpoint]:
        """The checkpoints that match, newest first, read in pages; `matches` is asked about their metadata."""
        condition, values = self._condition(thread_id, namespace, checkpoint_id)
        if before:
            condition, values = f"{condition} AND checkpoint_id < ?", [*values, before]
        left, size, position = limit, _FIRST_PAGE, Condition("", ())
        while (left is None or left > 0) and self.exists():
            engine = self.engine
            with engine.reading() as connection:
                rows = connection.execute(
                    f"SELECT {_COLUMNS} FROM checkpoints WHERE {condition}{position.text}"
                    f" ORDER BY checkpoint_id DESC, id DESC LIMIT {size}",
                    (*values, *position.values),
                ).fetchall()
                chosen = [row for row in rows if matches(Serialized(row[9], bytes(row[10])))][:left]
                found = self._load(connection, engine, chosen)
            yield from found
            if len(rows) < size:
                return
            left = None if left is None else left - len(found)
            # The same id may be in several threads, copied from one to another.
            position = Condition(
                " AND (checkpoint_id < ? OR (checkpoint_id = ? AND id < ?))", (rows[-1][3], rows[-1][3], rows[-1][0])
            )
            size = min(2 * size, _MAX_PAGE)

    def chain(self, connection: Connection, thread_id: str, namespace: str) -> dict[str, ChainLink]:
        """The checkpoints of a namespace by id, without their values, in the transaction of the caller."""
        rows = connection.execute(
            "SELECT checkpoint_id, parent_id, channels, metadata_kind, metadata FROM checkpoints"
            " WHERE user_id = ? AND thread_id = ? AND namespace = ?",
            (self.user, thread_id, namespace),
        )
        return {
            checkpoint_id: ChainLink(checkpoint_id, parent_id, json.loads(channels), Serialized(kind, bytes(metadata)))
            for checkpoint_id, parent_id, channels, kind, metadata in rows
        }

    def read_values(
        self, connection: Connection, engine: Engine, thread_ids: Sequence[str], value_ids: Sequence[str]
    ) -> dict[tuple[str, str], Serialized]:
        threads = engine.dialect.one_of("thread_id", thread_ids)
        names = engine.dialect.one_of("value_id", value_ids)
        rows = connection.execute(
            "SELECT thread_id, value_id, kind, value FROM checkpoint_values"
            f" WHERE user_id = ? AND {threads.text} AND {names.text}",
            (self.user, *threads.values, *names.values),
        )
        return {(thread, value_id): Serialized(kind, bytes(value)) for thread, value_id, kind, value in rows}

    def read_writes(
        self, connection: Connection, engine: Engine, thread_ids: Sequence[str], checkpoint_ids: Sequence[str]
    ) -> dict[CheckpointKey, list[Write]]:
        """The writes after checkpoints, in the order in which a step applies them."""
        threads = engine.dialect.one_of("thread_id", thread_ids)
        names = engine.dialect.one_of("checkpoint_id", checkpoint_ids)
        rows = connection.execute(
            "SELECT thread_id, namespace, checkpoint_id, task_id, number, channel, kind, value, task_path"
            f" FROM checkpoint_writes WHERE user_id = ? AND {threads.text} AND {names.text}"
            " ORDER BY task_path, task_id, number",
            (self.user, *threads.values, *names.values),
        )
        found: dict[CheckpointKey, list[Write]] = {}
        for thread, namespace, checkpoint_id, task_id, number, channel, kind, value, task_path in rows:
            write = Write(task_id, number, channel, Serialized(kind, bytes(value)), task_path)
            found.setdefault(CheckpointKey(thread, namespace, checkpoint_id), []).append(write)
        return found

    def _load(self, connection: Connection, engine: Engine, rows: Sequence[Any]) -> list[StoredCheckpoint]:
        """Rows with `_COLUMNS`, with their values and writes."""
        if not rows:
            return []
        threads = list(dict.fromkeys(row[1] for row in rows))
        channels: list[dict[str, str]] = [json.loads(row[6]) for row in rows]
        names = list(dict.fromkeys(value_id for each in channels for value_id in each.values()))
        values = self.read_values(connection, engine, threads, names)
        writes = self.read_writes(connection, engine, threads, [row[3] for row in rows])
        found = []
        for row, named in zip(rows, channels, strict=True):
            key = CheckpointKey(*row[1:4])
            found.append(
                StoredCheckpoint(
                    key,
                    Serialized(row[7], bytes(row[8])),
                    Serialized(row[9], bytes(row[10])),
                    self._values_of(key, named, values),
                    row[4],
                    row[5],
                    writes.get(key, []),
                )
            )
        return found

    def _values_of(
        self, key: CheckpointKey, named: Mapping[str, str], values: Mapping[tuple[str, str], Serialized]
    ) -> dict[str, Serialized]:
        try:
            return {channel: values[key.thread_id, value_id] for channel, value_id in named.items()}
        except KeyError as error:
            raise CorruptStoreError(
                f"A value of checkpoint {key.checkpoint_id} of thread {key.thread_id} is missing in "
                f"{self.engine.location}. Resume from an earlier checkpoint; 'memoranda doctor' lists what is missing."
            ) from error

    def _known_values(
        self, connection: Connection, engine: Engine, thread_id: str, values: Mapping[str, Serialized]
    ) -> set[str]:
        names = engine.dialect.one_of("value_id", list(values))
        rows = connection.execute(
            f"SELECT value_id FROM checkpoint_values WHERE user_id = ? AND thread_id = ? AND {names.text}",
            (self.user, thread_id, *names.values),
        )
        return {value_id for (value_id,) in rows}

    def _condition(
        self, thread_id: str | None, namespace: str | None, checkpoint_id: str | None
    ) -> tuple[str, list[str]]:
        named = {"thread_id": thread_id, "namespace": namespace, "checkpoint_id": checkpoint_id}
        given = {name: value for name, value in named.items() if value is not None}
        return " AND ".join(["user_id = ?", *(f"{name} = ?" for name in given)]), [self.user, *given.values()]


def lock_thread(engine: Engine, connection: Connection, user: str, thread_id: str) -> None:
    """Lock a thread until the transaction ends: a value must not be removed while a new checkpoint refers to it."""
    engine.lock_session(connection, f"checkpoints:{user}:{thread_id}")


def open_checkpoints(home: Path, record: Path | str = "") -> LazyDatabase:
    """The database, opened or created at its first use; on the server of the record, if `record` is a URL."""
    server_url = record if isinstance(record, str) else ""
    return LazyDatabase(home / FILE_NAME, SCHEMA, APPLICATION_ID, server_url=server_url)
