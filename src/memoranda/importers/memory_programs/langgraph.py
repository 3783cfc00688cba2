"""Reads LangGraph's SQLite files: the messages and states of each thread, and the items of its store.

Every checkpoint repeats all messages so far, so the first one that has a message says when it was said. Items stay
items and checkpoints stay checkpoints, under the names that our store and our checkpointer for LangGraph use.

LangGraph writes MessagePack, in which an object is an extension: the names of its module and class, and its fields. A
program that loads it imports that module and calls that class; here only the fields are read. The values of channels
are in the bytes of their checkpoint, and are stored as these bytes: only LangGraph needs to understand them.
"""

import json
import sqlite3
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.importers.chat_messages import (
    as_text,
    content_text,
    dicts_in,
    get_text,
    parse_timestamp,
    text_message,
    to_json,
    tool_call,
    tool_result_message,
)
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedItem,
    ImportedState,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_databases import find_databases, read_database, rows, tables
from memoranda.importers.source_files import MAX_LINE_BYTES
from memoranda.memory.checkpoints.schema import Serialized
from memoranda.memory.checkpoints.store import CheckpointKey, StoredCheckpoint, Write
from memoranda.support.canonical_text import unstorable_character

_MAX_DEPTH = 100
# How LangGraph names the encodings that need neither a key nor a pickle.
_KINDS = frozenset({"msgpack", "json", "null", "bytes", "bytearray"})
# Extensions of LangGraph whose third value has the fields of an object.
_OBJECTS = frozenset({0, 1, 2, 3, 4, 5})
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
# The width of the length that follows.
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_PROGRAM = "langgraph"
_TABLES = {"checkpoints": {"thread_id", "checkpoint", "type"}, "store": {"prefix", "key", "value"}}
_CHECKPOINTS = (
    "SELECT checkpoint_id, type, length(checkpoint), checkpoint, {parent}, metadata FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id"
)
_WRITES = (
    "SELECT task_id, idx, channel, type, value, {path} FROM writes"
    " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
)
_VALUES = "channel_values"
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "tool": "tool", "function": "tool"}
_TYPES = frozenset({*_ROLES, "system", "remove", "chat"})


