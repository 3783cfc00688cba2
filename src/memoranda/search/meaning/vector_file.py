"""The file with the vectors of messages: an SQLite database with a row for each block of 256 messages.

A block has one column for each property of its messages, each an array of numbers. A search reads the small columns of
all blocks (the signs of the vectors, one bit for each dimension), and then the whole vectors of the few best messages.
A vector is stored as bytes: its largest number becomes 127. A deleted message leaves a row of zeros in its block, and
`secure_delete` overwrites what was there. `VectorReader` compares the vectors with a query, under the filters of a
search.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.memory.record.schema import FILTERED_COLUMNS
from memoranda.search.index.message_text import kinds_for_roles
from memoranda.search.index.postings import Filters
from memoranda.storage.forks import file_identity, refuse_inherited
from memoranda.storage.position import START, Position
from memoranda.storage.sqlite.forked_connection import Connection
from memoranda.support.durable_files import PRIVATE_FILE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memoranda.search.meaning.embedder import Vectors

FORMAT = f"1.{'.'.join(FILTERED_COLUMNS)}"
BLOCK = 256
_WAIT = 1.0
_SCHEMA = """
CREATE TABLE state (store TEXT, format TEXT, model TEXT, dimensions INTEGER, message TEXT, change TEXT, mark TEXT);
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, conversation TEXT NOT NULL, user TEXT,
    FILTERED_COLUMNS
);
CREATE TABLE blocks (
    number INTEGER PRIMARY KEY, version INTEGER NOT NULL, messages BLOB, sessions BLOB, times BLOB, roles BLOB,
    checksums BLOB, signs BLOB, vectors BLOB
);
""".replace("FILTERED_COLUMNS", ", ".join(f"{column} TEXT" for column in FILTERED_COLUMNS))
_COLUMNS = "messages, sessions, times, roles, checksums, signs"


class VectorState(NamedTuple):
    """How far the file has followed the record, and for which store and model."""

    store: str
    model: str
    dimensions: int
    message: Position = START
    change: Position = START
    mark: str = ""


class Row(NamedTuple):
    """One message: `session` is the file's number of its session."""

    message: int
    session: int
    time: float
    role: int
    checksum: int


class Block:
    """The messages of one block, without their vectors."""

    def __init__(self, np: Any, number: int, version: int, columns: Sequence[bytes], dimensions: int) -> None:
        self.number = number
        self.version = version
        kinds = (np.int64, np.int32, np.float64, np.uint8, np.uint32)
        arrays = [np.frombuffer(column, kind) for column, kind in zip(columns, kinds, strict=False)]
        self.messages, self.sessions, self.times, self.roles, self.checksums = arrays
        self.signs = np.frombuffer(columns[5], np.uint8).reshape(len(self.messages), sign_bytes(dimensions))


def sign_bytes(dimensions: int) -> int:
    return (dimensions + 7) // 8


def connect(path: Path, wait: float = _WAIT) -> sqlite3.Connection:
    """Open the file, or create it, for its owner only; `wait` is how many seconds it waits for another writer."""
    if not path.exists():
        _create(path)
    refuse_inherited(path)
    connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False, factory=Connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA secure_delete=ON")
    return connection


