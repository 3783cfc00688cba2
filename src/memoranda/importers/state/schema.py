"""The tables of imports, in `home.db` or on the server that has the record, for all nodes.

On a server a path means something only on its node, so a row of a file also has the name of the node. Every row has its
user, for row-level security, and so that the rows move with the user to another store.
"""

import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from memoranda.storage.connection import Connection
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.schema import Column, Forgetting, RowIssue, Schema, ServerTables, Table, is_json_list
from memoranda.storage.state_meta import drop_meta, read_meta, write_meta

_LONGEST_IMPORT = 86_400.0
_STORE_ID = "imports.store_id"
_USER_MEANS_TYPED = "imports.user_means_typed"
_UNKNOWN_KINDS = "imports.unknown_kinds"

_NUMBER = Column("id", "numbered", "", "Order.")
_USER = Column("user_id", "text", "NOT NULL", "The user of a gateway; empty for the home's owner.")
ITEMS = Table(
    "import_items",
    "One row per file that was read, for each user.",
    (
        _NUMBER,
        Column("source", "text", "NOT NULL", "The reader's name."),
        _USER,
        Column("node", "text", "NOT NULL", "The machine that has the file; empty if the record is not on a server."),
        Column("file", "text", "NOT NULL", "The path of the file."),
        Column("what", "text", "NOT NULL", "The part of the file, if it has several."),
        Column("size", "integer", "NOT NULL", "Its size when it was read to the end; -1 before that."),
        Column("changed", "real", "NOT NULL", "Its modification time when it was read."),
        Column("sessions", "text", "NOT NULL", "The ids of the sessions in it, as a JSON list."),
        Column("read_offset", "integer", "", "The checkpoint: how many bytes were read."),
        Column("line", "integer", "", "The checkpoint: how many lines were read."),
        Column("state", "text", "", "The checkpoint: what the reader must know to continue."),
        Column("seal", "text", "", "A digest of the bytes before the checkpoint; it differs if the file was replaced."),
    ),
)
SEEN_SESSIONS = Table(
    "imported_sessions",
    "One row per session that an import has seen, created or not.",
    (
        _NUMBER,
        Column("session_id", "text", "NOT NULL UNIQUE", "Its id in the record."),
        Column("family", "text", "NOT NULL", "Source, user and first message: branches of a session share it."),
        Column("made", "integer", "NOT NULL DEFAULT 0", "1 when it is, or was, in the record."),
        Column("title", "text", "", "The title that the import set; the user may have changed it since."),
        _USER,
    ),
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
    "One row per session to which an import added messages, item to which it added a version, and checkpoint.",
    (
        _NUMBER,
        Column("import_id", "text", "NOT NULL", "The import."),
        Column("session_id", "text", "NOT NULL", "The session, `item:` and its id, or `state:` and names."),
        Column(
            "first_message", "integer", "NOT NULL", "The lowest id of a message that it added; of an item, its version."
        ),
        Column(
            "last_message", "integer", "NOT NULL", "The highest id of a message that it added; of an item, its version."
        ),
        Column("title", "text", "", "The title before the import; null for a new session."),
        Column("model", "text", "", "The model before the import; null for a new session."),
        _USER,
    ),
)
PROPOSALS = Table(
    "import_proposals",
    "One row per proposal for curated memory that an import made.",
    (
        _NUMBER,
        Column("import_id", "text", "NOT NULL", "The import."),
        Column("proposal_id", "text", "NOT NULL UNIQUE", "The proposal in the approval queue."),
        Column("target", "text", "NOT NULL", "The file that it is for: memory or user."),
        _USER,
    ),
)


def _delete_items_with(connection: Connection, matches: Callable[[str], bool], user: str) -> int:
    """Delete the rows of a user's files whose path or part matches; such a file is read from its start again."""
    rows = connection.execute("SELECT id, file, what FROM import_items WHERE user_id = ?", (user,)).fetchall()
    numbers = [(number,) for number, file, part in rows if matches(file) or matches(part)]
    connection.executemany("DELETE FROM import_items WHERE id = ?", numbers)
    return len(numbers)


