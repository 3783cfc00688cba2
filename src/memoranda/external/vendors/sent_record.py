"""The record of what a vendor has received from this home, in a table of `home.db` or on a server.

It serves repeated deliveries, `forget`, and vendors whose ids must be remembered. A row belongs to one user, and maps a
local id (the key of a delivery, a session) to the vendor's id. A turn that is in the record is not sent again, even if
the outbox could not be updated after its delivery. The record has ids and no text.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.vendors.scope import VendorScope
from memoranda.storage.engine import Condition, Engine
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.schema import Column, Forgetting, Schema, ServerTables, Table
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

# Kinds that are no nouns.
_NOUNS = {"tool": "tool memory", "created": "created file", "updated": "updated file"}
_MAX_SCOPE_CHARS = 1_000
_SENT = Table(
    "sent",
    "One row per thing that a vendor has received.",
    (
        Column("id", "numbered", "", "Order."),
        Column("provider", "text", "NOT NULL", "The provider of the vendor."),
        Column("user_id", "text", "NOT NULL", "The user; empty for the home's owner."),
        Column("scope", "text", "NOT NULL", "The user's name at vendors, as in `peer_name`."),
        Column("kind", "text", "NOT NULL", "turn, memory_write, session, or a word of the vendor's provider."),
        Column("local_id", "text", "NOT NULL", "The key of the delivery, or an id of this home."),
        Column("remote_id", "text", "NOT NULL", "The vendor's id; empty if it gave none."),
        Column("session_id", "text", "NOT NULL", "The session that it belongs to."),
        Column("sent_at", "real", "NOT NULL", "Seconds since 1970."),
    ),
)
SCHEMA = Schema(
    version=1,
    name="sent",
    tables=(_SENT,),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_sent_id ON sent(provider, user_id, scope, kind, local_id)",
        "CREATE INDEX IF NOT EXISTS idx_sent_session ON sent(session_id)",
    ),
    server=ServerTables(user_tables=((_SENT.name, "user_id"),)),
    # A row goes when the vendor has deleted what it names.
    forgetting=Forgetting(own_users=frozenset({_SENT.name})),
)
_MAX_IDS = 10_000


@dataclass(frozen=True, slots=True)
class SentItem:
    """One thing that the vendor has received."""

    kind: str
    local_id: str
    remote_id: str
    session_id: str
    sent_at: float


class SentRecord:
    """The record of one user. Thread-safe. Raises StorageError."""

    def __init__(self, home: Path, provider: str, scope: VendorScope) -> None:
        self.scope = scope.peer(max_chars=_MAX_SCOPE_CHARS)
        self._user = scope.user_id
        self._file = HomeDatabase(home, SCHEMA, server_url=scope.server_url)
        self._own = {"provider": provider, "user_id": self._user}
        self._lock = threading.Lock()
        self._closed = False

    def add(self, kind: str, local_id: str, remote_id: str = "", session_id: str = "") -> None:
        """Record that the vendor has received something; a later remote id replaces an earlier one."""
        row = {**self._own, "scope": self.scope, "kind": kind, "local_id": local_id, "remote_id": remote_id,
               "session_id": session_id, "sent_at": time.time()}  # fmt: skip
        with self._open().writing() as connection:
            connection.execute(
                f"INSERT INTO sent ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
                " ON CONFLICT (provider, user_id, scope, kind, local_id) DO UPDATE SET remote_id = excluded.remote_id",
                list(row.values()),
            )

    def find(self, kind: str, local_id: str) -> str | None:
        """The vendor's id of something; empty if the vendor gave none, None if it was not sent."""
        found = self._select("remote_id", "", kind=kind, local_id=local_id)
        return str(found[0][0]) if found else None

    def items(self, kind: str = "") -> list[SentItem]:
        """What was sent, oldest first: everything, or of one kind."""
        filters = {"kind": kind} if kind else {}
        columns = "kind, local_id, remote_id, session_id, sent_at"
        return [SentItem(*row) for row in self._select(columns, " ORDER BY id", **filters)]

    def of_sessions(self, session_ids: Collection[str] | None) -> list[SentItem]:
        """What was sent of some sessions, oldest first; everything if None."""
        return [item for item in self.items() if session_ids is None or item.session_id in session_ids]

    def scopes(self) -> list[str]:
        """The names of all users that have something in the record."""
        if not self._file.exists():
            return []
        with self._open().acting_for(None, everyone=True).reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT scope FROM sent WHERE provider = ? ORDER BY scope", (self._own["provider"],)
            )
            return [row[0] for row in rows]

    def remove(self, item: SentItem) -> None:
        """Remove something that the vendor has deleted."""
        condition, values = self._condition(kind=item.kind, local_id=item.local_id)
        with self._open().writing() as connection:
            connection.execute(f"DELETE FROM sent WHERE {condition}", values)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._file.close()

    def _select(self, columns: str, order: str, **filters: str) -> list[Any]:
        if not self._file.exists():
            return []
        condition, values = self._condition(**filters)
        with self._open().reading() as connection:
            return connection.execute(f"SELECT {columns} FROM sent WHERE {condition}{order}", values).fetchall()

    def _condition(self, **filters: str) -> tuple[str, list[str]]:
        """The rows of this user with these values."""
        wanted = {**self._own, "scope": self.scope, **filters}
        return " AND ".join(f"{name} = ?" for name in wanted), list(wanted.values())

    def _open(self) -> Engine:
        with self._lock:
            if self._closed:
                raise StorageError(f"{self._file.path} has been closed.")
            return self._file.open().acting_for(self._user or None)


def describe_items(items: Iterable[SentItem]) -> list[str]:
    """How many items there are of each kind, in words: `2 turns`, `1 memory write`."""
    counts = Counter(_NOUNS.get(item.kind.partition(" ")[0], item.kind.replace("_", " ")) for item in items)
    return [f"{count} {noun if count == 1 else _plural(noun)}" for noun, count in counts.items()]


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def providers_with_sessions(home: Path, session_ids: Collection[str], server_url: str = "") -> list[str]:
    """The providers that have received something of these sessions, for any user; an unreadable record has none."""
    names = sorted(set(session_ids))
    found: set[str] = set()
    try:
        for start in range(0, len(names), _MAX_IDS):
            found.update(_providers(home, server_url, names[start : start + _MAX_IDS]))
    except StorageError as error:
        _log.warning("What providers have received is unknown: %s", error)
    return sorted(found)


def known_providers(home: Path, server_url: str = "") -> list[str]:
    """The providers that have received anything."""
    return _providers(home, server_url)


def _providers(home: Path, server_url: str, session_ids: list[str] | None = None) -> list[str]:
    """The providers in the rows of all users, or in those of some sessions."""
    with closing(HomeDatabase(home, SCHEMA, server_url=server_url)) as database:
        if not database.exists():
            return []
        engine = database.open().acting_for(None, everyone=True)
        everything = Condition("1 = 1", ())
        condition = everything if session_ids is None else engine.dialect.one_of("session_id", session_ids)
        with engine.reading() as connection:
            rows = connection.execute(
                f"SELECT DISTINCT provider FROM sent WHERE {condition.text} ORDER BY provider", condition.values
            )
            return [name for (name,) in rows]
