"""Reads the sessions of a Hermes home from its `state.db`, of any schema version, even while Hermes is running.

Each session is read separately and the database is closed in between, so that Hermes is never blocked. Message ids only
grow, so new messages have larger ids.
"""

import json
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.hermes.message_rows import Row, chat_message, content_fingerprint, fingerprint, was_rewound
from memoranda.importers.hermes.repeated_rows import ClassifiedRow, EarlierRows, classify_rows
from memoranda.importers.hermes.session_rows import SessionNode, conversation, session_nodes
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_databases import database_at, open_database, tables
from memoranda.importers.source_files import item_at
from memoranda.support.home import APPLICATION_ID

_FILE_NAME = "state.db"
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
            named = database_at(path, "sessions")
            return [named] if named else []
        home = path or Path.home() / ".hermes"
        try:
            profiles = sorted(path for path in (home / "profiles").iterdir() if path.is_dir())
        except OSError:
            profiles = []
        found = [database_at(root / _FILE_NAME, "sessions") for root in (home, *profiles)]
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
                yield from _HermesSession(connection, node, state.after).events()
        yield Checkpoint(0, 0, state.serialize())

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command; Hermes itself changes to the session's directory."""
        return f"hermes --resume {shlex.quote(host_id)}"


class _State:
    """How far a database was read: up to which message, and which message is its first."""

    def __init__(self, after: int, last: int, origin: str) -> None:
        self.after = after
        self._last = last
        self._origin = origin

    @classmethod
    def restore(cls, connection: sqlite3.Connection, checkpoint: Checkpoint | None) -> "_State":
        first = connection.execute("SELECT id, session_id FROM messages ORDER BY id LIMIT 1").fetchone()
        last = connection.execute("SELECT max(id) FROM messages").fetchone()[0]
        origin, last = repr(first), last if isinstance(last, int) else 0
        kept = json.loads(checkpoint.state) if checkpoint and checkpoint.state else {}
        # Another database, or a restored older one, is read from its start.
        same = kept.get("origin") == origin and kept.get("last", 0) <= last
        return cls(kept["last"] if same else 0, last, origin)

    def serialize(self) -> str:
        return json.dumps({"last": self._last, "origin": self._origin})


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

    def __init__(self, connection: sqlite3.Connection, node: SessionNode, after: int) -> None:
        self._connection = connection
        self._node = node
        self._after = after
        self._times: dict[bytes, int] = {}

    def events(self) -> Iterator[ReadEvent]:
        row = self._session_row(self._node.id) or {"id": str(self._node.id)}
        parent = self._session_row(self._node.parent) if self._node.parent else None
        imported = conversation(row, parent)
        yield imported
        message_ids = self._message_ids(self._node.id)
        if not message_ids or message_ids[-1] <= self._after:
            return
        for classified in classify_rows(self._message_rows(message_ids), self._earlier_rows(imported)):
            name = self._external_id(classified, imported)
            if classified.row["id"] <= self._after:
                continue
            if was_rewound(classified.row):
                yield Skipped("message that was rewound")
            elif classified.kind == "repetition":
                yield Skipped("message repeated by compression")
            else:
                yield ImportedMessage(chat_message(classified.row, name, summary=classified.kind == "summary"))

    def _earlier_rows(self, imported: ImportedConversation) -> EarlierRows:
        """Return the rows of the session that this one continues or branches from."""
        known = EarlierRows()
        if self._node.parent and imported.relation != "delegation":
            for row in self._message_rows(self._message_ids(self._node.parent)):
                known.learn(row, content_fingerprint(row))
        return known

    def _external_id(self, classified: ClassifiedRow, imported: ImportedConversation) -> str:
        """Return an id made from a message's content and time, because some versions rewrite rows with other ids."""
        content_and_time = fingerprint(classified.content, classified.row.get("timestamp"))
        times = self._times[content_and_time] = self._times.get(content_and_time, 0) + 1
        return f"{imported.host_id}/{content_and_time.hex()}" + (f"/{times}" if times > 1 else "")

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