class LangGraph:
    name = _PROGRAM

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the databases under a path; LangGraph has no directory of its own."""
        return find_databases(path, ("checkpoints", "store"), "database") if path is not None else []

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        return read_database(item, "LangGraph", _TABLES, partial(_read, item))


def _read(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    found = tables(connection)
    if found.get("checkpoints", set()) >= _TABLES["checkpoints"]:
        yield from _read_threads(item, connection, found)
    if found.get("store", set()) >= _TABLES["store"]:
        yield from _read_items(item, connection, found["store"])


class Checkpoint(NamedTuple):
    """A checkpoint as it is read, and the bytes of its state and of the values of its channels."""

    content: dict[str, Any]
    state: Serialized
    values: dict[str, Serialized]


def split_checkpoint(data: bytes) -> Checkpoint:
    """Read a checkpoint, and cut the values of its channels out of its bytes.

    Raises ValueError when they are damaged or nested too deeply.
    """
    try:
        return _split(data)
    except (IndexError, struct.error, UnicodeError, TypeError, RecursionError) as error:
        raise ValueError(f"damaged MessagePack: {type(error).__name__}") from error


def _split(data: bytes) -> Checkpoint:
    reader = _Reader(data, 0)
    content: dict[str, Any] = {}
    values: dict[str, Serialized] = {}
    state_fields = []
    for start, name in reader.fields():
        if name == _VALUES:
            content[name] = {}
            for _, channel in reader.fields():
                value_start = reader.at
                content[name][channel] = reader.value()
                values[channel] = Serialized("msgpack", data[value_start : reader.at])
        else:
            content[name] = reader.value()
            state_fields.append(data[start : reader.at])
    state = b"\xde" + struct.pack(">H", len(state_fields)) + b"".join(state_fields)
    return Checkpoint(content, Serialized("msgpack", state), values)


class _Reader:
    """A position in the bytes; `depth` counts the values around it."""

    def __init__(self, data: bytes, depth: int) -> None:
        self._data = data
        self.at = 0
        self._depth = depth

    def value(self) -> Any:
        kind = self._take(1)[0]
        if kind < 0x80:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind < 0x90:
            return self._map(kind & 0x0F)
        if kind < 0xA0:
            return self._list(kind & 0x0F)
        if kind < 0xC0:
            return self._text(kind & 0x1F)
        return self._long_value(kind)

    def fields(self) -> Iterator[tuple[int, str]]:
        """Yield where each field of a map starts, and its name; the caller reads the value before the next field."""
        kind = self._take(1)[0]
        if kind not in _MAPS and not 0x80 <= kind < 0x90:
            raise ValueError("damaged MessagePack: it is not an object")
        for _ in range(self._length(_MAPS[kind]) if kind in _MAPS else kind & 0x0F):
            yield self.at, str(self.value())

    def _long_value(self, kind: int) -> Any:
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _NUMBERS:
            return struct.unpack(_NUMBERS[kind], self._take(struct.calcsize(_NUMBERS[kind])))[0]
        if kind in _TEXTS:
            return self._text(self._length(_TEXTS[kind]))
        if kind in _BYTES:
            return f"[{len(self._take(self._length(_BYTES[kind]))):,} bytes]"
        if kind in _LISTS:
            return self._list(self._length(_LISTS[kind]))
        if kind in _MAPS:
            return self._map(self._length(_MAPS[kind]))
        if kind in _EXTENSIONS:
            return self._extension(self._length(_EXTENSIONS[kind]))
        if kind in _FIXED_EXTENSIONS:
            return self._extension(_FIXED_EXTENSIONS[kind])
        raise ValueError("damaged MessagePack: an unknown type")

    def _extension(self, size: int) -> Any:
        code = self._take(1)[0]
        content = self._take(size)
        if code not in _OBJECTS or self._depth > _MAX_DEPTH:
            return None
        described = _Reader(content, self._depth + 1).value()
        return described[2] if isinstance(described, list) and len(described) > 2 else None

    def _list(self, count: int) -> list[Any]:
        self._enter(count)
        found = [self.value() for _ in range(count)]
        self._depth -= 1
        return found

    def _map(self, count: int) -> dict[Any, Any]:
        self._enter(count)
        found = {}
        for _ in range(count):
            key = self.value()
            found[key if isinstance(key, str) else str(key)] = self.value()
        self._depth -= 1
        return found

    def _enter(self, count: int) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("damaged MessagePack: nested too deeply")
        if count > len(self._data) - self.at:
            raise ValueError("damaged MessagePack: a list is longer than the data")

    def _text(self, size: int) -> str:
        return self._take(size).decode("utf-8", "surrogatepass")

    def _length(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise ValueError("damaged MessagePack: it ends too early")
        taken, self.at = self._data[self.at : end], end
        return taken


def _read_threads(
    item: ImportItem, connection: sqlite3.Connection, columns: Mapping[str, set[str]]
) -> Iterator[ReadEvent]:
    # Older versions have no such column, and their graphs no parents and paths.
    parent = "parent_checkpoint_id" if "parent_checkpoint_id" in columns["checkpoints"] else "NULL"
    path = "task_path" if "task_path" in columns.get("writes", ()) else "''"
    query = "SELECT thread_id, checkpoint_ns FROM checkpoints GROUP BY 1, 2 ORDER BY min(checkpoint_id)"
    for thread, namespace in connection.execute(query).fetchall():
        # A namespace is a graph inside a graph, which worked for the thread.
        own = f"{thread}/{namespace}" if namespace else str(thread)
        yield ImportedConversation(
            own,
            parent_host_id=str(thread) if namespace else None,
            relation="delegation" if namespace else None,
            names=(str(thread), str(namespace)) if namespace else (str(thread),),
        )
        seen: set[str] = set()
        for name, kind, size, blob, before, metadata in rows(
            connection, _CHECKPOINTS.format(parent=parent), (thread, namespace)
        ):
            key = CheckpointKey(str(thread), str(namespace), str(name))
            try:
                checkpoint = _checkpoint(kind, blob, size)
                described = json.loads(metadata or b"{}")
                writes = _writes(connection, path, key) if "writes" in columns else []
                if any(map(unstorable_character, (*key, *checkpoint.values))):
                    raise ValueError("its names have characters that cannot be stored")
            except (ValueError, TypeError, RecursionError) as error:
                problem = f"checkpoint {name} of thread {thread} was not read: {str(error)[:200]}"
                yield Problem(item.file, None, problem)
                continue
            run_id = as_text(described.get("run_id")) if isinstance(described, dict) else None
            stored = Serialized("json", _as_bytes(metadata or b"{}"))
            yield ImportedState(
                StoredCheckpoint(key, checkpoint.state, stored, checkpoint.values, before, run_id, writes)
            )
            for message in _messages(checkpoint.content):
                # Our checkpointer records a message under its id, too.
                message_id = get_text(message, "id") or f"{own}:{to_json(message)}"
                if message_id not in seen:
                    seen.add(message_id)
                    yield from _message_events(message, message_id, checkpoint.content.get("ts"))


def _writes(connection: sqlite3.Connection, path: str, key: CheckpointKey) -> list[Write]:
    """What tasks wrote after a checkpoint."""
    found = []
    for task, number, channel, kind, value, task_path in connection.execute(_WRITES.format(path=path), key):
        if kind not in _KINDS:
            raise ValueError(f"the format {kind} is not supported")
        found.append(Write(str(task), int(number), str(channel), Serialized(kind, _as_bytes(value)), str(task_path)))
    return found


def _checkpoint(kind: Any, blob: Any, size: int | None) -> Checkpoint:
    """Return a checkpoint; raises ValueError with the reason why it is not read, as pickles and encrypted ones."""
    if not size or size > MAX_LINE_BYTES:
        raise ValueError("it is empty or too large")
    if kind == "msgpack" and isinstance(blob, bytes):
        return split_checkpoint(blob)
    if kind != "json":
        raise ValueError(f"the format {kind} is not supported")
    content = json.loads(blob)
    values = content.get(_VALUES) if isinstance(content, dict) else None
    if not isinstance(values, dict):
        raise ValueError("it is not an object with the values of channels")
    state = {name: value for name, value in content.items() if name != _VALUES}
    return Checkpoint(_plain(content), _as_json(state), {name: _as_json(value) for name, value in values.items()})


def _as_json(value: Any) -> Serialized:
    return Serialized("json", json.dumps(value).encode())


def _as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value or b"")


def _plain(value: Any) -> Any:
    """Return a value of the older JSON format with the fields of objects in place of their constructors."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        if value.get("type") == "constructor" and "lc" in value:
            return _plain(value.get("kwargs"))
        return {name: _plain(field) for name, field in value.items()}
    return value


