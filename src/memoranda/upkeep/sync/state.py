"""What a home knows about its synchronisation, in `sync.db`: versions by digest, and never a text but in conflicts."""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoranda.storage.connection import Connection
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Column, Schema, Table
from memoranda.upkeep.sync.versions import Clock, Version

FILE_NAME = "sync.db"
APPLICATION_ID = int.from_bytes(b"MemS", "big")
_RUN = Column("run", "integer", "NOT NULL", "The run that noticed or received its last change.")
_BUNDLE = Column("bundle", "text", "NOT NULL", "The bundle that it came from; empty if it was changed here.")
_VERSION = (
    Column("version", "text", "NOT NULL", "The name of its version."),
    Column("digest", "text", "NOT NULL", "A digest of its content; empty if it is gone."),
    Column("replaced", "text", "NOT NULL", "The versions that it replaced, as a JSON list."),
    _RUN,
    _BUNDLE,
)
SCHEMA = Schema(
    version=1,
    tables=(
        Table(
            "sync_state",
            "Single values: the id of this machine, the last run, positions in feeds.",
            (Column("name", "text", "PRIMARY KEY", "Its name."), Column("value", "text", "NOT NULL", "Its value.")),
        ),
        Table(
            "bundles",
            "The bundles that were read or written.",
            (Column("name", "text", "PRIMARY KEY", "Machine and file name."),),
        ),
        Table(
            "session_keys",
            "The names of sessions that all machines share.",
            (
                Column("key", "text", "PRIMARY KEY", "Its first id, and when it started."),
                Column("session_id", "text", "NOT NULL", "Its id here; empty if it was deleted."),
                _RUN,
                _BUNDLE,
            ),
        ),
        Table(
            "synced_sessions",
            "One row per session: the version of each field.",
            (
                Column("session_id", "text", "PRIMARY KEY", "Its id here."),
                Column("fields", "text", "NOT NULL", "For each field its version, digest, run and bundle, as JSON."),
                Column(
                    "fingerprint", "text", "NOT NULL", "Of the row when it was last read; another one means changes."
                ),
                _RUN,
                _BUNDLE,
                Column("parent", "text", "NOT NULL DEFAULT ''", "The key of the session that it comes from, or empty."),
                Column("relation", "text", "NOT NULL DEFAULT ''", "How it was related to it where it began."),
                Column("counters", "text", "NOT NULL DEFAULT ''", "What each machine has counted, as JSON."),
            ),
        ),
        Table(
            "synced_messages",
            "One row per message.",
            (
                Column("session_id", "text", "NOT NULL", "Its session here."),
                Column("gid", "text", "NOT NULL", "Its id that all machines share."),
                Column("message_id", "integer", "NOT NULL", "Its id here."),
                *_VERSION,
                Column("place", "text", "NOT NULL", "The gid before it where it was added, and its time."),
            ),
        ),
        Table(
            "pending_messages",
            "Messages that a run was about to add; after a crash they are recognised by role and time.",
            (
                Column("session_id", "text", "PRIMARY KEY", "The session."),
                Column("after", "integer", "NOT NULL", "The last message of the record before."),
                Column("expected", "text", "NOT NULL", "Role, time, gid and version of each, as JSON."),
            ),
        ),
        Table(
            "synced_items",
            "One row per item.",
            (
                Column("item_id", "text", "PRIMARY KEY", "Its id."),
                Column("digest", "text", "NOT NULL", "A digest of its versions; empty if it is gone."),
                Column("written_at", "real", "NOT NULL", "When it was last written."),
                _RUN,
                _BUNDLE,
            ),
        ),
        Table(
            "synced_entries",
            "One row per entry of curated memory, also of removed ones.",
            (
                Column("target", "text", "NOT NULL", "memory or user."),
                Column("uid", "text", "NOT NULL", "Its id that all machines share."),
                Column("forgotten", "integer", "NOT NULL", "1: it was not removed but forgotten."),
                *_VERSION,
            ),
        ),
        Table(
            "synced_things",
            "One row per file of a skill, proposal, fact and order of entries, also of removed ones.",
            (
                Column("kind", "text", "NOT NULL", "skill, proposal, fact or order."),
                Column("name", "text", "NOT NULL", "Its name that all machines share."),
                *_VERSION,
            ),
        ),
        Table(
            "pending_forgets",
            "Texts that another machine has forgotten, until they are removed here.",
            (
                Column("text", "text", "PRIMARY KEY", "The text."),
                Column("whole_words", "integer", "NOT NULL", "1: only as whole words."),
            ),
        ),
        Table(
            "conflicts",
            "Entries that two machines have changed differently, until a person decides.",
            (
                Column("number", "numbered", "", "Its number."),
                Column("target", "text", "NOT NULL", "memory or user."),
                Column("uid", "text", "NOT NULL", "The entry."),
                Column("theirs", "text", "", "The entry on the other machine; null if it was removed there."),
                Column("version", "text", "NOT NULL", "The version there."),
                Column("replaced", "text", "NOT NULL", "The versions that it replaced, as a JSON list."),
                Column("machine", "text", "NOT NULL", "The name of the other machine."),
            ),
        ),
    ),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_synced_messages ON synced_messages(session_id, gid)",
        "CREATE INDEX IF NOT EXISTS idx_synced_message_ids ON synced_messages(message_id)",
        "CREATE INDEX IF NOT EXISTS idx_session_keys ON session_keys(session_id)",
        "CREATE INDEX IF NOT EXISTS idx_synced_message_runs ON synced_messages(run)",
        "CREATE INDEX IF NOT EXISTS idx_synced_message_gids ON synced_messages(gid)",
        "CREATE INDEX IF NOT EXISTS idx_synced_session_runs ON synced_sessions(run)",
        "CREATE INDEX IF NOT EXISTS idx_synced_parents ON synced_sessions(parent) WHERE parent <> ''",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_synced_things ON synced_things(kind, name)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_synced_entries ON synced_entries(target, uid)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_conflicts ON conflicts(target, uid)",
    ),
)


