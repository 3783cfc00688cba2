"""What an import remembers in `imports.db`: how far each file was read, and which sessions came of it.

It is a convenience, not the record. A message is known by its external id in the session store, and a session that was
deleted by its name, so that losing this file costs time: everything is read once more, nothing is added twice, and
nothing comes back.
"""

import json
import logging
import os
import time
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.db.lazy_database import LazyDatabase
from memoranda.db.salvage.rebuild import SIDE_FILES
from memoranda.db.schema import Column, Migration, Schema, Table
from memoranda.db.sqlite import Connection
from memoranda.errors import CorruptStoreError
from memoranda.importers.reader_protocol import Checkpoint, ImportItem
from memoranda.safety.redaction import Redactor

_log = logging.getLogger(__name__)

_Key = tuple[str, str, str, str]
FILE_NAME = "imports.db"
APPLICATION_ID = int.from_bytes(b"MemI", "big")

_ITEMS = Table(
    "items",
    "One row per file that was read, for each user.",
    (
        Column("source", "text", "NOT NULL", "The reader's name."),
        Column("user_id", "text", "NOT NULL", "For which user of a gateway; empty for the home's owner."),
        Column("file", "text", "NOT NULL", "Where it lies."),
        Column("what", "text", "NOT NULL", "Which part of it, when it has several."),
        Column("size", "integer", "NOT NULL", "Its size when it was read to the end; -1 before that."),
        Column("changed", "real", "NOT NULL", "When it had last been changed then."),
        Column("sessions", "text", "NOT NULL", "The names of the sessions in it, as a JSON list."),
        Column("offset", "integer", "", "How far it was read."),
        Column("line", "integer", "", "How many lines that are."),
        Column("state", "text", "", "What the reader has to know to go on from there."),
        Column("seal", "text", "", "A digest of the bytes before that place: another file has another one."),
    ),
)
_SESSIONS = Table(
    "imported_sessions",
    "One row per session that was met, made or not.",
    (
        Column("session_id", "text", "PRIMARY KEY", "Its name here."),
        Column("family", "text", "NOT NULL", "Source, user and first message: branches of a session share it."),
        Column("made", "integer", "NOT NULL DEFAULT 0", "1 when it is, or was, in the record."),
        Column("title", "text", "", "The title that it got here, to tell it from one that a person gave."),
    ),
)
SCHEMA = Schema(
    version=2,
    tables=(_ITEMS, _SESSIONS),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_items ON items(source, user_id, file, what)",
        "CREATE INDEX IF NOT EXISTS idx_families ON imported_sessions(family)",
    ),
    # It was only counted how many sessions a file holds; once more read, their names are known.
    migrations=(Migration("names-of-sessions", lambda connection: connection.execute("DELETE FROM items")),),
)


@dataclass(frozen=True, slots=True)
class ItemState:
    """How far an item was read; `size` is -1 when it was not read to the end."""

    size: int
    changed: float
    sessions: Collection[str]
    mark: Checkpoint | None
    seal: str

    def is_unchanged(self, item: ImportItem) -> bool:
        return self.size == item.size and self.changed == item.changed


@dataclass(frozen=True, slots=True)
class SeenSession:
    """A session that an import has met."""

    session_id: str
    family: str
    made: bool = False
    title: str | None = None