def _messages(checkpoint: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of all channels; usually the channel is called `messages`."""
    channels = checkpoint.get("channel_values")
    for name, value in channels.items() if isinstance(channels, dict) else ():
        if not str(name).startswith("__"):
            yield from (entry for entry in dicts_in(value) if entry.get("type") in _TYPES and "content" in entry)


def _message_events(message: dict[str, Any], name: str, at: Any) -> Iterator[ReadEvent]:
    kind, text = message.get("type"), content_text(message.get("content"))
    role = _ROLES.get(str(kind)) or ("user" if message.get("role") == "user" else "assistant")
    if kind in ("system", "remove"):
        yield Skipped("system prompt" if kind == "system" else "removal of a message")
    elif role == "tool":
        call = (str(message.get("tool_call_id") or name), str(message.get("name") or ""))
        yield tool_result_message(call, text, name, at)
    else:
        calls = [
            tool_call(as_text(call.get("id")), str(call.get("name")), call.get("args") or {})
            for call in dicts_in(message.get("tool_calls"))
        ]
        if text or calls:
            yield text_message(role, text, name, at, tool_calls=calls or None)
        else:
            yield Skipped("message without text")


def _read_items(item: ImportItem, connection: sqlite3.Connection, columns: set[str]) -> Iterator[ReadEvent]:
    expiry = "ttl_minutes, expires_at" if {"ttl_minutes", "expires_at"} <= columns else "NULL, NULL"
    query = f"SELECT prefix, key, value, created_at, updated_at, {expiry} FROM store ORDER BY prefix, created_at, key"
    for prefix, key, stored, *times, ttl, expires in rows(connection, query):
        try:
            value = json.loads(stored)
        except (ValueError, TypeError, RecursionError):
            yield Problem(item.file, None, f"item {key} of {prefix} is not JSON")
            continue
        created, updated = (parse_timestamp(each) or item.modified_at for each in times)
        expires_at, seconds = parse_timestamp(expires), ttl * 60 if isinstance(ttl, int | float) else None
        if expires_at is not None and expires_at <= time.time():
            yield Skipped("expired item")
        else:
            # LangGraph allows no dot in a label.
            yield ImportedItem(tuple(str(prefix).split(".")), str(key), value, created, updated, seconds, expires_at)
