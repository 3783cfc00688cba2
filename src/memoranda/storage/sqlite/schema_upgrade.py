"""Creates the tables of a schema in a SQLite file, and brings an older file up to date.

A table that lacks a column gets it without a migration. Other changes are named migrations, each applied once, in one
transaction with the record of its name. Opening a file at the current version does not look at its tables, so it costs
the same at any size.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError
from memoranda.storage.connection import Connection as AnyConnection
from memoranda.storage.schema import COMPONENT_VERSIONS, STATE_META, Schema, Table
from memoranda.storage.sqlite.database import Connection, Database
from memoranda.storage.state_meta import read_meta, write_meta

_VERSION_KEY = "memoranda_schema_version"


def upgrade_schema(database: Database, schema: Schema) -> None:
    """Create the tables of `schema`, or their missing parts."""
    found = _version(database)
    if found == schema.version:
        return
    if database.read_only:
        _refuse_outdated(database, schema)
        return
    with database.writing() as connection:
        _create(connection, schema, schema.all_tables)
        if found == 0:
            for migration in schema.migrations:
                migration.apply_once(connection)
    for migration in schema.migrations:
        with database.writing() as connection:
            migration.apply_once(connection)
    with database.writing() as connection:
        if _stored_version(connection) < schema.version:
            _store_version(connection, schema.version)


def upgrade_component(database: Database, schema: Schema) -> None:
    """Create the tables of one component in a file that several components share, or their missing parts."""
    with database.reading() as connection:
        found = _component_version(connection, schema)
    if found > schema.version:
        raise _newer_error(database.path, found, schema)
    if found == schema.version:
        return
    if database.read_only:
        _refuse_outdated(database, schema)
        return
    with database.writing() as connection:
        _create(connection, schema, (*schema.tables, STATE_META, COMPONENT_VERSIONS))
        for migration in schema.migrations:
            migration.apply_once(connection, f"{schema.name}:")
        connection.execute(
            "INSERT INTO schema_version (component, version) VALUES (?, ?)"
            " ON CONFLICT (component) DO UPDATE SET version = excluded.version",
            (schema.name, schema.version),
        )


def _component_version(connection: Connection, schema: Schema) -> int:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
        return 0
    row = connection.execute("SELECT version FROM schema_version WHERE component = ?", (schema.name,)).fetchone()
    return 0 if row is None else _checked_version(connection, row[0])


def _create(connection: Connection, schema: Schema, tables: Iterable[Table]) -> None:
    for table in tables:
        connection.execute(table.create())
        existing = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
        for column in table.columns:
            if column.name not in existing:
                connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {column.declaration()}")
    for index in schema.indexes:
        connection.execute(index)
    for trigger in schema.triggers:
        connection.execute(trigger.create())


def refuse_newer(connection: Connection, schema: Schema, path: Path) -> None:
    """Raise NewerStoreError if a newer version of Memoranda wrote the store."""
    found = _stored_version(connection)
    if found > schema.version:
        raise _newer_error(path, found, schema)


def _newer_error(path: Path, found: int, schema: Schema) -> NewerStoreError:
    return NewerStoreError(
        f"{path} has schema version {found}, and this Memoranda knows versions up to {schema.version}. "
        "A newer Memoranda wrote it, and it was not changed; upgrade this one to use it."
    )


def _refuse_outdated(database: Database, schema: Schema) -> None:
    """Raise StorageError if a read-only store lacks a column, because statements that name the column would fail."""
    with database.reading() as connection:
        for table in schema.tables:
            existing = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
            if existing and any(column.name not in existing for column in table.columns):
                raise StorageError(
                    f"{database.path} was written by an older Memoranda and must be upgraded, but it cannot be "
                    "written. Make the file and its directory writable once, or copy the file to a writable directory."
                )


def _version(database: Database) -> int:
    with database.reading() as connection:
        return _stored_version(connection)


def _store_version(connection: Connection, version: int) -> None:
    """Record the version twice: Hermes, which reads and writes the same tables, puts its own into `schema_version`."""
    if not was_opened_by_hermes(connection):
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (?)", (version,))
    write_meta(connection, _VERSION_KEY, str(version))


def was_opened_by_hermes(connection: AnyConnection) -> bool:
    """Whether Hermes has added its tables, so that the number in `schema_version` is the version of Hermes's tables."""
    tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('compression_locks', 'state_meta')"
    return bool(connection.execute(tables).fetchone()[0] == 2)


def _version_beside_hermes(connection: Connection) -> int:
    """Our version in a file that Hermes has opened; 0 if a process was killed before it recorded one."""
    version = read_meta(connection, _VERSION_KEY) or ""
    return int(version) if version.isdecimal() else 0


def _stored_version(connection: Connection) -> int:
    if was_opened_by_hermes(connection):
        return _version_beside_hermes(connection)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
        return 0
    (found,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return 0 if found is None else _checked_version(connection, found)


def _checked_version(connection: Connection, found: Any) -> int:
    if not isinstance(found, int) or found < 0:
        (_, _, file) = connection.execute("PRAGMA database_list").fetchone()
        raise CorruptStoreError(
            f"{file} is damaged: its schema_version is {repr(found)[:40]}, which is not a version. It was not changed. "
            "'memoranda doctor' says how to save its content."
        )
    return found
