"""The import state: how far each file was read, and which sessions it contains.

It is in `home.db`, or on the server that has the record, for all nodes. It only saves time. The session store knows
messages by their external ids and deleted sessions by their names, so without this state everything is read again, but
nothing is added twice and no deleted session returns.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from memoranda.errors import CorruptStoreError
from memoranda.importers.reader_protocol import Checkpoint, ImportItem
from memoranda.importers.state.log import ImportLog, ImportPart
from memoranda.importers.state.schema import (
    assign_to_store,
    imports_database,
    node_name,
    note_unknown_kinds,
    note_user_means_typed,
    store_of_imports,
    user_means_typed,
)
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, Engine
from memoranda.support.json_object import parse_list, parse_object
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_ItemKey = tuple[str, ...]
_KEY = "source, user_id, node, file, what"
_READ_TO = ("size", "changed", "sessions", "read_offset", "line", "state", "seal")


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

    def __init__(
        self, root: Path, store_id: str, user: str | None, *, rescan: bool = False, server_url: str = ""
    ) -> None:
        """`rescan` reads everything again, including sessions that were deleted from the record.

        `server_url` is the server that has the record, if one has.
        """
        self._redactor = Redactor()
        self._database = imports_database(root, server_url)
        # A path means something only on its own machine.
        self._node = node_name() if server_url else ""
        self._store_id = store_id
        self._user = user or ""
        self.rescan = rescan
        self._read_in_rescan: set[_ItemKey] = set()
        self._items: dict[str, dict[_ItemKey, ItemState]] = {}
        self._is_ours: bool | None = None
        self.log = ImportLog(self._user, self._reading, self._writing)

    def close(self) -> None:
        self._database.close()

    def item_state(self, source: str, item: ImportItem) -> ItemState | None:
        """Return how far an item was read; None if it never was."""
        key = self._key(source, item)
        if not self._is_usable() or (self.rescan and key not in self._read_in_rescan):
            return None
        if source not in self._items:
            # All at once: most programs keep thousands of files, and most of them do not change.
            self._items[source] = self._load(source)
        return self._items[source].get(key)

    def save_item(
        self,
        source: str,
        item: ImportItem,
        state: ItemState,
        seen: Iterable[SeenSession],
        logged: tuple[str, Iterable[ImportPart]] | None = None,
    ) -> None:
        """Save how far an item was read, the sessions that the import saw in it, and what it added to them.

        `logged` is the id of the import with the parts since the last call.
        """
        checkpoint = state.checkpoint
        position: tuple[Any, ...] = (None, None, None)
        if checkpoint:
            position = (checkpoint.offset, checkpoint.line, self._redact_state(checkpoint.state))
        sessions = json.dumps(sorted(state.sessions))
        if not self._read_in_rescan:
            self.note_user_means_typed()
        self._read_in_rescan.add(self._key(source, item))
        if source in self._items:
            self._items[source][self._key(source, item)] = state
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO imported_sessions (session_id, family, made, title, user_id) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (session_id) DO UPDATE SET family = excluded.family, made = excluded.made,"
                " title = excluded.title",
                [(each.session_id, each.family, int(each.created), each.title, self._user) for each in seen],
            )
            source, *file = self._key(source, item)
            values = (source, self._user, self._node, *file, state.size, state.modified_at, sessions, *position,
                      state.prefix_digest)  # fmt: skip
            connection.execute(
                f"INSERT INTO import_items ({_KEY}, {', '.join(_READ_TO)}) VALUES (?{', ?' * (len(values) - 1)})"
                f" ON CONFLICT ({_KEY}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _READ_TO)}",
                values,
            )
            if logged is not None:
                self.log.save_parts(connection, *logged)

    def user_means_typed(self) -> bool:
        """Whether the record has no text of other programs as words of the user, as earlier versions imported it."""
        if not self._is_usable():
            return True
        with self._everyone().reading() as connection:
            return user_means_typed(connection)

    def note_user_means_typed(self, *, checked: bool = False) -> None:
        """Record that, before the first file, or after all sessions were `checked`."""
        self._prepare_writing()
        with self._everyone().writing() as connection:
            note_user_means_typed(connection, checked=checked)

    def read_files(self) -> list[tuple[str, str, Path, str]]:
        """Return the user, the source, the path and the part of every file of this machine that was read."""
        if not self._is_usable():
            return []
        with self._everyone().reading() as connection:
            rows = connection.execute(
                "SELECT user_id, source, file, what FROM import_items WHERE node IN ('', ?) ORDER BY id",
                (node_name(),),
            ).fetchall()
        return [(user, source, Path(file), part) for user, source, file, part in rows]

    def note_unknown_kinds(self, source: str, kinds: Mapping[str, int]) -> None:
        """Count the lines that a reader does not know, for the doctor."""
        if kinds:
            with self._writing() as connection:
                note_unknown_kinds(connection, source, kinds)

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
        deleted, everyone = frozenset(session_ids), self._everyone()
        named, values = everyone.dialect.one_of("session_id", deleted)
        named += " AND title IS NOT NULL"
        with everyone.reading() as connection:
            has_titles = connection.execute(f"SELECT 1 FROM imported_sessions WHERE {named} LIMIT 1", values).fetchone()
            # Only for files that contain no other session; the reader still needs the state of the others.
            states = [
                (number,) for number, names in self._listed_sessions(connection, "state <> ''") if names <= deleted
            ]
        if has_titles or states:
            self._prepare_writing()
            with everyone.writing() as connection:
                connection.execute(f"UPDATE imported_sessions SET title = NULL WHERE {named}", values)
                connection.executemany("UPDATE import_items SET state = '' WHERE id = ?", states)
            everyone.shrink_log()

    def reread(self, session_ids: Collection[str], removed: Collection[str], sources: Collection[str] = ()) -> None:
        """Read the files with these sessions from their start again; `removed` sessions count as never seen.

        All files of `sources` are read again, too.
        """
        names, gone = frozenset(session_ids), [(name,) for name in removed]
        if not (names or sources) or not self._is_usable():
            return
        self._items.clear()
        with self._everyone().writing() as connection:
            numbers = [(number,) for number, listed in self._listed_sessions(connection) if listed & names]
            connection.executemany(
                "DELETE FROM import_items WHERE source = ? AND user_id = ?", [(name, self._user) for name in sources]
            )
            connection.executemany("DELETE FROM import_items WHERE id = ?", numbers)
            connection.executemany("DELETE FROM imported_sessions WHERE session_id = ?", gone)

    def files_with(self, session_ids: Collection[str]) -> list[str]:
        """The files of other programs that these sessions were imported from; on a server with the machine."""
        if not session_ids or not self._is_usable():
            return []
        wanted = frozenset(session_ids)
        file = "node || ':' || file" if self._node else "file"
        with self._everyone().reading() as connection:
            numbers = [number for number, listed in self._listed_sessions(connection) if listed & wanted]
            if not numbers:
                return []
            listed = self._everyone().dialect.one_of("id", numbers)
            rows = connection.execute(
                f"SELECT DISTINCT {file} FROM import_items WHERE {listed.text} ORDER BY 1", listed.values
            ).fetchall()
        return [name for (name,) in rows]

    def family_key(self, source: str, first: str) -> str:
        """Return the key that all sessions with the same first message share."""
        return f"{source}\n{self._user}\n{self._redactor.name(first)}"

    def _load(self, source: str) -> dict[_ItemKey, ItemState]:
        """Rows without a node, or with this one, also belong to this machine after a move to a server or back."""
        with self._engine().reading() as connection:
            rows = connection.execute(
                f"SELECT file, what, {', '.join(_READ_TO)} FROM import_items"
                " WHERE source = ? AND user_id = ? AND node IN ('', ?) ORDER BY CASE WHEN node = ? THEN 1 ELSE 0 END",
                (source, self._user, node_name(), self._node),
            )
            return {
                (source, file, label): ItemState(
                    size,
                    modified_at,
                    _session_names(sessions),
                    _make_checkpoint(offset, line, state or ""),
                    prefix_digest or "",
                )
                for file, label, size, modified_at, sessions, offset, line, state, prefix_digest in rows
            }

    def _listed_sessions(self, connection: Connection, condition: str = "1 = 1") -> list[tuple[int, frozenset[str]]]:
        """The numbers of items and the sessions in them; the owner of a home may have imported those of a user."""
        whose = Condition("", ()) if not self._user else Condition(" AND user_id IN (?, '')", (self._user,))
        rows = connection.execute(
            f"SELECT id, sessions FROM import_items WHERE {condition}{whose.text}", whose.values
        ).fetchall()
        return [(number, names) for number, listed in rows if (names := _session_names(listed))]

    def _redact_state(self, state: str) -> str:
        """Redact credentials in a reader's state, which contains titles and directories."""
        value = parse_object(state)
        if value is None:
            return self._redactor.text(state)[0]
        # Value by value: in the JSON text, a quote of the JSON could look like the end of a credential.
        kept, count = self._redactor.value(value)
        return json.dumps(kept) if count else state

    def _key(self, source: str, item: ImportItem) -> _ItemKey:
        # A path that is not valid text is stored with escapes.
        file = str(item.file).encode("utf-8", "backslashreplace").decode()
        return source, self._redactor.name(file), self._redactor.name(item.label)

    def _sessions(self, condition: str, values: tuple[str, ...]) -> list[SeenSession]:
        if not self._is_usable():
            return []
        with self._engine().reading() as connection:
            rows = connection.execute(
                f"SELECT session_id, family, made, title FROM imported_sessions WHERE {condition} ORDER BY id",
                values,
            )
            return [SeenSession(row[0], row[1], bool(row[2]) and not self.rescan, row[3]) for row in rows]

    def _engine(self) -> Engine:
        """The database, in which a server shows only the rows of this user."""
        return self._database.open().acting_for(self._user or None)

    def _everyone(self) -> Engine:
        """The database with the rows of all users: the owner of a home may have imported a user's sessions."""
        return self._database.open().acting_for(None, everyone=True)

    def _is_usable(self) -> bool:
        """Whether there is a state for this store; the file of another, deleted store is ignored."""
        if self._is_ours is None:
            if not self._database.exists():
                return False
            if self._database.server_url:
                self._is_ours = True
                return True
            try:
                with self._database.open().reading() as connection:
                    self._is_ours = store_of_imports(connection) == self._store_id
            except CorruptStoreError as error:
                _log.warning("The state of earlier imports cannot be read: %s", error)
                return False
        return self._is_ours

    def _reading(self) -> AbstractContextManager[Connection] | None:
        return self._engine().reading() if self._is_usable() else None

    def _writing(self) -> AbstractContextManager[Connection]:
        self._prepare_writing()
        return self._engine().writing()

    def _prepare_writing(self) -> None:
        """Create the tables, or make those of another store belong to this one."""
        if self._is_usable():
            return
        with self._database.open().writing() as connection:
            assign_to_store(connection, self._store_id)
        self._is_ours = True


def _make_checkpoint(offset: int | None, line: int, state: str) -> Checkpoint | None:
    """Return the checkpoint; None when there is none, or when the reader's state is damaged."""
    if offset is None or (state.startswith("{") and parse_object(state) is None):
        return None
    return Checkpoint(offset, line, state)


def _session_names(listed: str) -> frozenset[str]:
    """Return the sessions in a file; none if the list is damaged."""
    return frozenset(name for name in parse_list(listed) or () if isinstance(name, str))
