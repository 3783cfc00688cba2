"""The record of what a vendor has received from this home, in `providers/<name>.db`.

It serves repeated deliveries, `forget`, and vendors whose ids must be remembered. A row belongs to one user, and maps a
local id (the key of a delivery, a session) to the vendor's id. A turn that is in the record is not sent again, even if
the outbox could not be updated after its delivery. The record has ids and no text.
"""

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memoranda.db.orphaned_wal import database_exists
from memoranda.db.schema import Column, Schema, Table
from memoranda.db.schema_upgrade import open_database
from memoranda.db.sqlite import Database
from memoranda.errors import StorageError
from memoranda.providers.vendors.vendor_scope import VendorScope
from memoranda.support.durable_files import make_private_directory

_log = logging.getLogger(__name__)

# Kinds that are no nouns.
_NOUNS = {"tool": "tool memory", "created": "created file", "updated": "updated file"}
_MAX_SCOPE_CHARS = 1_000
APPLICATION_ID = int.from_bytes(b"MemV", "big")
SENT = Table(
    "sent",
    "One row per thing that the vendor has received.",
    (
        Column("id", "numbered", "", "Order."),
        Column("scope", "text", "NOT NULL", "The user's name at vendors, as in peer_names."),
        Column("kind", "text", "NOT NULL", "turn, memory_write, session, or a word of the vendor's provider."),
        Column("local_id", "text", "NOT NULL", "The key of the delivery, or an id of this home."),
        Column("remote_id", "text", "NOT NULL", "The vendor's id; empty if it gave none."),
        Column("session_id", "text", "NOT NULL", "The session that it belongs to."),
        Column("sent_at", "real", "NOT NULL", "Seconds since 1970."),
    ),
)
_VERSION = Table("schema_version", "A single row.", (Column("version", "integer", "NOT NULL", "Of these tables."),))
SCHEMA = Schema(
    version=1,
    tables=(SENT, _VERSION),
    indexes=("CREATE UNIQUE INDEX IF NOT EXISTS idx_sent_id ON sent(scope, kind, local_id)",),
)


@dataclass(frozen=True, slots=True)
class SentItem:
    """One thing that the vendor has received."""

    kind: str
    local_id: str
    remote_id: str
    session_id: str
    sent_at: float


def describe_items(items: Iterable[SentItem]) -> list[str]:
    """How many items there are of each kind, in words: `2 turns`, `1 memory write`."""
    counts = Counter(_NOUNS.get(item.kind.partition(" ")[0], item.kind.replace("_", " ")) for item in items)
    return [f"{count} {noun if count == 1 else _plural(noun)}" for noun, count in counts.items()]


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def sent_file(home: Path, provider: str) -> Path:
    return home / "providers" / f"{provider}.db"


def providers_with_sessions(home: Path, session_ids: Collection[str]) -> list[str]:
    """The providers that have received something of these sessions, for any user; unreadable records are skipped."""
    found = []
    for path in sorted((home / "providers").glob("*.db")):
        try:
            with closing(open_database(path, SCHEMA, APPLICATION_ID)) as database, database.reading() as connection:
                query = "SELECT 1 FROM sent WHERE session_id IN (SELECT value FROM json_each(?)) LIMIT 1"
                if connection.execute(query, (json.dumps(list(session_ids)),)).fetchone():
                    found.append(path.stem)
        except StorageError as error:
            _log.warning("What a provider has received is unknown: %s", error)
    return found


class SentRecord:
    """The record of one user. Thread-safe; the file is created with the first row. Raises StorageError."""

    def __init__(self, home: Path, provider: str, scope: VendorScope) -> None:
        self.scope = scope.peer(max_chars=_MAX_SCOPE_CHARS)
        self._path = sent_file(home, provider)
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._closed = False

    def add(self, kind: str, local_id: str, remote_id: str = "", session_id: str = "") -> None:
        """Record that the vendor has received something; a later remote id replaces an earlier one."""
        row = (self.scope, kind, local_id, remote_id, session_id, time.time())
        with self._open().writing() as connection:
            connection.execute(
                "INSERT INTO sent (scope, kind, local_id, remote_id, session_id, sent_at) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (scope, kind, local_id) DO UPDATE SET remote_id = excluded.remote_id",
                row,
            )

    def find(self, kind: str, local_id: str) -> str | None:
        """The vendor's id of something; empty if the vendor gave none, None if it was not sent."""
        if not self._exists():
            return None
        with self._open().reading() as connection:
            row = connection.execute(
                "SELECT remote_id FROM sent WHERE scope = ? AND kind = ? AND local_id = ?",
                (self.scope, kind, local_id),
            ).fetchone()
        return None if row is None else str(row[0])

    def items(self, kind: str = "", session_id: str = "") -> list[SentItem]:
        """What was sent, oldest first: everything, or of one kind, or of one session."""
        if not self._exists():
            return []
        with self._open().reading() as connection:
            rows = connection.execute(
                "SELECT kind, local_id, remote_id, session_id, sent_at FROM sent"
                " WHERE scope = ?1 AND (?2 = '' OR kind = ?2) AND (?3 = '' OR session_id = ?3) ORDER BY id",
                (self.scope, kind, session_id),
            ).fetchall()
        return [SentItem(*row) for row in rows]

    def of_sessions(self, session_ids: Collection[str] | None) -> list[SentItem]:
        """What was sent of some sessions, oldest first; everything if None."""
        return [item for item in self.items() if session_ids is None or item.session_id in session_ids]

    def scopes(self) -> list[str]:
        """The names of all users that have something in the record."""
        if not self._exists():
            return []
        with self._open().reading() as connection:
            return [row[0] for row in connection.execute("SELECT DISTINCT scope FROM sent ORDER BY scope")]

    def remove(self, item: SentItem) -> None:
        """Remove something that the vendor has deleted."""
        with self._open().writing() as connection:
            connection.execute(
                "DELETE FROM sent WHERE scope = ? AND kind = ? AND local_id = ?",
                (self.scope, item.kind, item.local_id),
            )

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._database is not None:
                self._database.close()
                self._database = None

    def _exists(self) -> bool:
        return self._database is not None or database_exists(self._path)

    def _open(self) -> Database:
        with self._lock:
            if self._closed:
                raise StorageError(f"{self._path} has been closed.")
            if self._database is None:
                make_private_directory(self._path.parent)
                self._database = open_database(self._path, SCHEMA, APPLICATION_ID)
            return self._database
