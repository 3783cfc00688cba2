"""What a record knows of its synchronisation: the stamps of sessions and messages, and how far they were sent.

Most messages need no row here: a message that was recorded here, and that was not changed since, is known by its
id, and what is new is a query for the ids after the last one that was sent. A message has a row if it came from another
machine, or if it was changed or deleted after it was sent: a trigger notes that in the transaction that makes the
change, also if another program makes it. The next synchronisation gives it a stamp.

A message is known to all machines by its `gid`: its id in the program it was imported from, or the machine and its id
there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from memoranda.memory.record.schema import SYNC_MACHINE, SYNC_POSITION
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.storage.state_meta import read_meta, write_meta


class Row(NamedTuple):
    """The last change of something that travels; an empty digest says that it was removed."""

    stamp: str
    base: str
    digest: str
    run: int


class SyncedSession(NamedTuple):
    """A session as all machines know it; an empty id says that it was deleted."""

    key: str
    session_id: str
    fingerprint: str = ""
    parent: str = ""
    relation: str = ""


class MessageVersion(NamedTuple):
    """A message as all machines know it; `is_here` says that it exists here, `is_changed` that it has no stamp yet."""

    gid: str
    number: int
    stamp: str = ""
    run: int = 0
    is_changed: bool = False
    is_here: bool = True


class RowVersions(StorePart):
    """The stamps of one record."""

    def value(self, name: str) -> str:
        """A single value that is kept with the record, such as the id of this machine; empty if there is none."""
        with self._engine.reading() as connection:
            return read_meta(connection, f"sync_{name}") or ""

    def set_value(self, name: str, value: str) -> None:
        """Set a single value."""
        with self._engine.writing() as connection:
            write_meta(connection, f"sync_{name}", value)

    def set_machine(self, machine: str, stamp: str) -> None:
        """Give this machine another id; what was sent under the old one keeps its names and gets its `stamp`."""
        with self._engine.writing() as connection:
            old = read_meta(connection, SYNC_MACHINE)
            connection.execute(
                "INSERT INTO message_versions (session_id, gid, message_id, version, run) SELECT session_id,"
                f" COALESCE('x:' || external_id, '{old}:' || id), id, ?, 0 FROM messages WHERE id <= ?"
                " AND NOT EXISTS (SELECT 1 FROM message_versions v WHERE v.message_id = messages.id)",
                (stamp, _position(connection)),
            )
            write_meta(connection, SYNC_MACHINE, machine)

    def position(self) -> int:
        """The last message that was read for other machines."""
        with self._engine.reading() as connection:
            return _position(connection)

    def rows(self) -> dict[str, Row]:
        """The last changes of everything that travels, by kind and name."""
        return {
            row[0]: Row(*row[1:]) for row in self._fetch_all("SELECT name, stamp, base, digest, run FROM synced_rows")
        }

    def put_rows(self, rows: Mapping[str, Row]) -> None:
        """Store last changes."""
        if rows:
            with self._engine.writing() as connection:
                put_rows(connection, rows)

    def sessions(self) -> dict[str, SyncedSession]:
        """All sessions, by their keys."""
        rows = self._fetch_all("SELECT key, session_id, fingerprint, parent, relation FROM synced_sessions")
        return {row[0]: SyncedSession(*row) for row in rows}

    def put_sessions(self, sessions: Iterable[SyncedSession], rows: Mapping[str, Row]) -> None:
        """Store what is known of sessions, with their last changes."""
        with self._engine.writing() as connection:
            put_sessions(connection, sessions)
            put_rows(connection, rows)

    def drop_sessions(self, sessions: Sequence[SyncedSession], rows: Mapping[str, Row]) -> None:
        """Note that sessions were deleted; nothing but their keys stays."""
        with self._engine.writing() as connection:
            for session in sessions:
                connection.execute("DELETE FROM message_versions WHERE session_id = ?", (session.session_id,))
            put_sessions(connection, [SyncedSession(session.key, "") for session in sessions])
            put_rows(connection, rows)

    def messages(self, session_id: str) -> list[MessageVersion]:
        """The messages of a session that have a row, deleted ones too, in the order of their ids."""
        rows = self._fetch_all(
            "SELECT v.gid, v.message_id, v.version, v.run, v.changed, m.id IS NOT NULL FROM message_versions v"
            " LEFT JOIN messages m ON m.id = v.message_id AND m.session_id = v.session_id"
            " WHERE v.session_id = ? ORDER BY v.message_id, v.gid",
            (self._stored_name(session_id),),
        )
        return [
            MessageVersion(gid, number, stamp, run, bool(changed), bool(here))
            for gid, number, stamp, run, changed, here in rows
        ]

    def unsettled(self) -> list[str]:
        """The sessions with messages that changed and have no stamp yet."""
        rows = self._fetch_all("SELECT DISTINCT session_id FROM message_versions WHERE changed = 1")
        return [row[0] for row in rows]

    def settle(self, stamp: str, run: int, last_message: int) -> None:
        """Give messages that changed a stamp, and note how far they were read.

        A message that was imported again after another one with its name was deleted gets a name of its own.
        """
        with self._engine.writing() as connection:
            connection.execute(
                "UPDATE message_versions SET version = ?, run = ?, changed = 0 WHERE changed = 1", (stamp, run)
            )
            connection.execute(
                "INSERT INTO message_versions (session_id, gid, message_id, version, run) SELECT m.session_id,"
                f" '{read_meta(connection, SYNC_MACHINE)}:' || m.id, m.id, ?, ? FROM messages m"
                " JOIN message_versions v ON v.session_id = m.session_id AND v.gid = 'x:' || m.external_id"
                " WHERE m.id > ? AND v.message_id <> m.id"
                " AND NOT EXISTS (SELECT 1 FROM message_versions o WHERE o.message_id = m.id)",
                (stamp, run, _position(connection)),
            )
            if last_message > _position(connection) or read_meta(connection, SYNC_POSITION) is None:
                write_meta(connection, SYNC_POSITION, str(last_message))

    def put(self, session_id: str, versions: Iterable[MessageVersion]) -> None:
        """Store what is known of messages of a session."""
        with self._engine.writing() as connection:
            put_versions(connection, self._stored_name(session_id), versions)

    def find_gid(self, message_id: int) -> tuple[str, str] | None:
        """The session and the gid of a message that exists."""
        row = self._fetch_one(
            "SELECT m.session_id, COALESCE((SELECT min(gid) FROM message_versions v WHERE v.message_id = m.id),"
            " 'x:' || m.external_id) FROM messages m WHERE m.id = ?",
            (message_id,),
        )
        return None if row is None else (row[0], row[1] or f"{self.value('machine')}:{message_id}")

    def find_message(self, gid: str, session_id: str | None = None) -> int | None:
        """The id of the message with a gid, of a session or of any; None if it does not exist."""
        condition, values = (
            ("", ()) if session_id is None else (" AND session_id = ?", (self._stored_name(session_id),))
        )
        row = self._fetch_one(
            "SELECT message_id FROM message_versions v WHERE gid = ?" + condition + " AND EXISTS"
            " (SELECT 1 FROM messages WHERE messages.id = v.message_id) LIMIT 1",
            (gid, *values),
        )
        machine, _, number = gid.rpartition(":")
        if row is None and machine and machine == self.value("machine") and number.isdecimal():
            row = self._fetch_one(
                "SELECT id FROM messages WHERE id = ? AND external_id IS NULL" + condition, (int(number), *values)
            )
        elif row is None and gid.startswith("x:") and session_id is not None:
            row = self._fetch_one("SELECT id FROM messages WHERE external_id = ?" + condition, (gid[2:], *values))
        return None if row is None else int(row[0])

    def unsent(self, sent: int, run: int, is_sent_here: Callable[[str], bool]) -> list[str]:
        """The sessions with messages after the last one that was sent, or that changed after a run.

        `is_sent_here` says of a stamp whether this machine sends what has it.
        """
        plain = self._fetch_all(
            "SELECT m.session_id, min(m.id) FROM messages m JOIN sessions ON sessions.id = m.session_id"
            f" WHERE {self._in_scope} AND m.id > ? AND m.id <= ?"
            " AND NOT EXISTS (SELECT 1 FROM message_versions v WHERE v.message_id = m.id)"
            " GROUP BY m.session_id ORDER BY 2",
            (*self._scope.values, sent, self.position()),
        )
        stored = self._fetch_all("SELECT DISTINCT session_id, version FROM message_versions WHERE run > ?", (run,))
        return list(dict.fromkeys([*(row[0] for row in plain), *(row[0] for row in stored if is_sent_here(row[1]))]))


def put_rows(connection: Connection, rows: Mapping[str, Row]) -> None:
    connection.executemany(
        "INSERT INTO synced_rows (name, stamp, base, digest, run) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET stamp = excluded.stamp, base = excluded.base, digest = excluded.digest,"
        " run = excluded.run",
        [(name, *row) for name, row in rows.items()],
    )


def put_sessions(connection: Connection, sessions: Iterable[SyncedSession]) -> None:
    connection.executemany(
        "INSERT INTO synced_sessions (key, session_id, fingerprint, parent, relation) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET session_id = excluded.session_id, fingerprint = excluded.fingerprint,"
        " parent = excluded.parent, relation = excluded.relation",
        [tuple(session) for session in sessions],
    )


def put_versions(connection: Connection, session_id: str, versions: Iterable[MessageVersion]) -> None:
    connection.executemany(
        "INSERT INTO message_versions (session_id, gid, message_id, version, run) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (session_id, gid) DO UPDATE SET message_id = excluded.message_id, version = excluded.version,"
        " run = excluded.run, changed = 0",
        [(session_id, each.gid, each.number, each.stamp, each.run) for each in versions],
    )


@contextmanager
def unnoticed(connection: Connection) -> Iterator[None]:
    """Change messages in the block without noting that; for what another machine has changed."""
    position = read_meta(connection, SYNC_POSITION)
    connection.execute("UPDATE state_meta SET value = NULL WHERE key = ?", (SYNC_POSITION,))
    yield
    connection.execute("UPDATE state_meta SET value = ? WHERE key = ?", (position, SYNC_POSITION))


def _position(connection: Connection) -> int:
    return int(read_meta(connection, SYNC_POSITION) or 0)
