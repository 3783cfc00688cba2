"""One open generation of the index: a connection that writes, and some that read."""

import errno
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoranda.db.orphaned_wal import file_identity
from memoranda.db.position import Position
from memoranda.index import generations
from memoranda.index.sqlite_errors import is_damage
from memoranda.index.tables import create

_log = logging.getLogger(__name__)

_WAIT = 1.0
_IDLE_READERS = 4
_TRIES = 5
_FEW_PAGES = 16
_LOG_PAGES = 256
_CACHE_KIB = 16_384


@dataclass(slots=True)
class IndexState:
    """The one row of `state`."""

    store: str
    format: str
    message: Position
    change: Position
    next_doc: int
    messages: int
    tokens: int
    dead: int
    mark: str


MismatchCheck = Callable[[IndexState], str | None]
"""Why an index is none of the store that is asked; None when it is."""


class IndexFile:
    """A file that was there and fitting when it was opened."""

    def __init__(self, file: Path, mode: str) -> None:
        self.file = file
        self.read_only = mode != "rw"
        self._mode = mode
        self._identity = file_identity(file)
        self._readers: list[sqlite3.Connection] = []
        self._closed = False
        self.checked = False
        self._writer = generations.connect(file, _WAIT, mode)
        try:
            if not self.read_only:
                self._writer.execute("PRAGMA synchronous=NORMAL")
                # The log keeps the size that it once had, so it is kept small.
                self._writer.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
            self.opened_at = read_state(self._writer)
        except BaseException:
            self._writer.close()
            raise

    def is_current(self) -> bool:
        """Whether the file still lies where it was opened."""
        return self._identity is not None and file_identity(self.file) == self._identity

    def state(self) -> IndexState:
        return read_state(self._writer)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction. The caller sees to it that only one thread writes."""
        connection = self._writer
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def check(self) -> None:
        """Read all of it, and raise when something in it is not as it was written."""
        self.checked = True
        (verdict,) = self._writer.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        if not self.read_only:
            for table in ("words", "pairs"):
                self._writer.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")

    def give_back_room(self) -> None:
        """Shorten the file when much of it is free: merging full-text segments leaves room behind."""
        (free,) = self._writer.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self._writer.execute("PRAGMA page_count").fetchone()
        if free > max(_FEW_PAGES, pages // 20):
            # It gives one page per step, and only a script is stepped through to its end.
            self._writer.executescript(f"PRAGMA incremental_vacuum({free})")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view."""
        connection = self._readers.pop() if self._readers else generations.connect(self.file, _WAIT, self._mode)
        try:
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        if len(self._readers) < _IDLE_READERS and "immutable" not in self._mode and not self._closed:
            self._readers.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close what is not in use; who is still reading closes behind itself."""
        self._closed = True
        while self._readers:
            self._readers.pop().close()
        self._writer.close()

    def leave_to_parent(self) -> None:
        """After a fork the connections belong to the parent: they are never used or closed here."""
        _of_parents.extend([*self._readers, self._writer])
        self._readers = []


_of_parents: list[sqlite3.Connection] = []


def open_newest(path: Path, store: str, find_mismatch: MismatchCheck) -> IndexFile:
    """The newest generation that fits the store, made if there is none. What does not fit, or is older, is deleted."""
    for _ in range(_TRIES):
        for file in generations.generations(path):
            opened = _fitting(file, find_mismatch)
            if opened is not None:
                if not opened.read_only:
                    generations.remove_older(path, file)
                return opened
            generations.remove(file)
        # Others may do the same now; the newest of all wins, so it is looked for again.
        with generations.making(generations.next_generation(path)) as connection:
            create(connection, store)
    raise OSError(errno.EIO, "a new file is damaged as soon as it is made", str(path))


def _fitting(file: Path, find_mismatch: MismatchCheck) -> IndexFile | None:
    """The file, opened; None when it is damaged or is no index of the store."""
    try:
        opened = _open(file)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        reason: str | None = str(error)
    else:
        reason = find_mismatch(opened.opened_at)
        if reason is None:
            return opened
        opened.close()
    _log.warning("The search index %s cannot be used: %s. It is made again.", file, reason)
    return None


def _open(file: Path) -> IndexFile:
    effective = os.access in os.supports_effective_ids
    if all(os.access(place, os.W_OK, effective_ids=effective) for place in (file, file.parent)):
        return IndexFile(file, "rw")
    try:
        return IndexFile(file, "ro")
    except sqlite3.OperationalError:
        # Without a log beside it, a file in such a directory can only be read as if nobody wrote it.
        return IndexFile(file, "ro&immutable=1")


def read_state(connection: sqlite3.Connection) -> IndexState:
    row = connection.execute("SELECT * FROM state").fetchone()
    if row is None:
        raise sqlite3.DatabaseError("the index has lost its state")
    store, version, message, change, *rest = row
    try:
        # Positions are text; SQLite turns one that is a plain number into an integer.
        return IndexState(store, version, Position.parse(message), Position.parse(change), *rest)
    except ValueError as error:
        raise sqlite3.DatabaseError("the index has a damaged state") from error


def write_state(connection: sqlite3.Connection, state: IndexState) -> None:
    connection.execute(
        "UPDATE state SET message = ?, change = ?, next_doc = ?, messages = ?, tokens = ?, dead = ?, mark = ?",
        (
            str(state.message),
            str(state.change),
            state.next_doc,
            state.messages,
            state.tokens,
            state.dead,
            state.mark,
        ),
    )