class SyncState:
    """The tables of one home. A run reads and writes them inside `transaction`."""

    def __init__(self, root: Path) -> None:
        self._file = LazyDatabase(root / FILE_NAME, SCHEMA, APPLICATION_ID)

    def exists(self) -> bool:
        return self._file.exists()

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def transaction(self) -> Iterator["SyncTables"]:
        """All changes inside become durable together; none of them if an error leaves it."""
        with self._file.open().writing() as connection:
            yield SyncTables(connection)


class SyncTables:
    """Reads and writes rows of `sync.db` within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def value(self, name: str, default: str = "") -> str:
        row = self.connection.execute("SELECT value FROM sync_state WHERE name = ?", (name,)).fetchone()
        return default if row is None else str(row[0])

    def set_value(self, name: str, value: str) -> None:
        self.connection.execute(
            "INSERT INTO sync_state (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def machine(self) -> str:
        """The id of this home among the machines; random, and created at the first use."""
        found = self.value("machine")
        return found or self.new_machine()

    def new_machine(self) -> str:
        name = secrets.token_hex(6)
        self.set_value("machine", name)
        return name

    def clock(self) -> Clock:
        return Clock(self.machine(), int(self.value("clock", "0")))

    def save_clock(self, clock: Clock) -> None:
        self.set_value("clock", str(clock.last))

    def is_known(self, bundle: str) -> bool:
        return self.connection.execute("SELECT 1 FROM bundles WHERE name = ?", (bundle,)).fetchone() is not None

    def add_bundle(self, bundle: str) -> None:
        self.connection.execute("INSERT INTO bundles (name) VALUES (?) ON CONFLICT (name) DO NOTHING", (bundle,))

    def session_of(self, key: str) -> str | None:
        """The id here of a session with a key: "" if it was deleted, None if the key is unknown."""
        row = self.connection.execute("SELECT session_id FROM session_keys WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def keys_of(self, session_id: str) -> list[str]:
        rows = self.connection.execute("SELECT key FROM session_keys WHERE session_id = ? ORDER BY key", (session_id,))
        return [row[0] for row in rows]

    def set_key(self, key: str, session_id: str, run: int, bundle: str) -> None:
        self.connection.execute(
            "INSERT INTO session_keys (key, session_id, run, bundle) VALUES (?, ?, ?, ?) ON CONFLICT (key)"
            " DO UPDATE SET session_id = excluded.session_id, run = excluded.run, bundle = excluded.bundle",
            (key, session_id, run, bundle),
        )

    def fields_of(self, session_id: str) -> dict[str, list[Any]]:
        row = self.connection.execute(
            "SELECT fields FROM synced_sessions WHERE session_id = ?", (session_id,)
        ).fetchone()
        return {} if row is None else dict(json.loads(row[0]))

    def set_fields(self, session_id: str, fields: dict[str, list[Any]], run: int) -> None:
        self.connection.execute(
            "INSERT INTO synced_sessions (session_id, fields, fingerprint, run, bundle) VALUES (?, ?, '', ?, '')"
            " ON CONFLICT (session_id) DO UPDATE SET fields = excluded.fields, run = excluded.run",
            (session_id, json.dumps(fields), run),
        )

    def counters_of(self, session_id: str) -> dict[str, Any] | None:
        """What each machine has counted in a session; None if that is not known."""
        row = self.connection.execute(
            "SELECT counters FROM synced_sessions WHERE session_id = ?", (session_id,)
        ).fetchone()
        return dict(json.loads(row[0])) if row is not None and row[0] else None

    def set_counters(self, session_id: str, counters: Mapping[str, Any]) -> None:
        self.connection.execute(
            "UPDATE synced_sessions SET counters = ? WHERE session_id = ?", (json.dumps(counters), session_id)
        )

    def parent_of(self, session_id: str) -> tuple[str, str]:
        """The key of the parent of a session and their relation, as they were where it began; empty without one."""
        row = self.connection.execute(
            "SELECT parent, relation FROM synced_sessions WHERE session_id = ?", (session_id,)
        ).fetchone()
        return ("", "") if row is None else (row[0], row[1])

    def set_parent(self, session_id: str, parent: str, relation: str) -> None:
        self.connection.execute(
            "UPDATE synced_sessions SET parent = ?, relation = ? WHERE session_id = ?", (parent, relation, session_id)
        )

    def children_of(self, key: str) -> dict[str, str]:
        """The sessions that began as relatives of the one with a key, and how."""
        rows = self.connection.execute(
            "SELECT session_id, relation FROM synced_sessions WHERE parent = ? AND parent <> ''", (key,)
        )
        return {row[0]: row[1] for row in rows}

    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of all sessions that were synchronised."""
        return {
            row[0]: row[1] for row in self.connection.execute("SELECT session_id, fingerprint FROM synced_sessions")
        }

    def set_fingerprint(self, session_id: str, fingerprint: str) -> None:
        self.connection.execute(
            "UPDATE synced_sessions SET fingerprint = ? WHERE session_id = ?", (fingerprint, session_id)
        )

    def messages_of(self, session_id: str) -> dict[str, tuple[int, Version]]:
        """The messages of a session: id here and version, by gid; of a deleted one the digest is empty."""
        rows = self.connection.execute(
            "SELECT gid, message_id, version, digest, replaced FROM synced_messages WHERE session_id = ?", (session_id,)
        )
        return {row[0]: (row[1], Version(row[2], row[3], frozenset(json.loads(row[4])))) for row in rows}

    def gid_of(self, message_id: int | None) -> tuple[str, str] | None:
        """The session and the gid of a message."""
        row = self.connection.execute(
            "SELECT session_id, gid FROM synced_messages WHERE message_id = ? AND digest <> ''", (message_id,)
        ).fetchone()
        return None if row is None else (row[0], row[1])

    def set_message(
        self, session_id: str, gid: str, message_id: int, version: Version, run: int, bundle: str, place: str = ""
    ) -> None:
        """Store the version of a message; a new one needs a place. Of two places, all machines keep the same one."""
        self.connection.execute(
            "INSERT INTO synced_messages (session_id, gid, message_id, version, digest, replaced, run, bundle, place)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id, gid) DO UPDATE SET"
            " message_id = excluded.message_id, version = excluded.version, digest = excluded.digest,"
            " replaced = excluded.replaced, run = excluded.run, bundle = excluded.bundle, place = CASE"
            " WHEN excluded.place <> '' AND excluded.place < place THEN excluded.place ELSE place END",
            (
                session_id,
                gid,
                message_id,
                version.name,
                version.digest,
                version_names(version.replaced),
                run,
                bundle,
                place,
            ),
        )

    def merge_place(self, session_id: str, gid: str, place: str) -> None:
        """Note the place that another machine gave a message, if it is the one that all keep."""
        self.connection.execute(
            "UPDATE synced_messages SET place = ? WHERE session_id = ? AND gid = ? AND place > ?",
            (place, session_id, gid, place),
        )

    def places_of(self, session_id: str) -> list[tuple[str, int, Version, str, str]]:
        """The messages of a session: gid, id here, version, bundle and place."""
        rows = self.connection.execute(
            "SELECT gid, message_id, version, digest, replaced, bundle, place FROM synced_messages"
            " WHERE session_id = ?",
            (session_id,),
        )
        return [
            (row[0], row[1], Version(row[2], row[3], frozenset(json.loads(row[4]))), row[5], row[6]) for row in rows
        ]

    def renumber_messages(self, session_id: str, ids: Mapping[int, int]) -> None:
        """Note the new ids of messages of this home."""
        self.connection.executemany(
            "UPDATE synced_messages SET message_id = ? WHERE session_id = ? AND message_id = ?",
            [(new, session_id, old) for old, new in ids.items()],
        )

    def drop_session(self, session_id: str) -> None:
        """Remove what is known of a session that does not exist any more, but for its keys."""
        for table in ("synced_sessions", "synced_messages", "pending_messages"):
            self.connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))

    def things_of(self, kind: str) -> dict[str, Version]:
        """The versions of all things of a kind, by name; of a removed one the digest is empty."""
        rows = self.connection.execute(
            "SELECT name, version, digest, replaced FROM synced_things WHERE kind = ?", (kind,)
        )
        return {row[0]: Version(row[1], row[2], frozenset(json.loads(row[3]))) for row in rows}

    def set_thing(self, kind: str, name: str, version: Version, run: int, bundle: str) -> None:
        self.connection.execute(
            "INSERT INTO synced_things (kind, name, version, digest, replaced, run, bundle)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, digest = excluded.digest,"
            " replaced = excluded.replaced, run = excluded.run, bundle = excluded.bundle",
            (kind, name, version.name, version.digest, version_names(version.replaced), run, bundle),
        )

    def changed(self, table: str, columns: str, after: int, bundles: frozenset[str]) -> list[tuple[Any, ...]]:
        """The rows of a table that changed after a run, without those that one of the bundles contains."""
        rows = self.connection.execute(f"SELECT bundle, {columns} FROM {table} WHERE run > ? ORDER BY rowid", (after,))
        return [tuple(row[1:]) for row in rows if row[0] not in bundles]


def version_names(names: Iterable[str]) -> str:
    """Names of versions, as a column contains them."""
    return json.dumps(sorted(names))
