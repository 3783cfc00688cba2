"""The tables of imports: a file of the home, or tables of the server that has the record, for all nodes.

On a server a path means something only on its node, so a row of a file also has the name of the node. Every row has its
user there, for row-level security, and so that the rows move with the user to another store.
"""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memoranda.storage.connection import Connection
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Column, Forgetting, Schema, ServerTables, Table

FILE_NAME = "imports.db"
APPLICATION_ID = int.from_bytes(b"MemI", "big")
ITEMS = "items"
SERVER_ITEMS = "import_items"

_SOURCE = Column("source", "text", "NOT NULL", "The reader's name.")
_USER = Column("user_id", "text", "NOT NULL", "The user of a gateway; empty for the home's owner.")
_FILE = Column("file", "text", "NOT NULL", "The path of the file.")
_PART = Column("what", "text", "NOT NULL", "The part of the file, if it has several.")
_READ_TO = (
    Column("size", "integer", "NOT NULL", "Its size when it was read to the end; -1 before that."),
    Column("changed", "real", "NOT NULL", "Its modification time when it was read."),
    Column("sessions", "text", "NOT NULL", "The ids of the sessions in it, as a JSON list."),
)
_OFFSET_MEANING = "The checkpoint: how many bytes were read."
_CHECKPOINT = (
    Column("line", "integer", "", "The checkpoint: how many lines were read."),
    Column("state", "text", "", "The checkpoint: what the reader must know to continue."),
    Column("seal", "text", "", "A digest of the bytes before the checkpoint; it differs if the file was replaced."),
)
_ITEMS = Table(
    ITEMS,
    "One row per file that was read, for each user.",
    (_SOURCE, _USER, _FILE, _PART, *_READ_TO, Column("offset", "integer", "", _OFFSET_MEANING), *_CHECKPOINT),
)
_SEEN = (
    Column("family", "text", "NOT NULL", "Source, user and first message: branches of a session share it."),
    Column("made", "integer", "NOT NULL DEFAULT 0", "1 when it is, or was, in the record."),
    Column("title", "text", "", "The title that the import set; the user may have changed it since."),
)
SEEN_SESSIONS = Table(
    "imported_sessions",
    "One row per session that an import has seen, created or not.",
    (Column("session_id", "text", "PRIMARY KEY", "Its id in the record."), *_SEEN),
)
IMPORTS = Table(
    "imports",
    "One row per import of a command, from its start.",
    (
        Column("id", "text", "PRIMARY KEY", "The id, by which the import is undone: its time and process."),
        _USER,
        Column("began", "real", "NOT NULL", "Seconds since 1970."),
        Column("ended", "real", "", "Seconds since 1970; null while it runs, or if it was killed."),
        Column("after_message", "integer", "NOT NULL", "The highest id of a message in the store when it started."),
        Column("sources", "text", "NOT NULL", "The names of its readers, as a JSON list."),
        Column("undone", "real", "", "When it was undone: seconds since 1970."),
    ),
)
PARTS = Table(
    "import_parts",
    "One row per session to which an import added messages.",
    (
        Column("import_id", "text", "NOT NULL", "The import."),
        Column("session_id", "text", "NOT NULL", "The session."),
        Column("first_message", "integer", "NOT NULL", "The lowest id of a message that it added."),
        Column("last_message", "integer", "NOT NULL", "The highest id of a message that it added."),
        Column("title", "text", "", "The title before the import; null for a new session."),
        Column("model", "text", "", "The model before the import; null for a new session."),
    ),
)
PROPOSALS = Table(
    "import_proposals",
    "One row per proposal for curated memory that an import made.",
    (
        Column("import_id", "text", "NOT NULL", "The import."),
        Column("proposal_id", "text", "NOT NULL UNIQUE", "The proposal in the approval queue."),
        Column("target", "text", "NOT NULL", "The file that it is for: memory or user."),
    ),
)
_INDEXES = (
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_import_parts ON import_parts(import_id, session_id)",
    "CREATE INDEX IF NOT EXISTS idx_parts_of_sessions ON import_parts(session_id)",
    "CREATE INDEX IF NOT EXISTS idx_families ON imported_sessions(family)",
)
SCHEMA = Schema(
    version=1,
    tables=(_ITEMS, SEEN_SESSIONS, IMPORTS, PARTS, PROPOSALS),
    indexes=(*_INDEXES, "CREATE UNIQUE INDEX IF NOT EXISTS idx_items ON items(source, user_id, file, what)"),
)

