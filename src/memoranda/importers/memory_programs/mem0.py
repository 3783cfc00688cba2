"""Reads the memories of mem0: local Qdrant collections, `history.db`, and saved JSON pages of its platform.

A memory becomes a note in the session of its user, agent and run. `history.db` has the last messages of each of them,
which become a conversation, and the texts of memories whose vectors are in another store than local Qdrant.

A point of a local collection is a pickle, which is read without unpickling it: nothing that it names is imported or
called. `pickletools` splits the pickle into opcodes, and `read_pickled` builds plain values from them. Where a pickle
would create an object, there is a `PickledObject` with its class name and state; a call of a function stays a
`PickledObject` without a state.
"""

import pickletools
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import dicts_in, get_text, text_message
from memoranda.importers.notes import note, notes_of
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent, Skipped
from memoranda.importers.source_databases import database_at, open_database, rows, tables
from memoranda.importers.source_files import MAX_LINE_BYTES, find_files, item_at, load_json
from memoranda.support.lazy_dataclass import dataclass

_MAX_OPCODES = 2_000_000
_PUSHED = frozenset(
    {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE", "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1"}
    | {"LONG4", "BINFLOAT", "FLOAT", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "SHORT_BINSTRING", "BINSTRING"}
)
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Any] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": list}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = frozenset({"PROTO", "FRAME", "STOP"})
_PROGRAM = "mem0"
_POINT = "PointStruct"
_STORAGE = "storage.sqlite"
_HISTORY = "history.db"
_SCOPES = {"user_id": "user", "agent_id": "agent", "app_id": "app", "run_id": "run"}
_TEXTS = ("memory", "data")
_ROLES = ("user", "assistant", "tool")
# Values that mem0 derives from the text.
_DERIVED = frozenset({*_TEXTS, *_SCOPES, "id", "text_lemmatized", "hash"})
# Where the library keeps its vectors if nothing else is configured.
_DEFAULT_QDRANT = Path("/tmp/qdrant")
# SQLite takes the other columns from the row with the highest number.
_CURRENT = (
    "SELECT memory_id, new_memory, COALESCE(updated_at, created_at), role, is_deleted, max(rowid) FROM history"
    " GROUP BY memory_id ORDER BY max(rowid)"
)
_LAST_MESSAGES = (
    "SELECT id, session_scope, role, content, created_at FROM messages ORDER BY session_scope, created_at, rowid"
)


class Mem0:
    name = _PROGRAM

    def __init__(self) -> None:
        self._directories: list[Path] = []

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the collections, the history and the saved pages under a path, or in mem0's own directories."""
        if path is not None and (single := item_at(path, "")):
            self._directories = [path.parent]
            return [_item(single)]
        self._directories = [path] if path is not None else [Path.home() / ".mem0", _DEFAULT_QDRANT]
        found = [item for directory in self._directories for item in find_files(directory, _is_wanted, "")]
        return [_item(item) for item in sorted(found, key=lambda item: item.file.name == _HISTORY)]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.label == "page":
            yield from _read_page(item)
            return
        with open_database(item.file) as connection:
            found = tables(connection)
            if "points" in found:
                yield from _read_points(item, connection)
            elif {"memory_id", "new_memory", "is_deleted"} <= found.get("history", set()):
                yield from self._read_history(connection, has_messages="messages" in found)
            else:
                raise OSError("not a known database of mem0")

    def _read_history(self, connection: sqlite3.Connection, *, has_messages: bool) -> Iterator[ReadEvent]:
        stored = _stored_ids(self._directories)
        collection = "history"
        yield notes_of(_PROGRAM, collection, "mem0: memories in other stores")
        for memory_id, text, at, role, is_deleted, _ in rows(connection, _CURRENT):
            if not is_deleted and str(memory_id) not in stored and isinstance(text, str):
                yield note(collection, str(memory_id), text, at, {"role": role})
        current = None
        for name, scope, role, content, at in rows(connection, _LAST_MESSAGES) if has_messages else ():
            if scope != current:
                current = scope
                yield ImportedConversation(str(scope), f"mem0: {scope}")
            yield text_message(role if role in _ROLES else "assistant", str(content or ""), str(name), at)


@dataclass(slots=True)
class PickledObject:
    """An object in a pickle, by the name of its class; it was not created."""

    class_name: str
    state: Any = None


class _Mark:
    """The start of a group of values on the stack."""


_MARK = _Mark()


