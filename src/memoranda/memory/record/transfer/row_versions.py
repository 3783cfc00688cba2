"""The versions of sessions and messages, by which several machines agree on what is new.

Most messages need no row here: a message that was recorded here, and that was not changed since, is known by its
id, and a bundle is a query for the ids after the last one that was sent. A message has a row if it came from another
machine, or if it was changed or deleted after it was sent: a trigger notes that in the transaction that makes the
change, also if another program makes it. The next synchronisation gives it a version.

A message is known to all machines by its `gid`: its id in the program it was imported from, or the machine and its id
there. Its place is the gid before it where it was added, and its time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, NamedTuple

from memoranda.memory.record.schema import SYNC_MACHINE, SYNC_POSITION
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.lazy_dataclass import dataclass

_RUN = "sync_run"
_REWRITE = "sync_rewrite"
_PLAIN_COLUMNS = 3

Place = tuple[str, float]


class MessageVersion(NamedTuple):
    """The version of a message; `is_stored` says whether it has a row, `is_here` whether the message exists."""

    gid: str
    number: int
    place: Place
    version: str = ""
    replaced: frozenset[str] = frozenset()
    run: int = 0
    bundle: str = ""
    is_changed: bool = False
    is_here: bool = True
    is_stored: bool = True


@dataclass(slots=True)
class SessionVersion:
    """The version of a session: for each field its version, digest, run and bundle.

    `parent` is the key of the session that it comes from, `counters` is what each machine has counted.
    """

    fields: dict[str, list[Any]] = field(default_factory=dict)
    fingerprint: str = ""
    parent: str = ""
    relation: str = ""
    counters: dict[str, Any] | None = None


class RowVersions(StorePart):
    """The versions of the sessions and messages of one scope."""

    def machine(self) -> str:
        """The id of this machine; empty before the first synchronisation."""
        with self._engine.reading() as connection:
            return read_meta(connection, SYNC_MACHINE) or ""

    def set_machine(self, machine: str) -> None:
        """Give this machine another id; what was sent under the old one keeps its names."""
        with self._engine.writing() as connection:
            connection.execute(
                "INSERT INTO message_versions (session_id, gid, message_id, run) SELECT session_id,"
                f" COALESCE('x:' || external_id, '{read_meta(connection, SYNC_MACHINE)}:' || id), id,"
                " COALESCE((SELECT min(run) FROM sync_runs WHERE last_message >= messages.id), 0) FROM messages"
                f" WHERE id <= {_position(connection)}"
                " AND NOT EXISTS (SELECT 1 FROM message_versions v WHERE v.message_id = messages.id)"
            )
            write_meta(connection, SYNC_MACHINE, machine)

    def start_run(self) -> int:
        """The number of a new synchronisation."""
        with self._engine.writing() as connection:
            number = int(read_meta(connection, _RUN) or 0) + 1
            write_meta(connection, _RUN, str(number))
        return number

    def must_rewrite(self) -> bool:
        """Whether the bundles of this machine may contain a text that was forgotten or deleted."""
        with self._engine.reading() as connection:
            return read_meta(connection, _REWRITE) == "1"

    def set_rewrite(self, must_rewrite: bool) -> None:
        with self._engine.writing() as connection:
            write_meta(connection, _REWRITE, "1" if must_rewrite else "0")

    def position(self) -> int:
        """The last message that was read for other machines."""
        with self._engine.reading() as connection:
            return _position(connection)

    def end_reading(self, run: int, last_message: int) -> None:
        """Note how far a synchronisation has read; later changes up to there get a version of their own."""
        with self._engine.writing() as connection:
            if last_message > _position(connection) or read_meta(connection, SYNC_POSITION) is None:
                write_meta(connection, SYNC_POSITION, str(last_message))
                connection.execute(
                    "INSERT INTO sync_runs (run, last_message) VALUES (?, ?)"
                    " ON CONFLICT (run) DO UPDATE SET last_message = excluded.last_message",
                    (run, last_message),
                )

    def messages(self, session_id: str) -> list[MessageVersion]:
        """All messages of a session, deleted ones too, in the order of their ids."""
        session_id = self._stored_name(session_id)
        with self._engine.reading() as connection:
            stored = connection.execute(
                "SELECT v.message_id, v.gid, v.version, v.replaced, v.run, v.bundle, v.changed, v.place, m.id,"
                " m.timestamp FROM message_versions v LEFT JOIN messages m ON m.id = v.message_id"
                " AND m.session_id = v.session_id WHERE v.session_id = ? ORDER BY v.message_id, v.gid",
                (session_id,),
            ).fetchall()
            plain = connection.execute(
                "SELECT id, external_id, timestamp FROM messages WHERE session_id = ?"
                + (
                    " AND NOT EXISTS (SELECT 1 FROM message_versions v WHERE v.message_id = messages.id)"
                    if stored
                    else ""
                )
                + " ORDER BY id",
                (session_id,),
            ).fetchall()
            machine = read_meta(connection, SYNC_MACHINE) or ""
        found: list[MessageVersion] = []
        gid, number = "", 0
        for row in sorted([*stored, *plain], key=lambda row: row[0]) if stored else plain:
            if row[0] and row[0] == number:
                # The message has another name, too; the next one comes after the first.
                before, following = found[-1].place[0], gid
            else:
                before, number, following = gid, row[0], ""
            if len(row) == _PLAIN_COLUMNS:
                _, external, at = row
                own = f"{machine}:{number}" if external is None else f"x:{external}"
                found.append(MessageVersion(own, number, (before, at), is_stored=False))
            else:
                _, own, version, replaced, run, bundle, changed, place, here, at = row
                known = _decode(place) if place else (before, at or 0.0)
                names = frozenset(json.loads(replaced))
                found.append(
                    MessageVersion(own, number, known, version, names, run, bundle, bool(changed), here is not None)
                )
            gid = (following or own) if number else ""
        return found

    def unsettled_sessions(self) -> list[str]:
        """The sessions with messages that changed, or that were added to what other machines have changed."""
        with self._engine.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT session_id FROM message_versions WHERE changed = 1 UNION"
                " SELECT DISTINCT session_id FROM messages WHERE id > ?"
                " AND EXISTS (SELECT 1 FROM message_versions v WHERE v.session_id = messages.session_id)"
                " AND NOT EXISTS (SELECT 1 FROM message_versions v WHERE v.message_id = messages.id)",
                (_position(connection),),
            )
            return [row[0] for row in rows]

    def put(self, session_id: str, versions: Iterable[MessageVersion]) -> None:
        """Store versions of messages of a session."""
        session_id = self._stored_name(session_id)
        with self._engine.writing() as connection:
            put_versions(connection, session_id, versions)

    def find_gid(self, message_id: int) -> tuple[str, str] | None:
        """The session and the gid of a message that exists."""
        with self._engine.reading() as connection:
            row = connection.execute(
                "SELECT m.session_id, COALESCE((SELECT min(gid) FROM message_versions v WHERE v.message_id = m.id),"
                " 'x:' || m.external_id) FROM messages m WHERE m.id = ?",
                (message_id,),
            ).fetchone()
            machine = read_meta(connection, SYNC_MACHINE)
        return None if row is None else (row[0], row[1] or f"{machine}:{message_id}")

    def find_message(self, gid: str, session_id: str | None = None) -> int | None:
        """The id of the message with a gid, of a session or of any; None if it does not exist."""
        condition, values = (
            ("", ()) if session_id is None else (" AND session_id = ?", (self._stored_name(session_id),))
        )
        with self._engine.reading() as connection:
            row = connection.execute(
                "SELECT message_id FROM message_versions v WHERE gid = ?" + condition + " AND EXISTS"
                " (SELECT 1 FROM messages WHERE messages.id = v.message_id) LIMIT 1",
                (gid, *values),
            ).fetchone()
            machine, _, number = gid.rpartition(":")
            if row is None and machine and machine == read_meta(connection, SYNC_MACHINE) and number.isdecimal():
                row = connection.execute(
                    "SELECT id FROM messages WHERE id = ? AND external_id IS NULL" + condition, (int(number), *values)
                ).fetchone()
            elif row is None and gid.startswith("x:") and session_id is not None:
                row = connection.execute(
                    "SELECT id FROM messages WHERE external_id = ?" + condition, (gid[2:], *values)
                ).fetchone()
        return None if row is None else int(row[0])

    def unsent(self, run: int, bundles: frozenset[str]) -> tuple[int, list[str]]:
        """The last message that was sent with a run, and the sessions with messages that were not sent.

        What one of the bundles contains needs not be sent.
        """
        with self._engine.reading() as connection:
            (sent,) = connection.execute(
                "SELECT COALESCE(max(last_message), 0) FROM sync_runs WHERE run <= ?", (run,)
            ).fetchone()
            plain = connection.execute(
                "SELECT m.session_id, min(m.id) FROM messages m JOIN sessions ON sessions.id = m.session_id"
                f" WHERE {self._in_scope} AND m.id > ? AND m.id <= ?"
                " AND NOT EXISTS (SELECT 1 FROM message_versions v WHERE v.message_id = m.id)"
                " GROUP BY m.session_id ORDER BY 2",
                (*self._scope.values, sent, _position(connection)),
            ).fetchall()
            stored = connection.execute(
                "SELECT DISTINCT session_id, bundle FROM message_versions WHERE run > ?", (run,)
            ).fetchall()
        return sent, list(
            dict.fromkeys([*(row[0] for row in plain), *(row[0] for row in stored if row[1] not in bundles)])
        )

    def session_of(self, key: str) -> str | None:
        """The id here of a session with a key: "" if it was deleted, None if the key is unknown."""
        row = self._fetch_one("SELECT session_id FROM session_keys WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    def keys_of(self, session_id: str) -> list[str]:
        session_id = self._stored_name(session_id)
        rows = self._fetch_all("SELECT key FROM session_keys WHERE session_id = ? ORDER BY key", (session_id,))
        return [row[0] for row in rows]

    def put_keys(self, keys: Iterable[str], session_id: str, run: int, bundle: str) -> None:
        """Name a session for all machines; an empty id says that it was deleted."""
        session_id = self._stored_name(session_id)
        with self._engine.writing() as connection:
            put_keys(connection, keys, session_id, run, bundle)

    def drop_sessions(self, session_ids: Iterable[str], run: int, bundle: str) -> None:
        """Note that sessions were deleted; nothing but their keys stays."""
        names = self._stored_names(session_ids)
        with self._engine.writing() as connection:
            for name in names:
                connection.execute(
                    "UPDATE session_keys SET session_id = '', run = ?, bundle = ? WHERE session_id = ?",
                    (run, bundle, name),
                )
                for table in ("session_versions", "message_versions"):
                    connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (name,))

    def session(self, session_id: str) -> SessionVersion:
        """The version of a session; an empty one if it was never synchronised."""
        session_id = self._stored_name(session_id)
        row = self._fetch_one(
            "SELECT fields, fingerprint, parent, relation, counters FROM session_versions WHERE session_id = ?",
            (session_id,),
        )
        if row is None:
            return SessionVersion()
        return SessionVersion(json.loads(row[0]), row[1], row[2], row[3], json.loads(row[4]) if row[4] else None)

    def put_sessions(self, sessions: Mapping[str, SessionVersion], keys: Mapping[str, str], run: int) -> None:
        """Store the versions of sessions, and the keys of those that have none."""
        named = [(self._stored_name(name), version) for name, version in sessions.items()]
        with self._engine.writing() as connection:
            for session_id, key in keys.items():
                put_keys(connection, [key], self._stored_name(session_id), run, "")
            for name, version in named:
                put_session(connection, name, version, run)

    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of all sessions that were synchronised."""
        return dict(self._fetch_all("SELECT session_id, fingerprint FROM session_versions"))

    def children_of(self, keys: Sequence[str]) -> dict[str, str]:
        """The sessions that began as relatives of the one with these keys, and how."""
        condition, values = self._dialect.one_of("parent", keys)
        rows = self._fetch_all(
            f"SELECT session_id, relation FROM session_versions WHERE parent <> '' AND {condition}", values
        )
        return {row[0]: row[1] for row in rows}

    def changed_sessions(self, run: int) -> list[str]:
        rows = self._fetch_all("SELECT session_id FROM session_versions WHERE run > ? ORDER BY rowid", (run,))
        return [row[0] for row in rows]

    def deleted_keys(self, run: int, bundles: frozenset[str]) -> list[str]:
        """The keys of sessions that were deleted after a run, without those that one of the bundles has."""
        rows = self._fetch_all(
            "SELECT key, bundle FROM session_keys WHERE session_id = '' AND run > ? ORDER BY rowid", (run,)
        )
        return [key for key, bundle in rows if bundle not in bundles]


