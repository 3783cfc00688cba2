"""Reads the sessions of a Hermes home from its `state.db`, of any schema version, even while Hermes is running.

Each session is read separately and the database is closed in between, so that Hermes is never blocked. Message ids only
grow, so new messages have larger ids.
"""

import json
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.hermes.message_rows import Row, chat_message, content_fingerprint
from memoranda.importers.hermes.repeated_rows import EarlierRows, ExternalIds, classify_rows
from memoranda.importers.hermes.session_rows import SessionNode, conversation, session_nodes
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
)
from memoranda.importers.source_databases import database_at, open_database, tables
from memoranda.importers.source_files import item_at
from memoranda.memory.record.imported_rows import MessageState
from memoranda.support.home import APPLICATION_ID

_FILE_NAME = "state.db"
# Another label than in earlier versions, which imported fewer columns: the first import reads everything again.
_LABEL = "sessions with their columns"
_OWN_APPLICATION_ID = int.from_bytes(APPLICATION_ID, "big")
_ROWS_PER_QUERY = 200
# A title is often set after the first messages, so the latest sessions are read again.
_MAX_LATEST = 200


class Hermes:
    """The reader of Hermes's session database."""

    name = "hermes"

    def __init__(self, session_id: str | None = None) -> None:
        """`session_id` limits the reading to one session, for the capture of a single turn."""
        self._session_id = session_id

    def session_items(self, database: Path) -> Sequence[ImportItem]:
        """Return the one session in a database as an item of its own; none when the database is missing."""
        found = database_at(database, f"session {self._session_id}")
        return [found] if found else []

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the database of a home and those of its profiles, or the database at the path."""
        if path is not None and item_at(path, "") is not None:
            named = database_at(path, _LABEL)
            return [named] if named else []
        home = path or Path.home() / ".hermes"
        try:
            profiles = sorted(path for path in (home / "profiles").iterdir() if path.is_dir())
        except OSError:
            profiles = []
        found = [database_at(root / _FILE_NAME, _LABEL) for root in (home, *profiles)]
        return [item for item in found if item is not None]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield every session with its messages, or what is new since the checkpoint."""
        with open_database(item.file) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] == _OWN_APPLICATION_ID:
                yield Problem(item.file, None, "this is Memoranda's own record, not one of Hermes")
                return
            columns = tables(connection)
            if "id" not in columns.get("sessions", ()) or "session_id" not in columns.get("messages", ()):
                yield Problem(item.file, None, "this is not a session database of Hermes: no sessions or messages")
                return
            state = _State.restore(connection, item.checkpoint)
            known = session_nodes(connection, columns["sessions"])
            if self._session_id is None:
                wanted = _sessions_to_read(connection, known, state)
            else:
                wanted = [known[self._session_id]] if self._session_id in known else []
        for node in wanted:
            with open_database(item.file) as connection:
                yield from _HermesSession(connection, node, known, state).events()
        yield Checkpoint(0, 0, state.serialize())

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command; Hermes itself changes to the session's directory."""
        return f"hermes --resume {shlex.quote(host_id)}"


class _State:
    """How far a database was read: up to which message, which one is its first, and how many left the context."""

    def __init__(self, after: int, last: int, origin: str, inactive: dict[str, int]) -> None:
        """`inactive` are the numbers of inactive messages by session, as the last import found them."""
        self.after = after
        self._last = last
        self._origin = origin
        self._inactive_before = inactive
        self._inactive: dict[str, int] = {}

    @classmethod
    def restore(cls, connection: sqlite3.Connection, checkpoint: Checkpoint | None) -> "_State":
        first = connection.execute("SELECT id, session_id FROM messages ORDER BY id LIMIT 1").fetchone()
        last = connection.execute("SELECT max(id) FROM messages").fetchone()[0]
        origin, last = repr(first), last if isinstance(last, int) else 0
        kept = json.loads(checkpoint.state) if checkpoint and checkpoint.state else {}
        # Another database, or a restored older one, is read from its start.
        same = kept.get("origin") == origin and kept.get("last", 0) <= last
        return cls(kept["last"] if same else 0, last, origin, kept.get("inactive", {}) if same else {})

    def has_other_states(self, session_id: str, inactive: int) -> bool:
        """Whether messages were rewound, restored or compressed since the last import; remembers the new number."""
        if inactive:
            self._inactive[session_id] = inactive
        return inactive != self._inactive_before.get(session_id, 0)

    def serialize(self) -> str:
        return json.dumps({"last": self._last, "origin": self._origin, "inactive": self._inactive})