def _create(path: Path) -> None:
    """Create the tables under a hidden name, because another thread may open the file as soon as it has its own."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
    try:
        with closing(sqlite3.connect(hidden, isolation_level=None)) as connection:
            connection.executescript(f"PRAGMA journal_mode=WAL; BEGIN; {_SCHEMA} COMMIT;")
        with suppress(FileExistsError):
            # Unlike a rename, it fails if another process was faster.
            os.link(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)


def read_state(connection: sqlite3.Connection) -> VectorState | None:
    """The one row of `state`; None in a new file, or in one of another format."""
    row = connection.execute("SELECT store, format, model, dimensions, message, change, mark FROM state").fetchone()
    if row is None or row[1] != FORMAT:
        return None
    return VectorState(row[0], row[2], row[3], Position.parse(row[4]), Position.parse(row[5]), row[6])


def write_state(connection: sqlite3.Connection, state: VectorState) -> None:
    connection.execute("DELETE FROM state")
    values = (state.store, FORMAT, state.model, state.dimensions, str(state.message), str(state.change), state.mark)
    connection.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def empty(connection: sqlite3.Connection, state: VectorState) -> None:
    """Start from nothing, for another model or another store."""
    for table in ("sessions", "blocks"):
        connection.execute(f"DELETE FROM {table}")
    write_state(connection, state)


def read_blocks(connection: sqlite3.Connection, np: Any, dimensions: int, known: dict[int, Block]) -> dict[int, Block]:
    """All blocks; those that did not change since they were read are taken from `known`."""
    found: dict[int, Block] = {}
    for number, version in connection.execute("SELECT number, version FROM blocks ORDER BY number").fetchall():
        block = known.get(number)
        if block is None or block.version != version:
            row = connection.execute(f"SELECT {_COLUMNS} FROM blocks WHERE number = ?", (number,)).fetchone()
            block = Block(np, number, version, row, dimensions)
        found[number] = block
    return found


def read_vectors(connection: sqlite3.Connection, np: Any, number: int, rows: Sequence[int], dimensions: int) -> Any:
    """Some vectors of a block, as numbers of one byte."""
    found = np.empty((len(rows), dimensions), np.int8)
    with connection.blobopen("blocks", "vectors", number, readonly=True) as blob:
        for place, row in enumerate(rows):
            blob.seek(row * dimensions)
            found[place] = np.frombuffer(blob.read(dimensions), np.int8)
    return found


def append_rows(connection: sqlite3.Connection, np: Any, rows: Sequence[Row], vectors: "Vectors") -> None:
    """Add messages: to the last block until it is full, then to new ones."""
    last = connection.execute(f"SELECT number, {_COLUMNS}, vectors FROM blocks ORDER BY number DESC LIMIT 1").fetchone()
    number = 0 if last is None else last[0]
    columns: list[bytes] = [b""] * 7 if last is None else list(last[1:])
    room = BLOCK - len(columns[0]) // 8
    start = 0
    while start < len(rows):
        if not room:
            number, columns, room = number + 1, [b""] * 7, BLOCK
        some = slice(start, start + room)
        added = _encode(np, rows[some], vectors[some])
        columns = [before + new for before, new in zip(columns, added, strict=True)]
        connection.execute(
            "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, _new_version(), *columns)
        )
        start, room = start + room, 0


def _new_version() -> int:
    """A number that no block has had before: the number of a block that was deleted is used again."""
    return secrets.randbits(62)


def _encode(np: Any, rows: Sequence[Row], vectors: "Vectors") -> list[bytes]:
    kinds = (np.int64, np.int32, np.float64, np.uint8, np.uint32)
    fields = [np.array(values, kind).tobytes() for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    scale = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-9)
    numbers: NDArray[np.int8] = np.round(vectors / scale * 127).astype(np.int8)
    return [*fields, np.packbits(vectors > 0, axis=1).tobytes(), numbers.tobytes()]


def erase_rows(connection: sqlite3.Connection, block: Block, rows: Iterable[int], dimensions: int) -> None:
    """Overwrite messages of a block with zeros."""
    sizes = (8, 4, 8, 1, 4, sign_bytes(dimensions), dimensions)
    columns = connection.execute(f"SELECT {_COLUMNS}, vectors FROM blocks WHERE number = ?", (block.number,)).fetchone()
    erased = [bytearray(column) for column in columns]
    for row in rows:
        for column, size in zip(erased, sizes, strict=True):
            column[row * size : (row + 1) * size] = bytes(size)
    if not any(erased[0]):
        connection.execute("DELETE FROM blocks WHERE number = ?", (block.number,))
        return
    connection.execute(
        "UPDATE blocks SET version = ?, messages = ?, sessions = ?, times = ?, roles = ?, checksums = ?,"
        " signs = ?, vectors = ? WHERE number = ?",
        (_new_version(), *map(bytes, erased), block.number),
    )


# How many of the messages whose signs agree best are compared exactly, at least.
_RESCORED = 400
_MAX_VALUES = 500


class VectorMatch(NamedTuple):
    """A message that is alike to a query."""

    session_id: str
    conversation_id: str
    source: str
    message: int
    role: int
    time: float
    likeness: float


class VectorReader:
    """The blocks of a file in memory; `refresh` reads those that changed."""

    def __init__(self, path: Path, np: Any) -> None:
        self._path = path
        self._np = np
        self._identity = file_identity(path)
        self._opened: sqlite3.Connection | None = None
        self._blocks: dict[int, Block] = {}
        self._columns: tuple[Any, ...] | None = None
        self.state = VectorState("", "", 0)

    def is_current(self) -> bool:
        """Whether the path still names the file that is open."""
        return self._identity is not None and file_identity(self._path) == self._identity

    def refresh(self, model: str, store: str) -> bool:
        """Read what changed; False if the vectors are of another model or store."""
        state = read_state(self._connection)
        if state is None or (state.model, state.store) != (model, store) or not state.dimensions:
            return False
        if state != self.state:
            known = self._blocks if state.dimensions == self.state.dimensions else {}
            self._blocks = read_blocks(self._connection, self._np, state.dimensions, known)
            self.state, self._columns = state, None
        return True

    def counts(self) -> tuple[int, int]:
        """How many messages and sessions have vectors."""
        messages = sum(int(self._np.count_nonzero(block.messages)) for block in self._blocks.values())
        (sessions,) = self._connection.execute("SELECT count(*) FROM sessions").fetchone()
        return messages, int(sessions)

    def search(self, wanted: "Vectors", filters: Filters, limit: int) -> list[VectorMatch]:
        """The messages that are most alike to a query, best first."""
        np = self._np
        messages, sessions, times, roles, signs, *_ = self._table()
        if not len(messages):
            return []
        places = np.nonzero(self._visible(filters))[0]
        differing = np.bitwise_count(signs[places] ^ np.packbits(wanted > 0, axis=1)[0]).sum(axis=1, dtype=np.int32)
        count = max(_RESCORED, 4 * limit)
        if len(places) > count:
            places = places[np.argpartition(differing, count)[:count]]
        likeness = self._likeness(places, wanted)
        best = np.argsort(-likeness, kind="stable")[:limit]
        named = self._sessions({int(sessions[places[number]]) for number in best})
        found = []
        for number in best:
            place = places[number]
            session = named.get(int(sessions[place]))
            if session is not None:
                found.append(
                    VectorMatch(
                        *session, int(messages[place]), int(roles[place]), float(times[place]), float(likeness[number])
                    )
                )
        return found

    def session_likeness(
        self, wanted: "Vectors", session_ids: Sequence[str], filters: Filters
    ) -> dict[str, dict[int, float]]:
        """How alike each message of these sessions is, by its id, as far as the filters let the search see it."""
        np = self._np
        messages, sessions, *_ = self._table()
        numbers = self._numbers(session_ids)
        if not numbers or not len(sessions):
            return {}
        places = np.nonzero(self._visible(filters) & np.isin(sessions, np.array(list(numbers), np.int32)))[0]
        found: dict[str, dict[int, float]] = {}
        for place, value in zip(places, self._likeness(places, wanted), strict=True):
            found.setdefault(numbers[int(sessions[place])], {})[int(messages[place])] = float(value)
        return found

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = connect(self._path)
        return self._opened

    def _table(self) -> tuple[Any, ...]:
        """The columns of all blocks together, and for each message its block and its row there."""
        np, blocks = self._np, list(self._blocks.values())
        if self._columns is None:
            names = ("messages", "sessions", "times", "roles", "signs")
            joined = [np.concatenate([getattr(block, name) for block in blocks]) if blocks else [] for name in names]
            sizes = [len(block.messages) for block in blocks]
            numbers = np.repeat(np.array([block.number for block in blocks], np.int64), sizes)
            rows = np.concatenate([np.arange(size) for size in sizes]) if blocks else []
            self._columns = (*joined, numbers, rows)
        return self._columns

    def _likeness(self, places: Any, wanted: "Vectors") -> Any:
        np, dimensions = self._np, self.state.dimensions
        *_, blocks, rows = self._table()
        found = np.empty(len(places), np.float32)
        for number in np.unique(blocks[places]) if len(places) else ():
            inside = np.nonzero(blocks[places] == number)[0]
            some = [int(row) for row in rows[places[inside]]]
            vectors = read_vectors(self._connection, np, int(number), some, dimensions).astype(np.float32)
            found[inside] = vectors @ wanted[0] / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
        return found

    def _visible(self, filters: Filters) -> Any:
        """Which messages the search may see. The scope is checked here, as in every other way of finding."""
        np = self._np
        messages, sessions, times, roles, *_ = self._table()
        visible = messages != 0
        conditions, values = _session_conditions(filters)
        if conditions:
            statement = f"SELECT number FROM sessions WHERE {' AND '.join(conditions)}"
            allowed = [row[0] for row in self._connection.execute(statement, values)]
            visible &= np.isin(sessions, np.array(allowed, np.int32))
        if filters.roles is not None:
            visible &= np.isin(roles, np.array(kinds_for_roles(filters.roles), np.uint8))
        if filters.since is not None:
            visible &= times >= filters.since
        if filters.until is not None:
            visible &= times <= filters.until
        if filters.without:
            visible &= ~np.isin(messages, np.array(sorted(filters.without), np.int64))
        return visible

    def _sessions(self, numbers: set[int]) -> dict[int, tuple[str, str, str]]:
        found: dict[int, tuple[str, str, str]] = {}
        for number in numbers:
            row = self._connection.execute(
                "SELECT id, conversation, source FROM sessions WHERE number = ?", (number,)
            ).fetchone()
            if row is not None:
                found[number] = row
        return found

    def _numbers(self, session_ids: Sequence[str]) -> dict[int, str]:
        some = list(session_ids)[:_MAX_VALUES]
        marks = ", ".join("?" * len(some))
        rows: list[tuple[int, str]] = self._connection.execute(
            f"SELECT number, id FROM sessions WHERE id IN ({marks})", some
        ).fetchall()
        return dict(rows)


def _session_conditions(filters: Filters) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    if not filters.scope.all:
        conditions.append("user IS ?")
        values.append(filters.scope.user)
    required = [(column, names, "") for column, names in filters.columns]
    excluded = [("source", filters.excluded_sources, "NOT ")] if filters.excluded_sources else []
    for column, names, negation in (*required, *excluded):
        conditions.append(f"{column} {negation}IN ({', '.join('?' * len(names))})")
        values += sorted(names)
    return conditions, values