def read_pickled(data: bytes) -> Any:
    """Return the value in a pickle; raises ValueError for a damaged one or an opcode that no plain value needs."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count > _MAX_OPCODES:
                raise ValueError("it has too many values")
            if not _push(stack, opcode.name, argument) and not _use_memo(stack, memo, opcode.name, argument):
                _combine(stack, opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError, OverflowError, UnicodeError) as error:
        raise ValueError(f"the pickle is damaged: {type(error).__name__}") from error
    if len(stack) != 1:
        raise ValueError("the pickle is damaged")
    return stack[0]


def _push(stack: list[Any], name: str, argument: Any) -> bool:
    if name in _PUSHED:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name])
    elif name in _EMPTY:
        stack.append(_EMPTY[name]())
    elif name == "MARK":
        stack.append(_MARK)
    else:
        return name in _IGNORED
    return True


def _use_memo(stack: list[Any], memo: dict[int, Any], name: str, argument: Any) -> bool:
    if name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
        memo[argument] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET", "GET"):
        stack.append(memo[argument])
    else:
        return False
    return True


def _combine(stack: list[Any], name: str, argument: Any) -> None:
    if name == "GLOBAL":
        stack.append(PickledObject(str(argument).replace(" ", ".")))
    elif name == "STACK_GLOBAL":
        attribute, module = stack.pop(), stack.pop()
        stack.append(PickledObject(f"{module}.{attribute}"))
    elif name in ("NEWOBJ", "REDUCE"):
        stack.pop()
        stack.append(PickledObject(_class_name(stack.pop())))
    elif name == "BUILD":
        state = stack.pop()
        if isinstance(stack[-1], PickledObject):
            stack[-1].state = state
    elif name in _TUPLES:
        number = _TUPLES[name]
        stack[-number:] = [tuple(stack[-number:])]
    elif name == "TUPLE":
        stack.append(tuple(_pop_group(stack)))
    elif name in ("APPEND", "APPENDS", "ADDITEMS"):
        values = [stack.pop()] if name == "APPEND" else _pop_group(stack)
        stack[-1].extend(values)
    elif name in ("SETITEM", "SETITEMS"):
        values = [stack.pop(-2), stack.pop()] if name == "SETITEM" else _pop_group(stack)
        stack[-1].update(zip(values[::2], values[1::2], strict=True))
    else:
        raise ValueError(f"the pickle has {name}, which no plain value needs")


def _class_name(value: Any) -> str:
    return value.class_name if isinstance(value, PickledObject) else ""


def _pop_group(stack: list[Any]) -> list[Any]:
    """Remove and return the values after the last mark."""
    group: list[Any] = []
    while (value := stack.pop()) is not _MARK:
        group.append(value)
    group.reverse()
    return group


def _is_wanted(file: Path) -> bool:
    return file.name in (_STORAGE, _HISTORY) or (
        file.suffix == ".json" and file.name not in ("config.json", "meta.json")
    )


def _item(item: ImportItem) -> ImportItem:
    if item.file.suffix == ".json":
        return ImportItem(item.file, item.size, item.modified_at, "page")
    return database_at(item.file, "memories") or item


def _read_points(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    for number, size, blob in rows(connection, "SELECT rowid, length(point), point FROM points ORDER BY rowid"):
        payload = (
            _payload(blob) if isinstance(blob, bytes) and size <= MAX_LINE_BYTES else "it is too large, or no blob"
        )
        if isinstance(payload, str):
            yield Problem(item.file, None, f"point {number} was not read: {payload}")
        elif not get_text(payload, "data") or "linked_memory_ids" in payload:
            yield Skipped("point without a memory")
        else:
            yield from _memory_events(payload)


def _payload(blob: bytes) -> dict[str, Any] | str:
    """Return the payload of a pickled point with its id, or why there is none."""
    try:
        point = read_pickled(blob)
    except ValueError as error:
        return str(error)[:200]
    if not isinstance(point, PickledObject) or point.class_name.rpartition(".")[2] != _POINT:
        return "it is not a point of Qdrant, and was not loaded"
    state = point.state.get("__dict__", point.state) if isinstance(point.state, dict) else {}
    payload = state.get("payload") if isinstance(state, dict) else None
    return {**payload, "id": str(state.get("id"))} if isinstance(payload, dict) else {}


def _read_page(item: ImportItem) -> Iterator[ReadEvent]:
    value = load_json(item)
    memories = value.get("results", value.get("memories")) if isinstance(value, dict) else value
    if not isinstance(memories, list):
        raise ReadError(Problem(item.file, None, "not a page of mem0's platform: a list of memories is expected"))
    for memory in dicts_in(memories):
        if not get_text(memory, "memory") or not get_text(memory, "id"):
            yield Problem(item.file, None, "a memory without id or text")
        else:
            yield from _memory_events(memory)


def _memory_events(memory: Mapping[str, Any]) -> Iterator[ReadEvent]:
    """Yield a memory as a note, after its collection."""
    scopes = {word: str(memory[name]) for name, word in _SCOPES.items() if memory.get(name)}
    collection = "/".join(f"{word}={value}" for word, value in scopes.items()) or "all"
    named = ", ".join(f"{word} {value}" for word, value in scopes.items())
    yield notes_of(_PROGRAM, collection, f"mem0: memories of {named or 'everyone'}")
    text = next(found for name in _TEXTS if (found := get_text(memory, name)))
    origin = {name: value for name, value in memory.items() if name not in _DERIVED}
    yield note(collection, str(memory["id"]), text, memory.get("updated_at") or memory.get("created_at"), origin)


def _stored_ids(directories: Sequence[Path]) -> set[str]:
    """Return the ids of the memories in the local collections, which are imported from there."""
    found: set[str] = set()
    for directory in directories:
        for item in find_files(directory, lambda file: file.name == _STORAGE, ""):
            # What cannot be read here is reported when the collection itself is read.
            with suppress(OSError), open_database(item.file) as connection:
                has_points = "points" in tables(connection)
                for (blob,) in rows(connection, "SELECT point FROM points") if has_points else ():
                    payload = _payload(blob) if isinstance(blob, bytes) else ""
                    found |= {str(payload["id"])} if isinstance(payload, dict) and "id" in payload else set()
    return found
