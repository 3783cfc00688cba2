"""Reads the vectors of one file: compares them with a query, under the filters of a search."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.search.index.message_text import kinds_for_roles
from memoranda.search.index.postings import Filters
from memoranda.search.meaning import vector_file
from memoranda.search.meaning.vector_file import Block, VectorState
from memoranda.storage import fork_safety
from memoranda.storage.orphaned_wal import file_identity

if TYPE_CHECKING:
    from memoranda.search.meaning.embedder import Vectors

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
        fork_safety.close_before_forks(self._close_for_fork)

    def is_current(self) -> bool:
        """Whether the path still names the file that is open."""
        return self._identity is not None and file_identity(self._path) == self._identity

    def refresh(self, model: str, store: str) -> bool:
        """Read what changed; False if the vectors are of another model or store."""
        state = vector_file.read_state(self._connection)
        if state is None or (state.model, state.store) != (model, store) or not state.dimensions:
            return False
        if state != self.state:
            known = self._blocks if state.dimensions == self.state.dimensions else {}
            self._blocks = vector_file.read_blocks(self._connection, self._np, state.dimensions, known)
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

    def _close_for_fork(self, alone: bool) -> None:
        """Close the connection if no thread uses it; the next call opens a new one."""
        if alone:
            self.close()

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = vector_file.connect(self._path)
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
            vectors = vector_file.read_vectors(self._connection, np, int(number), some, dimensions).astype(np.float32)
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
    for column, names, negation in (
        ("source", filters.sources, ""),
        ("source", filters.excluded_sources or None, "NOT "),
        ("project", filters.projects, ""),
    ):
        if names is not None:
            conditions.append(f"{column} {negation}IN ({', '.join('?' * len(names))})")
            values += sorted(names)
    return conditions, values
