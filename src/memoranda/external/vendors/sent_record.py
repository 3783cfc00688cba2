"""The record of what a vendor has received from this home, in `providers/<name>.db` or in a table on a server.

It serves repeated deliveries, `forget`, and vendors whose ids must be remembered. A row belongs to one user, and maps a
local id (the key of a delivery, a session) to the vendor's id. A turn that is in the record is not sent again, even if
the outbox could not be updated after its delivery. The record has ids and no text.
"""

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError, StorageError
from memoranda.external.vendors.scope import VendorScope, read_peer_name
from memoranda.storage.engine import Engine
from memoranda.storage.files.fork_lock import ForkLock
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Column, Forgetting, Schema, ServerTables, Table
from memoranda.support.durable_files import make_private_directory

_log = logging.getLogger(__name__)

# Kinds that are no nouns.
_NOUNS = {"tool": "tool memory", "created": "created file", "updated": "updated file"}
_MAX_SCOPE_CHARS = 1_000
APPLICATION_ID = int.from_bytes(b"MemV", "big")
_SENT = Table(
    "sent",
    "One row per thing that the vendor has received.",
    (
        Column("id", "numbered", "", "Order."),
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
    tables=(_SENT,),
    indexes=("CREATE UNIQUE INDEX IF NOT EXISTS idx_sent_id ON sent(scope, kind, local_id)",),
)
SERVER_SCHEMA = Schema(
    version=1,
    name="sent",
    tables=(_SENT,),
    indexes=(),
    server=ServerTables(
        columns=(
            (_SENT.name, Column("provider", "text", "NOT NULL", "The provider of the vendor.")),
            (_SENT.name, Column("user_id", "text", "NOT NULL", "The user; empty for the home's owner.")),
        ),
        indexes=(
            "CREATE UNIQUE INDEX IF NOT EXISTS idx_sent_id ON sent(provider, user_id, scope, kind, local_id)",
            "CREATE INDEX IF NOT EXISTS idx_sent_session ON sent(session_id)",
        ),
        user_tables=((_SENT.name, "user_id"),),
    ),
    # A row goes when the vendor has deleted what it names.
    forgetting=Forgetting(own_users=frozenset({_SENT.name})),
)
"""A home has one file per provider, with the rows of all users; a server has one table."""
_MAX_IDS = 10_000
_KEY = "scope, kind, local_id"

_COLUMNS = [column.name for column in _SENT.columns if column.name != "id"]


@dataclass(frozen=True, slots=True)
class SentItem:
    """One thing that the vendor has received."""

    kind: str
    local_id: str
    remote_id: str
    session_id: str
    sent_at: float


class SentRecord:
    """The record of one user. Thread-safe; the file is created with the first row. Raises StorageError."""

    def __init__(self, home: Path, provider: str, scope: VendorScope) -> None:
        self.scope = scope.peer(max_chars=_MAX_SCOPE_CHARS)
        self._user = scope.user_id
        self._path = sent_file(home, provider)
        schema = SERVER_SCHEMA if scope.server_url else SCHEMA
        self._file = LazyDatabase(self._path, schema, APPLICATION_ID, server_url=scope.server_url)
        # What a server needs in addition to tell rows apart.
        self._own = {"provider": provider, "user_id": self._user} if scope.server_url else {}
        self._lock = ForkLock()
        self._closed = False

    def add(self, kind: str, local_id: str, remote_id: str = "", session_id: str = "") -> None:
        """Record that the vendor has received something; a later remote id replaces an earlier one."""
        row = {**self._own, "scope": self.scope, "kind": kind, "local_id": local_id, "remote_id": remote_id,
               "session_id": session_id, "sent_at": time.time()}  # fmt: skip
        with self._open().writing() as connection:
            connection.execute(
                f"INSERT INTO sent ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
                f" ON CONFLICT ({', '.join([*self._own, 'scope', 'kind', 'local_id'])})"
                " DO UPDATE SET remote_id = excluded.remote_id",
                list(row.values()),
            )

    def find(self, kind: str, local_id: str) -> str | None:
        """The vendor's id of something; empty if the vendor gave none, None if it was not sent."""
        found = self._select("remote_id", "", kind=kind, local_id=local_id)
        return str(found[0][0]) if found else None

    def items(self, kind: str = "", session_id: str = "") -> list[SentItem]:
        """What was sent, oldest first: everything, or of one kind, or of one session."""
        filters = {name: value for name, value in (("kind", kind), ("session_id", session_id)) if value}
        columns = "kind, local_id, remote_id, session_id, sent_at"
        return [SentItem(*row) for row in self._select(columns, " ORDER BY id", **filters)]

    def of_sessions(self, session_ids: Collection[str] | None) -> list[SentItem]:
        """What was sent of some sessions, oldest first; everything if None."""
        return [item for item in self.items() if session_ids is None or item.session_id in session_ids]

    def scopes(self) -> list[str]:
        """The names of all users that have something in the record."""
        if not self._file.exists():
            return []
        condition, values = (" WHERE provider = ?", (self._own["provider"],)) if self._own else ("", ())
        with self._open().acting_for(None, everyone=True).reading() as connection:
            rows = connection.execute(f"SELECT DISTINCT scope FROM sent{condition} ORDER BY scope", values)
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
                raise StorageError(f"{self._path} has been closed.")
            if not self._file.server_url:
                make_private_directory(self._path.parent)
            return self._file.open().acting_for(self._user or None)


def describe_items(items: Iterable[SentItem]) -> list[str]:
    """How many items there are of each kind, in words: `2 turns`, `1 memory write`."""
    counts = Counter(_NOUNS.get(item.kind.partition(" ")[0], item.kind.replace("_", " ")) for item in items)
    return [f"{count} {noun if count == 1 else _plural(noun)}" for noun, count in counts.items()]


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def sent_file(home: Path, provider: str) -> Path:
    return home / "providers" / f"{provider}.db"


def providers_with_sessions(home: Path, session_ids: Collection[str], server_url: str = "") -> list[str]:
    """The providers that have received something of these sessions, for any user; unreadable records are skipped."""
    found: dict[str, None] = {}
    names = sorted(set(session_ids))
    for provider, database in _databases(home, server_url):
        try:
            with closing(database):
                for start in range(0, len(names), _MAX_IDS):
                    part = names[start : start + _MAX_IDS]
                    found |= dict.fromkeys(_find_providers(database.open(), provider, part))
        except StorageError as error:
            _log.warning("What a provider has received is unknown: %s", error)
    return list(found)


def known_providers(home: Path, server_url: str = "") -> list[str]:
    """The providers that have received anything."""
    if not server_url:
        return sorted(path.stem for path in (home / "providers").glob("*.db"))
    ((_, database),) = _databases(home, server_url)
    with closing(database), database.open().reading() as connection:
        return [name for (name,) in connection.execute("SELECT DISTINCT provider FROM sent ORDER BY provider")]


def _databases(home: Path, server_url: str) -> list[tuple[str, LazyDatabase]]:
    """The file of each provider, or the server, which has the rows of all of them."""
    if server_url:
        return [("", LazyDatabase(home / "providers", SERVER_SCHEMA, APPLICATION_ID, server_url=server_url))]
    files = sorted((home / "providers").glob("*.db"))
    return [(path.stem, LazyDatabase(path, SCHEMA, APPLICATION_ID)) for path in files]


def _find_providers(engine: Engine, provider: str, session_ids: list[str]) -> list[str]:
    condition, values = engine.dialect.one_of("session_id", session_ids)
    with engine.reading() as connection:
        if provider:
            row = connection.execute(f"SELECT 1 FROM sent WHERE {condition} LIMIT 1", values).fetchone()
            return [provider] if row else []
        rows = connection.execute(f"SELECT DISTINCT provider FROM sent WHERE {condition} ORDER BY provider", values)
        return [name for (name,) in rows]


def copy_sent_to_server(home: Path, url: str) -> int:
    """Copy the rows of all providers; rows that are there already stay. Returns how many the files have."""
    count = 0
    for path in sorted((home / "providers").glob("*.db")):
        with closing(LazyDatabase(path, SCHEMA, APPLICATION_ID)) as file, file.open().reading() as connection:
            rows = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM sent ORDER BY id").fetchall()
        values = [(path.stem, _user_of(row[0]), *row) for row in rows]
        server = LazyDatabase(path, SERVER_SCHEMA, APPLICATION_ID, server_url=url)
        with closing(server), server.open().writing() as connection:
            connection.executemany(
                f"INSERT INTO sent (provider, user_id, {', '.join(_COLUMNS)}) VALUES (?, ?{', ?' * len(_COLUMNS)})"
                f" ON CONFLICT (provider, user_id, {_KEY}) DO NOTHING",
                values,
            )
        count += len(rows)
    return count


def copy_sent_to_files(url: str, home: Path) -> int:
    """Copy the rows of a server to the files of their providers; returns how many the server has."""
    server = LazyDatabase(home, SERVER_SCHEMA, APPLICATION_ID, server_url=url)
    with closing(server), server.open().reading() as connection:
        rows = connection.execute(f"SELECT provider, {', '.join(_COLUMNS)} FROM sent ORDER BY id").fetchall()
    for provider in sorted({row[0] for row in rows}):
        path = sent_file(home, provider)
        make_private_directory(path.parent)
        with closing(LazyDatabase(path, SCHEMA, APPLICATION_ID)) as file, file.open().writing() as connection:
            connection.executemany(
                f"INSERT INTO sent ({', '.join(_COLUMNS)}) VALUES (?{', ?' * (len(_COLUMNS) - 1)})"
                f" ON CONFLICT ({_KEY}) DO NOTHING",
                [row[1:] for row in rows if row[0] == provider],
            )
    return len(rows)


def _user_of(scope: str) -> str:
    """The user of a name at vendors; the owner if the name does not tell."""
    try:
        return read_peer_name(scope)[1] or ""
    except ProviderError:
        return ""
