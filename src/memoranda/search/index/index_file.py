"""One open generation of the index: a connection that writes, and some that read."""

import errno
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from functools import lru_cache
from pathlib import Path

from memoranda.search.index import generations
from memoranda.search.index.generations import create, is_damage
from memoranda.search.index.segments import check_segment, purge, read_segments
from memoranda.search.index.view import IndexView
from memoranda.storage.forks import file_identity
from memoranda.storage.position import Position
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_WAIT = 1.0
_IDLE_READERS = 4
_MAX_TRIES = 5
_FEW_PAGES = 16
_LOG_PAGES = 256
_CACHE_KIB = 8_192
_EMPTY_LOG_TIMEOUT, _EMPTY_LOG_PAUSE = 2.0, 0.01


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
    sessions: int
    mark: str
    checked: int


MismatchCheck = Callable[[IndexState], str | None]
"""Returns why an index does not belong to the store; None if it does."""


class IndexFile:
    """A file that existed and belonged to the store when it was opened."""

    def __init__(self, file: Path, mode: str) -> None:
        self.file = file
        self.read_only = mode != "rw"
        self._mode = mode
        self._identity = file_identity(file)
        self._readers: list[IndexView] = []
        self._closed = False
        self._opened_writer: sqlite3.Connection | None = None
        try:
            self.opened_at = read_state(self._writer)
        except BaseException:
            self.close()
            raise

    def is_current(self) -> bool:
        """Whether the path still names this file."""
        return self._identity is not None and file_identity(self.file) == self._identity

    def state(self) -> IndexState:
        """What the file has indexed. The caller ensures that no other thread writes or closes the file."""
        return read_state(self._writer)

    @property
    def _writer(self) -> sqlite3.Connection:
        """The connection that writes."""
        if self._opened_writer is None:
            if self._closed:
                raise sqlite3.ProgrammingError(f"{self.file} has been closed.")
            # It is closed with the file, also if a statement fails.
            self._opened_writer = generations.connect(self.file, _WAIT, self._mode)
            if not self.read_only:
                self._opened_writer.execute("PRAGMA synchronous=NORMAL")
                # What is deleted within a page is overwritten; whole pages are given back (`empty_log`).
                self._opened_writer.execute("PRAGMA secure_delete=FAST")
                # The log never shrinks, so it is kept small.
                self._opened_writer.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        return self._opened_writer

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction. The caller ensures that only one thread writes."""
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
        """Read the whole file on a connection of its own; raises sqlite3.DatabaseError if part of it is damaged."""
        with closing(generations.connect(self.file, _WAIT, self._mode)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
            connection.execute("BEGIN")
            for segment in read_segments(connection):
                check_segment(connection, segment)

    def write_checked(self) -> None:
        """Remember that the file has just been checked."""
        if not self.read_only:
            self._writer.execute("UPDATE state SET checked = ?", (int(time.time()),))

    def has_dead(self) -> bool:
        """Whether words of deleted messages are in the postings."""
        return self._writer.execute("SELECT 1 FROM dead LIMIT 1").fetchone() is not None

    def purge(self) -> bool:
        """Remove deleted messages from the postings of one segment; returns whether there may be more."""
        with self.writing() as connection:
            return purge(connection, 1)

    def empty_log(self) -> bool:
        """Give back all free pages and empty the log, in which deleted words remain; False if a reader prevents it."""
        self._release(0)
        deadline = time.monotonic() + _EMPTY_LOG_TIMEOUT
        while True:
            (busy, _, _) = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_EMPTY_LOG_PAUSE)

    def release_free_pages(self) -> None:
        """Shrink the file if much of it is free: merging segments leaves free pages."""
        (pages,) = self._writer.execute("PRAGMA page_count").fetchone()
        self._release(max(_FEW_PAGES, pages // 20))

    def _release(self, most: int) -> None:
        (free,) = self._writer.execute("PRAGMA freelist_count").fetchone()
        if free > most:
            # Each step frees one page, and only a script runs all steps.
            self._writer.executescript(f"PRAGMA incremental_vacuum({free})")

    @contextmanager
    def reading(self) -> Iterator[IndexView]:
        """One consistent view."""
        try:
            view = self._readers.pop()
        except IndexError:
            view = self._open_view()
        try:
            view.begin()
            yield view
            view.end()
        except BaseException:
            view.connection.close()
            raise
        if len(self._readers) < _IDLE_READERS and "immutable" not in self._mode and not self._closed:
            self._readers.append(view)
        else:
            view.connection.close()

    def _open_view(self) -> IndexView:
        connection = generations.connect(self.file, _WAIT, self._mode)
        try:
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            return IndexView(connection)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the idle connections; a search that is still reading closes its own at its end."""
        self._closed = True
        if self._opened_writer is not None:
            self._opened_writer.close()
            self._opened_writer = None
        # Another thread may take an idle connection at any time.
        with suppress(IndexError):
            while True:
                self._readers.pop().connection.close()


def open_newest(path: Path, store: str, find_mismatch: MismatchCheck) -> IndexFile:
    """Open the newest generation that belongs to the store, or create one. The others are deleted."""
    for _ in range(_MAX_TRIES):
        for file in generations.generations(path):
            opened = _open_matching(file, find_mismatch)
            if opened is not None:
                if not opened.read_only:
                    generations.remove_older(path, file)
                return opened
            generations.remove(file)
        # Another process may create one at the same time, and the newest wins, so look again.
        with generations.create_generation(generations.next_generation(path)) as connection:
            create(connection, store)
    raise OSError(errno.EIO, "a new file is damaged as soon as it is created", str(path))


def _open_matching(file: Path, find_mismatch: MismatchCheck) -> IndexFile | None:
    """Open a file; None if it is damaged or belongs to another store."""
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
    _log.warning("The search index %s cannot be used: %s. It will be rebuilt.", file, reason)
    return None


def _open(file: Path) -> IndexFile:
    effective = os.access in os.supports_effective_ids
    if all(os.access(path, os.W_OK, effective_ids=effective) for path in (file, file.parent)):
        return IndexFile(file, "rw")
    try:
        return IndexFile(file, "ro")
    except sqlite3.OperationalError:
        # Without its log, a file in a read-only directory can only be opened as immutable.
        return IndexFile(file, "ro&immutable=1")


_STATE_COLUMNS = len(fields(IndexState))

# Every search reads the state, which seldom changes.
_parse_position = lru_cache(maxsize=16)(Position.parse)


def read_state(connection: sqlite3.Connection) -> IndexState:
    row = connection.execute("SELECT * FROM state").fetchone()
    if row is None:
        raise sqlite3.DatabaseError("the index has lost its state")
    store, version, message, change, *rest = row
    if len(row) != _STATE_COLUMNS:
        raise sqlite3.DatabaseError("another version wrote the index")
    try:
        # Positions are stored as text; SQLite turns one that is a plain number into an integer.
        return IndexState(store, version, _parse_position(message), _parse_position(change), *rest)
    except ValueError as error:
        raise sqlite3.DatabaseError("the index has a damaged state") from error


def write_state(connection: sqlite3.Connection, state: IndexState) -> None:
    connection.execute(
        "UPDATE state SET message = ?, change = ?, next_doc = ?, messages = ?, tokens = ?, sessions = ?, mark = ?",
        (
            str(state.message),
            str(state.change),
            state.next_doc,
            state.messages,
            state.tokens,
            state.sessions,
            state.mark,
        ),
    )
