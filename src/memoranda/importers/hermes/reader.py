"""Reads the sessions of a Hermes home from its `state.db`, of any schema version, also while Hermes is running.

Each session is read by itself and the database is let go in between, so that Hermes is never held up. What is new since
the last time is known by the numbers of the messages, which only grow.
"""

import json
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.hermes.message_rows import Row, fingerprint, message, said, was_taken_back
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
_OUR_OWN = int.from_bytes(APPLICATION_ID, "big")
_AT_ONCE = 200
# A title is often given after the first messages; the latest sessions are looked at again for it.
_LATEST = 200


class Hermes:
    """The reader of Hermes's session database."""

    name = "hermes"

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        """The database of a home and those of its profiles, or the one that is named."""
        if where is not None and item_at(where, "") is not None:
            named = database_at(where, "sessions")
            return [named] if named else []
        home = where or Path.home() / ".hermes"
        try:
            profiles = sorted(path for path in (home / "profiles").iterdir() if path.is_dir())
        except OSError:
            profiles = []
        found = [database_at(root / _FILE_NAME, "sessions") for root in (home, *profiles)]
        return [item for item in found if item is not None]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Every session with its messages, or what is new since the item was read last."""
        with open_database(item.file) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] == _OUR_OWN:
                yield Problem(item.file, None, "this is Memoranda's own record, not one of Hermes")
                return
            columns = tables(connection)
            if "id" not in columns.get("sessions", ()) or "session_id" not in columns.get("messages", ()):
                yield Problem(item.file, None, "this is no session database of Hermes: it has no sessions or messages")
                return
            state = _State.of(connection, item.checkpoint)
            known = session_nodes(connection, columns["sessions"])
            wanted = _wanted(connection, known, state)
        for place in wanted:
            with open_database(item.file) as connection:
                yield from _Session(connection, place, state.after).given()
        yield Checkpoint(0, 0, state.kept())

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Hermes goes back to the session's directory by itself."""
        return f"hermes --resume {shlex.quote(host_id)}"


class _State:
    """How far a database was read: up to which message, in a database that begins with which."""

    def __init__(self, after: int, last: int, origin: str) -> None:
        self.after = after
        self._last = last
        self._origin = origin

    @classmethod
    def of(cls, connection: sqlite3.Connection, mark: Checkpoint | None) -> "_State":
        first = connection.execute("SELECT id, session_id FROM messages ORDER BY id LIMIT 1").fetchone()
        last = connection.execute("SELECT max(id) FROM messages").fetchone()[0]
        origin, last = repr(first), last if isinstance(last, int) else 0
        kept = json.loads(mark.state) if mark and mark.state else {}
        # Another database, or an older one that was put back, is read from its beginning.
        same = kept.get("origin") == origin and kept.get("last", 0) <= last
        return cls(kept["last"] if same else 0, last, origin)

    def kept(self) -> str:
        return json.dumps({"last": self._last, "origin": self._origin})


def _wanted(connection: sqlite3.Connection, known: dict[str, SessionNode], state: _State) -> list[SessionNode]:
    """The sessions to read, in order; those that messages name but the sessions table does not have come last."""
    new = connection.execute("SELECT DISTINCT session_id FROM messages WHERE id > ?", (state.after,)).fetchall()
    names = {row[0] for row in new}
    latest = sorted(known.values(), key=lambda place: place.started_at)[-_LATEST:]
    names |= {place.id for place in latest}
    lost = [SessionNode(name, None, 0.0) for name in sorted(names - known.keys(), key=str)]
    return [*(place for place in known.values() if place.id in names), *lost]


class _Session:
    """One session of the database."""

    def __init__(self, connection: sqlite3.Connection, place: SessionNode, after: int) -> None:
        self._connection = connection
        self._place = place
        self._after = after
        self._times: dict[bytes, int] = {}

    def given(self) -> Iterator[ReadEvent]:
        row = self._row(self._place.id) or {"id": str(self._place.id)}
        parent = self._row(self._place.parent) if self._place.parent else None
        told = conversation(row, parent)
        yield told
        numbers = self._numbers(self._place.id)
        if not numbers or numbers[-1] <= self._after:
            return
        for each in classify_rows(self._messages(numbers), self._before(told)):
            name = self._name(each, told)
            if each.row["id"] <= self._after:
                continue
            if was_taken_back(each.row):
                yield Skipped("message that was taken back")
            elif each.standing == "again":
                yield Skipped("message repeated by compression")
            else:
                yield ImportedMessage(message(each.row, name, summary=each.standing == "summary"))

    def _before(self, told: ImportedConversation) -> EarlierRows:
        """What the session that this one continues or branches from has said."""
        known = EarlierRows()
        if self._place.parent and told.relation != "delegation":
            for row in self._messages(self._numbers(self._place.parent)):
                known.learn(row, said(row))
        return known

    def _name(self, each: ClassifiedRow, told: ImportedConversation) -> str:
        """By what was said when a message is known, because some versions write rows anew under other numbers."""
        words_and_time = fingerprint(each.words, each.row.get("timestamp"))
        times = self._times[words_and_time] = self._times.get(words_and_time, 0) + 1
        return f"{told.host_id}/{words_and_time.hex()}" + (f"/{times}" if times > 1 else "")

    def _numbers(self, session_id: Any) -> list[int]:
        found = self._connection.execute("SELECT id FROM messages WHERE session_id = ?", (session_id,))
        return sorted(row[0] for row in found)

    def _messages(self, numbers: list[int]) -> Iterator[Row]:
        for start in range(0, len(numbers), _AT_ONCE):
            some = numbers[start : start + _AT_ONCE]
            cursor = self._connection.execute(
                f"SELECT * FROM messages WHERE id IN ({', '.join('?' * len(some))}) ORDER BY id", some
            )
            names = [column[0] for column in cursor.description]
            yield from (dict(zip(names, row, strict=True)) for row in cursor)

    def _row(self, session_id: str) -> dict[str, Any] | None:
        cursor = self._connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,))
        names = [column[0] for column in cursor.description]
        found = cursor.fetchone()
        return None if found is None else dict(zip(names, found, strict=True))