def _sessions_to_read(
    connection: sqlite3.Connection, known: dict[str, SessionNode], state: _State
) -> list[SessionNode]:
    """Return the sessions to read, in order; those that only the messages table names come last."""
    new = connection.execute("SELECT DISTINCT session_id FROM messages WHERE id > ?", (state.after,)).fetchall()
    names = {row[0] for row in new}
    latest = sorted(known.values(), key=lambda node: node.started_at)[-_MAX_LATEST:]
    names |= {node.id for node in latest}
    unlisted = [SessionNode(name, None, 0.0) for name in sorted(names - known.keys(), key=str)]
    return [*(node for node in known.values() if node.id in names), *unlisted]


class _HermesSession:
    """One session of the database."""

    def __init__(
        self, connection: sqlite3.Connection, node: SessionNode, known: Mapping[str, SessionNode], state: _State
    ) -> None:
        self._connection = connection
        self._node = node
        self._known = known
        self._state = state

    def events(self) -> Iterator[ReadEvent]:
        row = self._session_row(self._node.id) or {"id": str(self._node.id)}
        parent = self._session_row(self._node.parent) if self._node.parent else None
        imported = conversation(row, parent, self._user(row))
        yield imported
        message_ids = self._message_ids(self._node.id)
        # All states are passed on again if one has changed.
        changed = self._state.has_other_states(imported.host_id, self._inactive_count())
        after = 0 if changed else self._state.after
        if not message_ids or message_ids[-1] <= after:
            return
        ids = ExternalIds(imported.host_id)
        for found in classify_rows(self._message_rows(message_ids), self._earlier_rows(imported), ids):
            if found.row["id"] > after:
                message = chat_message(found.row, found.external_id, summary=found.kind == "summary")
                active, compacted = found.row.get("active") != 0, bool(found.row.get("compacted"))
                yield ImportedMessage(message, state=MessageState(active, compacted and not active, found.original))

    def _user(self, row: Row) -> str | None:
        """Return the user of a session; one without a user belongs to the user for whom its parent worked."""
        seen: set[str] = set()
        node: SessionNode | None = self._node
        while node is not None and node.id not in seen:
            seen.add(node.id)
            user = (row if node is self._node else self._session_row(node.id) or {}).get("user_id")
            if isinstance(user, str) and user:
                return user
            node = self._known.get(node.parent) if node.parent else None
        return None

    def _earlier_rows(self, imported: ImportedConversation) -> EarlierRows:
        """Return the rows of the session that this one continues or branches from."""
        known = EarlierRows()
        if self._node.parent and imported.relation != "delegation":
            ids = ExternalIds(self._node.parent)
            for row in self._message_rows(self._message_ids(self._node.parent)):
                content = content_fingerprint(row)
                known.learn(row, content, ids.name(row, content))
        return known

    def _inactive_count(self) -> int:
        names = {column[1] for column in self._connection.execute("PRAGMA table_info(messages)")}
        if "active" not in names:
            return 0
        found = self._connection.execute(
            "SELECT count(*) FROM messages WHERE session_id = ? AND active = 0", (self._node.id,)
        ).fetchone()
        return int(found[0])

    def _message_ids(self, session_id: Any) -> list[int]:
        found = self._connection.execute("SELECT id FROM messages WHERE session_id = ?", (session_id,))
        return sorted(row[0] for row in found)

    def _message_rows(self, message_ids: list[int]) -> Iterator[Row]:
        for start in range(0, len(message_ids), _ROWS_PER_QUERY):
            batch = message_ids[start : start + _ROWS_PER_QUERY]
            cursor = self._connection.execute(
                f"SELECT * FROM messages WHERE id IN ({', '.join('?' * len(batch))}) ORDER BY id", batch
            )
            names = [column[0] for column in cursor.description]
            yield from (dict(zip(names, row, strict=True)) for row in cursor)

    def _session_row(self, session_id: str) -> dict[str, Any] | None:
        cursor = self._connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,))
        names = [column[0] for column in cursor.description]
        found = cursor.fetchone()
        return None if found is None else dict(zip(names, found, strict=True))
