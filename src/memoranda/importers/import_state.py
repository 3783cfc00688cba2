"""The import state in `imports.db`: how far each file was read, and which sessions it contains.

It only saves time. The session store knows messages by their external ids and deleted sessions by their names, so
without this file everything is read again, but nothing is added twice and no deleted session returns.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable
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

_ItemKey = tuple[str, str, str, str]
FILE_NAME = "imports.db"
APPLICATION_ID = int.from_bytes(b"MemI", "big")

ITEMS = "items"
_ITEMS = Table(
    ITEMS,
    "One row per file that was read, for each user.",
    (
        Column("source", "text", "NOT NULL", "The reader's name."),
        Column("user_id", "text", "NOT NULL", "The user of a gateway; empty for the home's owner."),
        Column("file", "text", "NOT NULL", "The path of the file."),
        Column("what", "text", "NOT NULL", "The part of the file, if it has several."),
        Column("size", "integer", "NOT NULL", "Its size when it was read to the end; -1 before that."),
        Column("changed", "real", "NOT NULL", "Its modification time when it was read."),
        Column("sessions", "text", "NOT NULL", "The ids of the sessions in it, as a JSON list."),
        Column("offset", "integer", "", "The checkpoint: how many bytes were read."),
        Column("line", "integer", "", "The checkpoint: how many lines were read."),
        Column("state", "text", "", "The checkpoint: what the reader must know to continue."),
        Column("seal", "text", "", "A digest of the bytes before the checkpoint; it differs if the file was replaced."),
    ),
)
_SESSIONS = Table(
    "imported_sessions",
    "One row per session that an import has seen, created or not.",
    (
        Column("session_id", "text", "PRIMARY KEY", "Its id in the record."),
        Column("family", "text", "NOT NULL", "Source, user and first message: branches of a session share it."),
        Column("made", "integer", "NOT NULL DEFAULT 0", "1 when it is, or was, in the record."),
        Column("title", "text", "", "The title that the import set; the user may have changed it since."),
    ),
)
SCHEMA = Schema(
    version=2,
    tables=(_ITEMS, _SESSIONS),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_items ON items(source, user_id, file, what)",
        "CREATE INDEX IF NOT EXISTS idx_families ON imported_sessions(family)",
    ),
    # Version 1 stored only the number of sessions; reading the files again stores their ids.
    migrations=(Migration("names-of-sessions", lambda connection: connection.execute("DELETE FROM items")),),
)


@dataclass(frozen=True, slots=True)
class ItemState:
    """How far an item was read; `size` is -1 until it was read to the end."""

    size: int
    modified_at: float
    sessions: Collection[str]
    checkpoint: Checkpoint | None
    prefix_digest: str

    def is_unchanged(self, item: ImportItem) -> bool:
        return self.size == item.size and self.modified_at == item.modified_at


@dataclass(frozen=True, slots=True)
class SeenSession:
    """A session that an import has seen; `created` when it is, or was, in the record."""

    session_id: str
    family: str
    created: bool = False
    title: str | None = None


class ImportState:
    """The state of the imports into one store; only writing it creates the file."""

    def __init__(self, root: Path, store_id: str, user: str | None, *, rescan: bool = False) -> None:
        """`rescan` reads everything again, including sessions that were deleted from the record."""
        self._redactor = Redactor()
        self._file = LazyDatabase(root / FILE_NAME, SCHEMA, APPLICATION_ID)
        self._store_id = store_id
        self._user = user or ""
        self.rescan = rescan
        self._read_in_rescan: set[_ItemKey] = set()
        self._items: dict[str, dict[_ItemKey, ItemState]] = {}
        self._is_ours: bool | None = None
        self._is_damaged = False

    def close(self) -> None:
        self._file.close()

    def item_state(self, source: str, item: ImportItem) -> ItemState | None:
        """Return how far an item was read; None if it never was."""
        key = self._key(source, item)
        if not self._is_usable() or (self.rescan and key not in self._read_in_rescan):
            return None
        if source not in self._items:
            # All at once: most programs keep thousands of files, and most of them do not change.
            self._items[source] = self._load(source)
        return self._items[source].get(key)

    def save_item(self, source: str, item: ImportItem, state: ItemState, seen: Iterable[SeenSession]) -> None:
        """Save how far an item was read, and the sessions that the import saw in it."""
        checkpoint = state.checkpoint
        position: tuple[Any, ...] = (None, None, None)
        if checkpoint:
            position = (checkpoint.offset, checkpoint.line, self._redact_state(checkpoint.state))
        sessions = json.dumps(sorted(state.sessions))
        self._read_in_rescan.add(self._key(source, item))
        if source in self._items:
            self._items[source][self._key(source, item)] = state
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO imported_sessions (session_id, family, made, title) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (session_id) DO UPDATE SET family = excluded.family, made = excluded.made,"
                " title = excluded.title",
                [(session.session_id, session.family, int(session.created), session.title) for session in seen],
            )
            connection.execute(
                "INSERT INTO items (source, user_id, file, what, size, changed, sessions, offset, line, state, seal)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, user_id, file, what) DO UPDATE SET"
                " size = excluded.size, changed = excluded.changed, sessions = excluded.sessions,"
                " offset = excluded.offset, line = excluded.line, state = excluded.state, seal = excluded.seal",
                (*self._key(source, item), state.size, state.modified_at, sessions, *position, state.prefix_digest),
            )

    def seen_session(self, session_id: str) -> SeenSession | None:
        """Return a session that an import has seen; None if no import has seen it."""
        found = self._sessions("session_id = ?", (session_id,))
        return found[0] if found else None

    def related_sessions(self, seen: SeenSession) -> list[str]:
        """Return the other sessions that start with the same message."""
        found = self._sessions("family = ? AND session_id <> ?", (seen.family, seen.session_id))
        return [session.session_id for session in found]

    def forget_content(self, session_ids: Collection[str]) -> None:
        """Remove titles and reader state of deleted sessions; only their ids stay."""
        if not session_ids or not self._is_usable():
            return
        with self._file.open().reading() as connection:
            with_title = connection.execute(
                "SELECT session_id FROM imported_sessions WHERE title IS NOT NULL"
            ).fetchall()
            with_state = connection.execute("SELECT rowid, sessions FROM items WHERE state <> ''").fetchall()
        deleted = frozenset(session_ids)
        titles = [row for row in with_title if row[0] in deleted]
        # Only for files that contain no other session; the reader still needs the state of the others.
        states = [(number,) for number, listed in with_state if (names := _session_names(listed)) and names <= deleted]
        if titles or states:
            with self._writing() as connection:
                connection.executemany("UPDATE imported_sessions SET title = NULL WHERE session_id = ?", titles)
                connection.executemany("UPDATE items SET state = '' WHERE rowid = ?", states)
            self._file.open().shrink_log()

    def files_with(self, session_ids: Collection[str]) -> list[str]:
        """The files of other programs that these sessions were imported from."""
        if not session_ids or not self._is_usable():
            return []
        wanted = frozenset(session_ids)
        with self._file.open().reading() as connection:
            rows = connection.execute("SELECT DISTINCT file, sessions FROM items ORDER BY file").fetchall()
        return list(dict.fromkeys(file for file, listed in rows if _session_names(listed) & wanted))

    def family_key(self, source: str, first: str) -> str:
        """Return the key that all sessions with the same first message share."""
        return f"{source}\n{self._user}\n{first}"

    def _load(self, source: str) -> dict[_ItemKey, ItemState]:
        with self._file.open().reading() as connection:
            rows = connection.execute(
                "SELECT file, what, size, changed, sessions, offset, line, state, seal FROM items"
                " WHERE source = ? AND user_id = ?",
                (source, self._user),
            )
            return {
                (source, self._user, file, label): ItemState(
                    size,
                    modified_at,
                    _session_names(sessions),
                    _make_checkpoint(offset, line, state or ""),
                    prefix_digest or "",
                )
                for file, label, size, modified_at, sessions, offset, line, state, prefix_digest in rows
            }

    def _redact_state(self, state: str) -> str:
        """Redact credentials in a reader's state, which contains titles and directories."""
        value = _parse_object(state)
        if value is None:
            return self._redactor.text(state)[0]
        # Value by value: in the JSON text, a quote of the JSON could look like the end of a credential.
        kept, count = self._redactor.value(value)
        return json.dumps(kept) if count else state

    def _key(self, source: str, item: ImportItem) -> _ItemKey:
        # A path that is not valid text is stored with escapes.
        return source, self._user, str(item.file).encode("utf-8", "backslashreplace").decode(), item.label

    def _sessions(self, condition: str, values: tuple[str, ...]) -> list[SeenSession]:
        if not self._is_usable():
            return []
        with self._file.open().reading() as connection:
            rows = connection.execute(
                f"SELECT session_id, family, made, title FROM imported_sessions WHERE {condition} ORDER BY rowid",
                values,
            )
            return [SeenSession(row[0], row[1], bool(row[2]) and not self.rescan, row[3]) for row in rows]

    def _is_usable(self) -> bool:
        """Whether there is a state file for this store; the file of another, deleted store is ignored."""
        if self._is_ours is None:
            if not self._file.exists():
                return False
            try:
                with self._file.open().reading() as connection:
                    self._is_ours = _owner(connection) == self._store_id
            except CorruptStoreError as error:
                _log.warning("The state of earlier imports cannot be read, so everything is read again: %s", error)
                self._is_ours, self._is_damaged = False, True
        return self._is_ours

    def _writing(self) -> AbstractContextManager[Connection]:
        if not self._is_usable():
            if self._is_damaged:
                self._move_damaged_file()
            with self._file.open().writing() as connection:
                _assign_to_store(connection, self._store_id)
            self._is_ours = True
        return self._file.open().writing()

    def _move_damaged_file(self) -> None:
        """Rename the damaged file, so that a new one can be created."""
        self._file.close()
        renamed = f"{self._file.path}.damaged-{time.time():.0f}"
        for ending in SIDE_FILES:
            with suppress(FileNotFoundError):
                os.replace(f"{self._file.path}{ending}", f"{renamed}{ending}")
        self._is_damaged = False


