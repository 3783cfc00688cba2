"""Checks whether a database is undamaged and private, and saves the readable content of a damaged one."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from memoranda.errors import CorruptStoreError, NewerStoreError, NoLocksError, StorageError
from memoranda.storage.orphaned_wal import database_exists, main_file_missing
from memoranda.storage.salvage.leaf_rows import PartialRow
from memoranda.storage.salvage.rebuild import SIDE_FILES, DamagedDatabase, damaged_copy_path, list_kept_files, rebuild
from memoranda.storage.schema import SCHEMA_VERSION, Schema, Table
from memoranda.storage.sqlite.database import Connection, Database
from memoranda.storage.sqlite.schema_upgrade import open_database
from memoranda.storage.sqlite.stored_texts import add_row_if_valid
from memoranda.support.health_issues import HealthIssue, check_permissions
from memoranda.support.lazy_dataclass import dataclass

_LOCK_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class CheckedDatabase:
    """A database, how to check its content (`check_content`), and how to save it if it is damaged (`save`)."""

    path: Path
    application_id: int
    schema: Schema
    check_content: Callable[[Database], Iterator[HealthIssue]]
    save: Callable[[DamagedDatabase, Path], str]

    def open(self, path: Path | None = None) -> Database:
        return open_database(path or self.path, self.schema, self.application_id, wait=_LOCK_TIMEOUT)


def check_store(store: CheckedDatabase) -> Iterator[HealthIssue]:
    """Health issues of a database: access, damage, permissions, and those that `check_content` finds."""
    return check_file(store.path, lambda: _check_database(store), lambda problem: _damage_issue(store, problem))


def check_file(
    path: Path, check_content: Callable[[], Iterator[HealthIssue]], damage_issue: Callable[[str], HealthIssue]
) -> Iterator[HealthIssue]:
    """Health issues of a file: permissions, access, damage (`damage_issue`), and those that `check_content` finds."""
    if not database_exists(path):
        return
    for suffix in SIDE_FILES:
        # SQLite's other files come and go while other processes use the database.
        with suppress(FileNotFoundError):
            yield from check_permissions(Path(f"{path}{suffix}"))
    try:
        yield from check_content()
    except NewerStoreError as error:
        yield HealthIssue("error", path, _without_path(path, error), "upgrade Memoranda")
    except CorruptStoreError as error:
        yield damage_issue(_without_path(path, error))
    except ValueError as error:
        # A damaged column is no JSON, or SQLite quotes a damaged definition in a message that is no valid text.
        yield damage_issue(f"is damaged: {error}")
    except NoLocksError as error:
        yield HealthIssue("error", path, _without_path(path, error), "move the home to a disk with byte locks")
    except StorageError as error:
        yield HealthIssue(
            "error", path, _without_path(path, error), "repair its permissions, or stop the program that holds it"
        )


def _without_path(path: Path, error: StorageError) -> str:
    """The message of an error without the path, which the issue already names."""
    return str(error).removeprefix(f"{path} ")


def _check_database(store: CheckedDatabase) -> Iterator[HealthIssue]:
    with closing(store.open()) as database:
        problems = database.check(thorough=True)
        if problems:
            yield _damage_issue(store, f"is damaged: {problems[0]}")
        else:
            yield from store.check_content(database)


def _damage_issue(store: CheckedDatabase, problem: str) -> HealthIssue:
    if not _is_ours(store):
        return HealthIssue("error", store.path, problem, "move it away; Memoranda creates a new one when it needs one")
    return HealthIssue(
        "error",
        store.path,
        problem,
        "stop every program that uses it, then run 'memoranda doctor --fix': it keeps the damaged file and saves "
        "everything that can still be read",
        lambda: _save(store),
    )


def _is_ours(store: CheckedDatabase) -> bool:
    """Whether Memoranda wrote the file; a person must look at any other file."""
    if main_file_missing(store.path):
        return True
    address = f"{store.path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone()[0] == store.application_id)
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def _save(store: CheckedDatabase) -> str:
    kept = damaged_copy_path(store.path)
    summary = rebuild(store.path, kept, lambda path: store.open(path).close(), store.save)
    return f"saved {summary}, which is all that could be read; the damaged file is kept as {list_kept_files(kept)}"


def take_rows(connection: Connection, damaged: DamagedDatabase, table: Table) -> int:
    """Copy the whole readable rows of a table and return how many; skips rows that violate a constraint."""
    taken = 0
    for row in damaged.rows(table):
        if isinstance(row, PartialRow):
            # A part of a delivery or of a setting would be used as if it were all of it.
            continue
        taken += add_row_if_valid(connection, table.name, row)
    return taken


def plain_store(path: Path, application_id: int, schema: Schema, row_name: str) -> CheckedDatabase:
    """A database that is only checked for damage; `row_name` names its rows in messages, in the plural."""

    def save(damaged: DamagedDatabase, fresh: Path) -> str:
        with closing(store.open(fresh)) as database, database.writing() as connection:
            tables = (table for table in schema.all_tables if table.name != SCHEMA_VERSION.name)
            count = sum(take_rows(connection, damaged, table) for table in tables)
        return f"{count:,} {row_name}"

    store = CheckedDatabase(path, application_id, schema, lambda database: iter(()), save)
    return store