def put_versions(connection: Connection, session_id: str, versions: Iterable[MessageVersion]) -> None:
    """Store versions of messages; of two places of a message, all machines keep the same one."""
    connection.executemany(
        "INSERT INTO message_versions (session_id, gid, message_id, version, replaced, run, bundle, place)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id, gid) DO UPDATE SET"
        " message_id = excluded.message_id, version = excluded.version, replaced = excluded.replaced,"
        " run = excluded.run, bundle = excluded.bundle, changed = 0, place = CASE"
        " WHEN message_versions.place = '' OR excluded.place < message_versions.place THEN excluded.place"
        " ELSE message_versions.place END",
        [
            (session_id, each.gid, each.number, each.version, _as_json(each.replaced), each.run, each.bundle,
             json.dumps(each.place))
            for each in versions
        ],
    )  # fmt: skip


def move_versions(connection: Connection, session_id: str, moved: Mapping[int, int]) -> None:
    """Note the new ids of messages; all of them must have rows."""
    connection.executemany(
        "UPDATE message_versions SET message_id = ? WHERE session_id = ? AND message_id = ?",
        [(new, session_id, old) for old, new in moved.items()],
    )


def put_session(connection: Connection, session_id: str, version: SessionVersion, run: int) -> None:
    counters = "" if version.counters is None else json.dumps(version.counters, sort_keys=True)
    connection.execute(
        "INSERT INTO session_versions (session_id, fields, fingerprint, run, parent, relation, counters)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET fields = excluded.fields,"
        " fingerprint = excluded.fingerprint, run = excluded.run, parent = excluded.parent,"
        " relation = excluded.relation, counters = excluded.counters",
        (session_id, json.dumps(version.fields), version.fingerprint, run, version.parent, version.relation, counters),
    )


def put_keys(connection: Connection, keys: Iterable[str], session_id: str, run: int, bundle: str) -> None:
    connection.executemany(
        "INSERT INTO session_keys (key, session_id, run, bundle) VALUES (?, ?, ?, ?) ON CONFLICT (key)"
        " DO UPDATE SET session_id = excluded.session_id, run = excluded.run, bundle = excluded.bundle",
        [(key, session_id, run, bundle) for key in keys],
    )


@contextmanager
def unnoticed(connection: Connection) -> Iterator[None]:
    """Change messages in the block without noting that; for what another machine has changed."""
    position = read_meta(connection, SYNC_POSITION)
    connection.execute("UPDATE state_meta SET value = NULL WHERE key = ?", (SYNC_POSITION,))
    yield
    connection.execute("UPDATE state_meta SET value = ? WHERE key = ?", (position, SYNC_POSITION))


def _as_json(names: frozenset[str]) -> str:
    # Nearly all messages were never changed.
    return json.dumps(sorted(names)) if names else "[]"


def _position(connection: Connection) -> int:
    return int(read_meta(connection, SYNC_POSITION) or 0)


def _decode(place: str) -> Place:
    before, at = json.loads(place)
    return before, at
