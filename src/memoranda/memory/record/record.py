"""Opens the record, and recognises it by its marker: a small file beside `state.db` that says which store a home has.

The first page of `state.db` says whose file it is. If that page is lost, or the whole file, an empty file looks like a
new store and a damaged one like another program's. The marker contains the id of the store, its last message and its
last change, so that a store that is missing, emptied, replaced or older than it was is refused before anything is
written to it.

A marker is written after the commits that it describes have reached the disk, and read before the store is. So it is
never ahead of an undamaged store, whichever process is killed when, and several processes need no lock for it: the last
one wins, and an older marker only notices less.
"""

import logging
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import field, replace
from pathlib import Path

from memoranda.errors import StoreMismatchError
from memoranda.memory.record.schema import MESSAGES, SCHEMA, SESSIONS, SYSTEM_PROMPTS
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.files.marker_file import MarkerFile
from memoranda.storage.orphaned_wal import file_size, wal_path
from memoranda.storage.sqlite.engine import SqliteEngine, open_sqlite_engine
from memoranda.support.durable_files import sync
from memoranda.support.home import APPLICATION_ID, had_store, is_server_url, marker_path
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_ACCEPT_TIMEOUT = 2.0
_APPLICATION_ID = int.from_bytes(APPLICATION_ID, "big")
_POSITION = (
    "SELECT (SELECT value FROM state_meta WHERE key = 'store_id'), (SELECT max(id) FROM messages),"
    " (SELECT seq FROM sqlite_sequence WHERE name = 'changes')"
)
# A message disappears only with a change: of its session from some message on, or of a session that was deleted.
_MAY_HAVE_DELETED = (
    "SELECT EXISTS (SELECT 1 FROM changes WHERE seq > ? AND (from_message IS NOT NULL"
    " OR NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = changes.session_id)))"
)