_NUMBER = Column("id", "numbered", "", "Order.")
# A transaction that inserts a row acts for its user, see row_security.py.
_ACTING_USER = Column(
    "user_id", "text", "NOT NULL DEFAULT substr(current_setting('memoranda.acting_for', true), 3)",
    "The user whose import it was; empty for the home's owner.",
)  # fmt: skip
_SERVER_TABLES = (
    Table(
        SERVER_ITEMS,
        "On a server: one row per file of a node that was read, for each user.",
        (
            _NUMBER, _SOURCE, _USER, Column("node", "text", "NOT NULL", "The machine that has the file."), _FILE, _PART,
            *_READ_TO, Column("read_offset", "integer", "", _OFFSET_MEANING), *_CHECKPOINT,
        ),
    ),
    Table(
        SEEN_SESSIONS.name,
        SEEN_SESSIONS.meaning,
        (_NUMBER, Column("session_id", "text", "NOT NULL UNIQUE", "Its id in the record."), *_SEEN, _ACTING_USER),
    ),
    IMPORTS,
    Table(PARTS.name, PARTS.meaning, (_NUMBER, *PARTS.columns, _ACTING_USER)),
    Table(PROPOSALS.name, PROPOSALS.meaning, (_NUMBER, *PROPOSALS.columns, _ACTING_USER)),
)  # fmt: skip


def delete_items_with(connection: Connection, matches: Callable[[str], bool], user: str, table: str) -> int:
    """Delete the rows of a user's files whose path or part matches; such a file is read from its start again."""
    rows = connection.execute(f"SELECT DISTINCT file, what FROM {table} WHERE user_id = ?", (user,)).fetchall()
    found = [(file, part, user) for file, part in rows if matches(file) or matches(part)]
    connection.executemany(f"DELETE FROM {table} WHERE file = ? AND what = ? AND user_id = ?", found)
    return len(found)


SERVER_SCHEMA = Schema(
    version=1,
    name="imports",
    tables=_SERVER_TABLES,
    indexes=(
        *_INDEXES,
        f"CREATE UNIQUE INDEX IF NOT EXISTS idx_import_items ON {SERVER_ITEMS}(source, user_id, node, file, what)",
    ),
    server=ServerTables(user_tables=tuple((table.name, "user_id") for table in _SERVER_TABLES)),
    forgetting=Forgetting(
        delete_rows=lambda connection, matches, user: delete_items_with(connection, matches, user, SERVER_ITEMS)
    ),
)
"""The record on a server has a table `items` already, and `offset` is a reserved word of PostgreSQL."""


@dataclass(frozen=True, slots=True)
class ItemNames:
    """The names that the table of items has in a file or on a server."""

    table: str
    row: str
    offset: str
    key: tuple[str, ...]


_FILE_NAMES = ItemNames(ITEMS, "rowid", "offset", ("source", "user_id", "file", "what"))
_SERVER_NAMES = ItemNames(SERVER_ITEMS, "id", "read_offset", ("source", "user_id", "node", "file", "what"))


def item_names(*, on_server: bool) -> ItemNames:
    return _SERVER_NAMES if on_server else _FILE_NAMES


def node_name() -> str:
    """The name of this machine, which tells its files from those of other nodes with the same paths."""
    return platform.node() or "unknown"


def imports_database(root: Path, server_url: str = "") -> LazyDatabase:
    """The database of imports: a file of the home, or the server that has the record."""
    return LazyDatabase(
        root / FILE_NAME, SERVER_SCHEMA if server_url else SCHEMA, APPLICATION_ID, server_url=server_url
    )