class ImportState:
    """The memory of imports into one store; looking into it before there is one leaves no trace."""

    def __init__(self, root: Path, store_id: str, user: str | None, *, again: bool = False) -> None:
        """`again`: everything is to be read anew, sessions included that were deleted from the record."""
        self._redactor = Redactor()
        self._file = LazyDatabase(root / FILE_NAME, SCHEMA, APPLICATION_ID)
        self._store_id = store_id
        self._user = user or ""
        self.again = again
        self._read_again: set[_Key] = set()
        self._items: dict[str, dict[_Key, ItemState]] = {}
        self._is_ours: bool | None = None
        self._is_damaged = False

    def close(self) -> None:
        self._file.close()

    def item(self, source: str, item: ImportItem) -> ItemState | None:
        """How far an item was read, if it ever was."""
        key = self._key(source, item)
        if not self._readable() or (self.again and key not in self._read_again):
            return None
        if source not in self._items:
            # All at once: most programs leave thousands of files, and most of them do not change.
            self._items[source] = self._load(source)
        return self._items[source].get(key)

    def note(self, source: str, item: ImportItem, read: ItemState, met: Iterable[SeenSession]) -> None:
        """Remember how far an item has been read, and the sessions that were met in it."""
        mark = read.mark
        place = (mark.offset, mark.line, self._without_secrets(mark.state)) if mark else (None, None, None)
        held = json.dumps(sorted(read.sessions))
        self._read_again.add(self._key(source, item))
        if source in self._items:
            self._items[source][self._key(source, item)] = read
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO imported_sessions (session_id, family, made, title) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (session_id) DO UPDATE SET family = excluded.family, made = excluded.made,"
                " title = excluded.title",
                [(each.session_id, each.family, int(each.made), each.title) for each in met],
            )
            connection.execute(
                "INSERT INTO items (source, user_id, file, what, size, changed, sessions, offset, line, state, seal)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, user_id, file, what) DO UPDATE SET"
                " size = excluded.size, changed = excluded.changed, sessions = excluded.sessions,"
                " offset = excluded.offset, line = excluded.line, state = excluded.state, seal = excluded.seal",
                (*self._key(source, item), read.size, read.changed, held, *place, read.seal),
            )

    def session(self, session_id: str) -> SeenSession | None:
        """A session that an import has met, if one has."""
        found = self._sessions("session_id = ?", (session_id,))
        return found[0] if found else None

    def relatives(self, met: SeenSession) -> list[str]:
        """The other sessions that begin with the same message."""
        found = self._sessions("family = ? AND session_id <> ?", (met.family, met.session_id))
        return [each.session_id for each in found]

    def forget(self, session_ids: Collection[str]) -> None:
        """Keep the names of sessions that were deleted and no word of theirs, such as a title."""
        if not session_ids or not self._readable():
            return
        with self._file.open().reading() as connection:
            titled = connection.execute("SELECT session_id FROM imported_sessions WHERE title IS NOT NULL").fetchall()
            stated = connection.execute("SELECT rowid, sessions FROM items WHERE state <> ''").fetchall()
        gone = frozenset(session_ids)
        titles = [row for row in titled if row[0] in gone]
        # What a reader knows of a file in which nothing else is; of another one it is still needed.
        states = [(number,) for number, listed in stated if (held := _names(listed)) and held <= gone]
        if titles or states:
            with self._writing() as connection:
                connection.executemany("UPDATE imported_sessions SET title = NULL WHERE session_id = ?", titles)
                connection.executemany("UPDATE items SET state = '' WHERE rowid = ?", states)
            self._file.open().shrink_log()

    def family(self, source: str, first: str) -> str:
        """The name that sessions share which begin with the same message."""
        return f"{source}\n{self._user}\n{first}"

    def _load(self, source: str) -> dict[_Key, ItemState]:
        with self._file.open().reading() as connection:
            rows = connection.execute(
                "SELECT file, what, size, changed, sessions, offset, line, state, seal FROM items"
                " WHERE source = ? AND user_id = ?",
                (source, self._user),
            )
            return {
                (source, self._user, file, what): ItemState(
                    size, changed, _names(sessions), _mark(offset, line, state or ""), seal or ""
                )
                for file, what, size, changed, sessions, offset, line, state, seal in rows
            }

    def _without_secrets(self, state: str) -> str:
        """What a reader has to know, titles and directories among it; no credential in them lies here in clear."""
        value = _object(state)
        if value is None:
            return self._redactor.text(state)[0]
        # Text by text: in JSON as a whole, a quote that belongs to the JSON would pass for the end of a credential.
        kept, count = self._redactor.value(value)
        return json.dumps(kept) if count else state

    def _key(self, source: str, item: ImportItem) -> _Key:
        # A name that is no text (half characters) is kept as its escapes.
        return source, self._user, str(item.file).encode("utf-8", "backslashreplace").decode(), item.what

    def _sessions(self, condition: str, values: tuple[str, ...]) -> list[SeenSession]:
        if not self._readable():
            return []
        with self._file.open().reading() as connection:
            rows = connection.execute(
                f"SELECT session_id, family, made, title FROM imported_sessions WHERE {condition} ORDER BY rowid",
                values,
            )
            return [SeenSession(row[0], row[1], bool(row[2]) and not self.again, row[3]) for row in rows]

    def _readable(self) -> bool:
        """Whether there is a memory, and of this store: one of a store that was since deleted says nothing."""
        if self._is_ours is None:
            if not self._file.exists():
                return False
            try:
                with self._file.open().reading() as connection:
                    self._is_ours = _owner(connection) == self._store_id
            except CorruptStoreError as error:
                _log.warning("What was imported before is not remembered, and everything is read again: %s", error)
                self._is_ours, self._is_damaged = False, True
        return self._is_ours

    def _writing(self) -> AbstractContextManager[Connection]:
        if not self._readable():
            if self._is_damaged:
                self._put_aside()
            with self._file.open().writing() as connection:
                _adopt(connection, self._store_id)
            self._is_ours = True
        return self._file.open().writing()

    def _put_aside(self) -> None:
        """Make room for a new file; the damaged one is kept."""
        self._file.close()
        aside = f"{self._file.path}.damaged-{time.time():.0f}"
        for ending in SIDE_FILES:
            with suppress(FileNotFoundError):
                os.replace(f"{self._file.path}{ending}", f"{aside}{ending}")
        self._is_damaged = False


def _mark(offset: int | None, line: int, state: str) -> Checkpoint | None:
    """A place to go on from; None where there is none, or where the reader's memory of it is damaged."""
    if offset is None or (state.startswith("{") and _object(state) is None):
        return None
    return Checkpoint(offset, line, state)


def _object(state: str) -> dict[str, Any] | None:
    """The JSON object that a reader keeps as its state; None when it keeps something else."""
    value = _value(state)
    return value if isinstance(value, dict) else None


def _names(listed: str) -> frozenset[str]:
    """The sessions that a file holds; where their list is damaged, none."""
    value = _value(listed)
    return frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _owner(connection: Connection) -> str | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = 'store_id'").fetchone()
    return str(row[0]) if row else None


def _adopt(connection: Connection, store_id: str) -> None:
    """Begin to remember for a store; what was remembered for another one is of no use."""
    if _owner(connection) != store_id:
        connection.execute("DELETE FROM items")
        connection.execute("DELETE FROM imported_sessions")
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES ('store_id', ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (store_id,),
        )