@dataclass(frozen=True, slots=True)
class StoreMarker:
    """What a home knows about its store. `store_id` is empty if the marker itself was damaged."""

    store_id: str = ""
    last_message: int = 0
    last_change: int = 0
    messages: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of the tables in the order of the file, which salvage needs when the first page is lost."""
    replaced_by: str = ""
    """The id of a store that is about to take the place of this one, during a repair."""

    def mismatch(self, found: "StoreMarker", path: Path) -> StoreMismatchError | None:
        """The error for a store that is not the one of this marker, or is older; None if it is."""
        if not self.store_id or (self.replaced_by and found.store_id == self.replaced_by):
            return None
        if found.store_id != self.store_id:
            return StoreMismatchError(
                f"{path} is not the store of this home: its id is {found.store_id or 'missing'}, and this home has the "
                f"store {self.store_id} with {self.messages:,} messages. Nothing was written. Put the right file back, "
                "or use this one from now on with 'memoranda doctor --accept-store'.",
                "swapped",
            )
        # Deleting the last messages adds a change, so a store that has more changes is newer with fewer messages, too.
        if (found.last_change, found.last_message) < (self.last_change, self.last_message):
            return StoreMismatchError(
                f"{path} is older than the store that this home had: it ends with message {found.last_message:,} and "
                f"change {found.last_change:,}, and the home had got to {self.last_message:,} and "
                f"{self.last_change:,}. Nothing was written. If you restored a backup, use it from now on with "
                "'memoranda doctor --accept-store'; otherwise put the newer file back.",
                "older",
            )
        return None


def read_marker(path: Path) -> StoreMarker | None:
    """The marker of a store; None if there is none, an empty one if it is damaged."""
    return MarkerFile(path, StoreMarker).read()


def write_marker(path: Path, marker: StoreMarker) -> None:
    """Replace the marker of a store atomically; after a power cut it is this one or the one from before."""
    MarkerFile(path, StoreMarker).replace(marker)


def read_position(connection: Connection) -> StoreMarker:
    """The id of an open store and how far it has got, without the fields that take longer to read."""
    store_id, last_message, last_change = connection.execute(_POSITION).fetchone()
    return StoreMarker(str(store_id or ""), last_message or 0, last_change or 0)


def count_lost(connection: Connection, marker: StoreMarker) -> int:
    """How many of the messages that a marker counted are missing, although nothing was deleted since; 0 if none."""
    found = read_position(connection)
    if (found.store_id, found.last_change) != (marker.store_id, marker.last_change):
        return 0
    counted = connection.execute("SELECT count(*) FROM messages WHERE id <= ?", (marker.last_message,)).fetchone()
    return max(0, marker.messages - int(counted[0]))


class MarkerGuard:
    """Compares a store with its marker when it is opened, and keeps the marker up to date."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marker: StoreMarker | None = None

    def refuse_new(self) -> None:
        """Raise StoreMismatchError if the file is missing or empty although the home had a store."""
        # The size comes last: a process that is creating the store writes the file before the marker.
        if not file_size(self._path) and had_store(self._path) and not file_size(self._path):
            raise missing_error(self._path)

    def refuse_other_owner(self, connection: sqlite3.Connection) -> None:
        """Raise StoreMismatchError if the home had a store and the file has lost the application id."""
        # The marker comes first: a process that is creating the store writes it last.
        if not os.path.exists(marker_path(self._path)):
            return
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        if owner != _APPLICATION_ID:
            raise self._explain_owner(connection)

    def _explain_owner(self, connection: sqlite3.Connection) -> StoreMismatchError:
        """The error for a file without our application id: our own with a damaged header, or another program's."""
        if not file_size(self._path):
            return missing_error(self._path)
        try:
            found = read_position(connection)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                return _unrecognised_error(self._path)
            # It is a database without our tables.
            found = StoreMarker()
        known = read_marker(self._path) or StoreMarker()
        return known.mismatch(replace(known, store_id=found.store_id), self._path) or _unrecognised_error(self._path)

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise StoreMismatchError if the file is not the store of the marker, or an older one."""
        marker = read_marker(self._path)
        while marker is not None and (error := self._find_mismatch(marker, connection)) is not None:
            # A repair may have replaced store and marker just now.
            if (again := read_marker(self._path)) == marker:
                raise error
            marker = again
        self._marker = marker

    def _find_mismatch(self, marker: StoreMarker, connection: sqlite3.Connection) -> StoreMismatchError | None:
        try:
            return marker.mismatch(read_position(connection), self._path)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT:
                # It is the right file, as far as can be known; whatever uses the damaged page reports it.
                return None
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            # A table does not exist.
            return _unrecognised_error(self._path)

    def start(self, connection: sqlite3.Connection) -> None:
        """Write the marker of a store that has none: a new one, or one whose marker was deleted."""
        if self._marker is None:
            self.update(connection)

    def update(self, connection: sqlite3.Connection) -> None:
        """Write how far the store has got, if that has changed; a failure is logged, because nothing depends on it."""
        if connection.in_transaction:
            return
        try:
            connection.execute("BEGIN")
            try:
                marker = self._describe(connection)
            finally:
                connection.execute("ROLLBACK")
            if marker is not None:
                # Another program may have committed without waiting for the disk.
                with suppress(FileNotFoundError), wal_path(self._path).open("rb+") as log:
                    sync(log.fileno())
                write_marker(self._path, marker)
                self._marker = marker
        except (OSError, sqlite3.Error) as error:
            _log.info("The marker of %s could not be written: %s", self._path, error)

    def _describe(self, connection: sqlite3.Connection) -> StoreMarker | None:
        """The marker for the present state of the store; None if it has the right one already or is empty."""
        known, found = self._marker, read_position(connection)
        if found == (StoreMarker(found.store_id) if known is None else replace(known, messages=0, columns={})):
            return None
        return replace(found, messages=self._count(connection, found.store_id), columns=_read_columns(connection))

    def _count(self, connection: sqlite3.Connection, store_id: str) -> int:
        """How many messages there are; counts only the new ones unless some may have been deleted."""
        known = self._marker
        if known is not None and known.store_id == store_id:
            (deleted,) = connection.execute(_MAY_HAVE_DELETED, (known.last_change,)).fetchone()
            if not deleted:
                new = "SELECT count(*) FROM messages WHERE id > ?"
                return known.messages + int(connection.execute(new, (known.last_message,)).fetchone()[0])
        return _count_messages(connection)


def _count_messages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM messages").fetchone()[0])


def _read_columns(connection: sqlite3.Connection) -> dict[str, str]:
    return {
        table.name: " ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table.name})"))
        for table in (SESSIONS, MESSAGES, SYSTEM_PROMPTS)
    }


def missing_error(path: Path) -> StoreMismatchError:
    """The error for a store whose file is missing or empty."""
    marker = read_marker(path)
    size = f" with {marker.messages:,} messages" if marker is not None and marker.messages else ""
    return StoreMismatchError(
        f"{path} is {'empty' if path.exists() else 'missing'}, but this home had a store{size}. Nothing was written. "
        "'memoranda doctor' says what is left of it. Put the file back from a backup, or start with an empty store: "
        "'memoranda doctor --accept-store'.",
        "missing",
    )


def _unrecognised_error(path: Path) -> StoreMismatchError:
    return StoreMismatchError(
        f"{path} is damaged: it is the store of this home, but it lacks the marks of a store of Memoranda. Nothing was "
        "written. 'memoranda doctor --fix' keeps the file and saves everything that can still be read.",
        "unrecognised",
    )


def open_record(location: Path | str, *, wait: float = 10.0, guarded: bool = True) -> Engine:
    """Open the database of a session store, or create it; `wait` is how many seconds a write waits for others.

    The location is the path of a SQLite file, or the URL of a PostgreSQL server. Raises StoreMismatchError if a file is
    not the store that its marker describes; with `guarded=False` there is no marker.
    """
    if is_server_url(location):
        # Loaded only here: it needs psycopg, which is an extra.
        from memoranda.storage.lazy_database import open_server_engine  # noqa: PLC0415

        return open_server_engine(location, SCHEMA, wait=wait)
    path = Path(location)
    return _open_engine(path, wait, MarkerGuard(path) if guarded else None)


def _open_engine(path: Path, wait: float, guard: MarkerGuard | None) -> SqliteEngine:
    return open_sqlite_engine(path, SCHEMA, _APPLICATION_ID, wait=wait, guard=guard)


def accept_store(path: Path) -> StoreMarker:
    """Make the store at a path the store of the home from now on, whatever the marker says; creates a missing one."""
    with closing(_open_engine(path, _ACCEPT_TIMEOUT, None)) as engine:
        with engine.reading() as connection:
            found = read_position(connection)
            marker = replace(found, messages=_count_messages(connection), columns=_read_columns(connection))
        write_marker(path, marker)
    return marker
