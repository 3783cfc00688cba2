"""Tables as data: what a store should look like, and how an older one gets there.

A table that lacks a column gets it, without anybody writing a migration. What cannot be said that way is a named
migration, applied once, in one transaction with the note that it was. A store at the current version is opened without
looking at its tables at all, so opening costs the same at any size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.db.sqlite import Connection, Database
from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError

_NUMBERED = "INTEGER PRIMARY KEY AUTOINCREMENT"


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is text, real or integer; `rules` is what SQL says about it. A numbered column counts its rows."""

    name: str
    kind: str
    rules: str = ""
    meaning: str = ""

    def declaration(self) -> str:
        kind = _NUMBERED if self.kind == "numbered" else self.kind.upper()
        return f"{self.name} {kind} {self.rules}".rstrip()


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    meaning: str
    columns: tuple[Column, ...]

    def create(self) -> str:
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(c.declaration() for c in self.columns)})"


@dataclass(frozen=True, slots=True)
class Migration:
    """A change of what is stored; its name is written down when it is done, and it is never done again."""

    name: str
    apply: Callable[[Connection], Any]


@dataclass(frozen=True, slots=True)
class Schema:
    version: int
    tables: tuple[Table, ...]
    indexes: tuple[str, ...]
    migrations: tuple[Migration, ...] = ()

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """Its own, and those that every store has."""
        return (*self.tables, STATE_META, SCHEMA_VERSION)


STATE_META = Table(
    "state_meta",
    "Facts about the store itself.",
    (Column("key", "text", "PRIMARY KEY", "Their names."), Column("value", "text", "", "Their values.")),
)
SCHEMA_VERSION = Table(
    "schema_version", "A single row.", (Column("version", "integer", "NOT NULL", "The version of these tables."),)
)


def open_database(path: Path, schema: Schema, application_id: int, *, wait: float = 10.0) -> Database:
    """Open a file, or make it, with the tables of `schema`; one that a newer program wrote is refused."""
    database = Database(
        path,
        application_id=application_id,
        inspect=lambda connection: refuse_newer(connection, schema, path),
        wait=wait,
    )
    try:
        upgrade_schema(database, schema)
    except BaseException:
        database.close()
        raise
    return database


def upgrade_schema(database: Database, schema: Schema) -> None:
    """Give a store the tables of `schema`, unless it has them."""
    found = _version(database)
    if found == schema.version:
        return
    if database.read_only:
        _refuse_lacking(database, schema)
        return
    with database.writing() as connection:
        for table in schema.all_tables:
            connection.execute(table.create())
            there = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
            for column in table.columns:
                if column.name not in there:
                    connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {column.declaration()}")
        for index in schema.indexes:
            connection.execute(index)
        if found == 0:
            for migration in schema.migrations:
                migration.apply(connection)
                _note(connection, migration)
    for migration in schema.migrations:
        _apply(database, migration)
    with database.writing() as connection:
        if _stored_version(connection) < schema.version:
            connection.execute("DELETE FROM schema_version")
            connection.execute("INSERT INTO schema_version (version) VALUES (?)", (schema.version,))


def refuse_newer(connection: Connection, schema: Schema, path: Path) -> None:
    """Raise when a newer program wrote the store."""
    found = _stored_version(connection)
    if found > schema.version:
        raise NewerStoreError(
            f"{path} has schema version {found}, and this Memoranda knows versions up to {schema.version}. "
            "It was written by a newer Memoranda and is left as it is; upgrade this one to use it."
        )


def _refuse_lacking(database: Database, schema: Schema) -> None:
    """Raise when a store that cannot be written lacks a column: nothing could be read from its table."""
    with database.reading() as connection:
        for table in schema.all_tables:
            there = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
            if there and any(column.name not in there for column in table.columns):
                raise StorageError(
                    f"{database.path} was written by an older Memoranda and has to be brought up to date, but it "
                    "cannot be written. Make the file and its directory writable once, or copy them to where they are."
                )


def _version(database: Database) -> int:
    with database.reading() as connection:
        return _stored_version(connection)


def _stored_version(connection: Connection) -> int:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
        return 0
    (found,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    if found is None:
        return 0
    if not isinstance(found, int) or found < 0:
        (_, _, file) = connection.execute("PRAGMA database_list").fetchone()
        raise CorruptStoreError(
            f"{file} is damaged: its schema_version is {repr(found)[:40]}, which is no version. It is left as it is. "
            "'memoranda doctor' says how to save what is in it."
        )
    return found


def _note(connection: Connection, migration: Migration) -> None:
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, 'done') ON CONFLICT (key) DO NOTHING", (_key(migration),)
    )


def _key(migration: Migration) -> str:
    return f"migration:{migration.name}"


def _apply(database: Database, migration: Migration) -> None:
    with database.writing() as connection:
        if not connection.execute("SELECT 1 FROM state_meta WHERE key = ?", (_key(migration),)).fetchone():
            migration.apply(connection)
            _note(connection, migration)