def _check_rows(connection: Connection, _on_server: bool) -> Iterator[RowIssue]:
    """Damaged rows, and imports without an end."""
    (lost,) = connection.execute(
        "SELECT count(*) FROM import_parts p WHERE NOT EXISTS (SELECT 1 FROM imports i WHERE i.id = p.import_id)"
    ).fetchone()
    if lost:
        yield RowIssue(
            "warning",
            f"{lost:,} parts of imports without their import, which cannot be undone",
            "restore the table imports from a backup, or delete those sessions one by one",
        )
    (killed,) = connection.execute(
        "SELECT count(*) FROM imports WHERE ended IS NULL AND began < ?", (time.time() - _LONGEST_IMPORT,)
    ).fetchone()
    if killed:
        yield RowIssue(
            "note",
            f"{killed:,} imports without an end: they were killed",
            "nothing to do; the next import of the same user completes their log",
        )
    if damaged := _damaged_items(connection):
        yield RowIssue(
            "warning",
            f"{len(damaged):,} imported files with an unreadable list of sessions",
            "delete these rows; the files are read again, and nothing is added twice",
            _delete_damaged,
            harmless=True,
        )
    for source, kinds in _unknown_kinds(connection).items():
        listed = ", ".join(f"{kind} ({number:,})" for kind, number in sorted(kinds.items()))
        yield RowIssue(
            "note",
            f"counts of lines of {source} whose kind this version does not know, and did not record: {listed}",
            "update Memoranda, then 'memoranda import --rescan'; '--fix' resets the counts",
            _reset_unknown_kinds,
            harmless=True,
        )


def _damaged_items(connection: Connection) -> list[int]:
    rows = connection.execute("SELECT id, sessions FROM import_items").fetchall()
    return [number for number, sessions in rows if not is_json_list(sessions)]


def _delete_damaged(connection: Connection) -> str:
    numbers = _damaged_items(connection)
    connection.executemany("DELETE FROM import_items WHERE id = ?", [(number,) for number in numbers])
    return f"{len(numbers):,} files are read again by the next import"


def note_unknown_kinds(connection: Connection, source: str, kinds: Mapping[str, int]) -> None:
    """Count lines that the reader of a source does not know; the doctor names them until it repairs the home."""
    noted = _unknown_kinds(connection)
    noted[source] = Counter(noted.get(source, {})) + Counter(kinds)
    write_meta(connection, _UNKNOWN_KINDS, json.dumps(noted))


def _reset_unknown_kinds(connection: Connection) -> str:
    drop_meta(connection, _UNKNOWN_KINDS)
    return "counted again when an import reads such lines"


def user_means_typed(connection: Connection) -> bool:
    """Whether all imported messages with the role `user` are what a user typed: earlier versions took other text."""
    return read_meta(connection, _USER_MEANS_TYPED) is not None or not _has_items(connection)


def note_user_means_typed(connection: Connection, *, checked: bool = False) -> None:
    """Record this of a state without files, or after all sessions were `checked`."""
    if checked or not _has_items(connection):
        write_meta(connection, _USER_MEANS_TYPED, "1")


def _has_items(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM import_items LIMIT 1").fetchone() is not None


def _unknown_kinds(connection: Connection) -> dict[str, Mapping[str, int]]:
    """The unknown kinds of lines by source."""
    noted: dict[str, Mapping[str, int]] = json.loads(read_meta(connection, _UNKNOWN_KINDS) or "{}")
    return noted


_TABLES = (ITEMS, SEEN_SESSIONS, IMPORTS, PARTS, PROPOSALS)
SCHEMA = Schema(
    version=1,
    name="imports",
    tables=_TABLES,
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_import_parts ON import_parts(import_id, session_id)",
        "CREATE INDEX IF NOT EXISTS idx_parts_of_sessions ON import_parts(session_id)",
        "CREATE INDEX IF NOT EXISTS idx_families ON imported_sessions(family)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_import_items ON import_items(source, user_id, node, file, what)",
    ),
    server=ServerTables(user_tables=tuple((table.name, "user_id") for table in _TABLES)),
    forgetting=Forgetting(delete_rows=_delete_items_with),
    check_rows=_check_rows,
)


def node_name() -> str:
    """The name of this machine, which tells its files from those of other nodes with the same paths."""
    return platform.node() or "unknown"


def imports_database(root: Path, server_url: str = "") -> HomeDatabase:
    """The database of imports: `home.db`, or the server that has the record."""
    return HomeDatabase(root, SCHEMA, server_url=server_url)


def store_of_imports(connection: Connection) -> str | None:
    """The id of the store that the rows in `home.db` are about; a server has the store itself."""
    return read_meta(connection, _STORE_ID)


def assign_to_store(connection: Connection, store_id: str) -> None:
    """Make the rows belong to a store; those of another store are deleted."""
    if store_of_imports(connection) != store_id:
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table.name}")
        write_meta(connection, _STORE_ID, store_id)