def delete_items_with(connection: Connection, matches: Callable[[str], bool]) -> int:
    """Delete the rows of files whose path or part matches; such a file is read from its start again."""
    rows = connection.execute("SELECT rowid, file, what FROM items").fetchall()
    numbers = [(number,) for number, file, part in rows if matches(file) or matches(part)]
    connection.executemany("DELETE FROM items WHERE rowid = ?", numbers)
    return len(numbers)


def _make_checkpoint(offset: int | None, line: int, state: str) -> Checkpoint | None:
    """Return the checkpoint; None when there is none, or when the reader's state is damaged."""
    if offset is None or (state.startswith("{") and _parse_object(state) is None):
        return None
    return Checkpoint(offset, line, state)


def _parse_object(state: str) -> dict[str, Any] | None:
    """Return the JSON object that is a reader's state; None when the state is something else."""
    value = _parse_json(state)
    return value if isinstance(value, dict) else None


def _session_names(listed: str) -> frozenset[str]:
    """Return the sessions in a file; none if the list is damaged."""
    value = _parse_json(listed)
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _owner(connection: Connection) -> str | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = 'store_id'").fetchone()
    return str(row[0]) if row else None


def _assign_to_store(connection: Connection, store_id: str) -> None:
    """Make the file belong to a store; the state of another store is deleted."""
    if _owner(connection) != store_id:
        connection.execute("DELETE FROM items")
        connection.execute("DELETE FROM imported_sessions")
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES ('store_id', ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (store_id,),
        )
