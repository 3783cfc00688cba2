"""The tables of checkpoints: the states of graphs, the values of their channels, and writes of unfinished steps.

States and values are opaque: only the framework that serialized them reads them. Consecutive checkpoints share most of
their values, so a value is stored once per thread, named by its hash, and a checkpoint lists the names. What neither a
hash nor an index covers has a checksum, by which a changed bit is noticed.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from memoranda.storage.connection import Connection
from memoranda.storage.schema import Column, Forgetting, RowIssue, Schema, ServerTables, Table

APPLICATION_ID = int.from_bytes(b"MemC", "big")
FILE_NAME = "checkpoints.db"

_ID = Column("id", "numbered", "", "Order of writing.")
_USER = Column("user_id", "text", "NOT NULL", "The user of a gateway; empty for the home's owner.")
_THREAD = Column("thread_id", "text", "NOT NULL", "The framework's name of the conversation.")
_NAMESPACE = Column("namespace", "text", "NOT NULL", "The subgraph; empty for the graph itself.")
_CHECKPOINT = Column("checkpoint_id", "text", "NOT NULL", "The framework's id; ids sort by time.")
_KIND = Column("kind", "text", "NOT NULL", "How the serializer encoded the value.")

CHECKSUM = Column("checksum", "integer", "NOT NULL", "CRC-32 of the columns that no index covers.")

CHECKPOINTS = Table(
    "checkpoints",
    "One row per checkpoint: the state of a graph after a step.",
    (
        _ID,
        _USER,
        _THREAD,
        _NAMESPACE,
        _CHECKPOINT,
        Column("parent_id", "text", "", "The checkpoint before it; null for the first."),
        Column("run_id", "text", "", "The run that created it, if the framework names one."),
        Column("channels", "text", "NOT NULL", "The value_id of each channel, as JSON."),
        Column("state_kind", "text", "NOT NULL", "How the serializer encoded the state."),
        Column("state", "blob", "NOT NULL", "The checkpoint without the values of its channels."),
        Column("metadata_kind", "text", "NOT NULL", "How the serializer encoded the metadata."),
        Column("metadata", "blob", "NOT NULL", "The framework's metadata."),
        Column("created_at", "real", "NOT NULL", "In seconds since 1970."),
        CHECKSUM,
    ),
)
VALUES = Table(
    "checkpoint_values",
    "One row per different value of a channel in a thread.",
    (
        _ID,
        _USER,
        _THREAD,
        Column("value_id", "text", "NOT NULL", "SHA-256 of the kind and the value."),
        _KIND,
        Column("value", "blob", "NOT NULL", "The value, serialized."),
    ),
)
WRITES = Table(
    "checkpoint_writes",
    "One row per value that a task wrote after a checkpoint.",
    (
        _ID,
        _USER,
        _THREAD,
        _NAMESPACE,
        _CHECKPOINT,
        Column("task_id", "text", "NOT NULL", "The task that wrote it."),
        Column("task_path", "text", "NOT NULL", "Where the task is in its step, which orders the writes."),
        Column("number", "integer", "NOT NULL", "Its number in the task; negative for errors, interrupts and resumes."),
        Column("channel", "text", "NOT NULL", "The channel that it goes to."),
        _KIND,
        Column("value", "blob", "NOT NULL", "The value, serialized."),
        CHECKSUM,
    ),
)
TABLES = (CHECKPOINTS, VALUES, WRITES)
CHECKPOINT_KEY = ("user_id", "thread_id", "namespace", "checkpoint_id")
VALUE_KEY = ("user_id", "thread_id", "value_id")
WRITE_KEY = (*CHECKPOINT_KEY, "task_id", "number")
SEALED = {
    CHECKPOINTS.name: (
        "parent_id", "run_id", "channels", "state_kind", "state", "metadata_kind", "metadata", "created_at",
    ),
    WRITES.name: ("task_path", "channel", "kind", "value"),
}  # fmt: skip
"""The columns that a checksum covers, by table. SQLite compares the others with an index; a value has its own hash."""


class Serialized(NamedTuple):
    """A value as the framework's serializer encoded it, and the name of the encoding."""

    kind: str
    data: bytes

    @property
    def value_id(self) -> str:
        """The name of the value in its thread."""
        return hashlib.sha256(self.kind.encode() + b"\0" + self.data).hexdigest()


def checksum(sealed: Sequence[Any]) -> int:
    """The CRC-32 of columns, each with its length, so that no two lists of columns have the same input."""
    parts = [bytes(each) if isinstance(each, bytes | memoryview) else repr(each).encode() for each in sealed]
    return zlib.crc32(b"".join(b"%d:%b" % (len(part), part) for part in parts))


def _check_rows(connection: Connection, on_server: bool) -> Iterator[RowIssue]:
    """Checkpoints whose values are missing, and rows that have changed on the disk."""
    source = "the tables from a backup of the server" if on_server else "the file from a backup"
    remedy = f"restore {source}, or resume those threads from an earlier checkpoint"
    if missing := _count_incomplete(connection):
        yield RowIssue("error", f"{missing:,} checkpoints of which a value is missing", remedy)
    if changed := count_changed(connection):
        problem = f"{changed:,} rows of checkpoints that have changed on the disk since they were written"
        yield RowIssue("error", problem, remedy)


def count_changed(connection: Connection) -> int:
    """How many rows do not match their checksum, or the hash that names a value."""
    values = connection.execute("SELECT value_id, kind, value FROM checkpoint_values")
    changed = sum(not _has_its_name(*row) for row in values)
    for table, columns in SEALED.items():
        rows = connection.execute(f"SELECT checksum, {', '.join(columns)} FROM {table}")
        changed += sum(bool(checksum(sealed) != stored) for stored, *sealed in rows)
    return changed


def _has_its_name(value_id: str, kind: Any, value: Any) -> bool:
    # A changed bit can make bytes of a text, and text of bytes.
    readable = isinstance(kind, str) and isinstance(value, bytes | memoryview)
    return readable and Serialized(kind, bytes(value)).value_id == value_id


def _count_incomplete(connection: Connection) -> int:
    """How many checkpoints name a value that is not stored."""
    rows = connection.execute("SELECT user_id, thread_id, value_id FROM checkpoint_values")
    stored = {(user, thread, value_id) for user, thread, value_id in rows}
    found = connection.execute("SELECT user_id, thread_id, channels FROM checkpoints")
    return sum(
        any((user, thread, value_id) not in stored for value_id in json.loads(channels).values())
        for user, thread, channels in found
    )


SCHEMA = Schema(
    version=1,
    name="checkpoints",
    tables=TABLES,
    indexes=(
        f"CREATE UNIQUE INDEX IF NOT EXISTS idx_checkpoints ON checkpoints({', '.join(CHECKPOINT_KEY)})",
        "CREATE INDEX IF NOT EXISTS idx_checkpoints_run ON checkpoints(user_id, run_id) WHERE run_id IS NOT NULL",
        f"CREATE UNIQUE INDEX IF NOT EXISTS idx_checkpoint_values ON checkpoint_values({', '.join(VALUE_KEY)})",
        f"CREATE UNIQUE INDEX IF NOT EXISTS idx_checkpoint_writes ON checkpoint_writes({', '.join(WRITE_KEY)})",
    ),
    server=ServerTables(user_tables=tuple((table.name, "user_id") for table in TABLES)),
    # Texts are in opaque values, which `passages.py` overwrites.
    forgetting=Forgetting(texts=frozenset()),
    check_rows=_check_rows,
)
