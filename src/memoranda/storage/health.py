"""Checks whether a database is undamaged and private, and saves the readable content of a damaged one."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from memoranda.errors import CorruptStoreError, NewerStoreError, NoLocksError, StorageError
from memoranda.storage.engine import add_row_if_valid
from memoranda.storage.lazy_database import SharedFile
from memoranda.storage.orphaned_wal import database_exists, main_file_missing
from memoranda.storage.salvage.leaf_rows import PartialRow
from memoranda.storage.salvage.rebuild import SIDE_FILES, DamagedDatabase, damaged_copy_path, list_kept_files, rebuild
from memoranda.storage.schema import STATE_META, Schema, Table
from memoranda.storage.sqlite.database import Connection
from memoranda.storage.sqlite.engine import with_tables
from memoranda.support.health_issues import HealthIssue, check_permissions
from memoranda.support.lazy_dataclass import dataclass

_LOCK_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class CheckedDatabase:
    """A file with the tables of some components, and how to check its content."""

    path: Path
    application_id: int
    schemas: Sequence[Schema]
    check_content: Callable[[], Iterator[HealthIssue]]

    def open(self, path: Path | None = None) -> SharedFile:
        return with_tables(SharedFile(path or self.path, self.application_id, _LOCK_TIMEOUT), *self.schemas)

    def save(self, damaged: DamagedDatabase, fresh: Path) -> str:
        """Copy what can still be read of a damaged file into a new one."""
        tables = [table for schema in self.schemas for table in schema.tables]
        with closing(self.open(fresh)) as database, database.writing() as connection:
            count = sum(_take_rows(connection, damaged, table) for table in (*tables, STATE_META))
            for statement in (each for schema in self.schemas for each in schema.after_salvage):
                connection.execute(statement)
        return f"{count:,} rows"


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
            yield from store.check_content()


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


def _take_rows(connection: Connection, damaged: DamagedDatabase, table: Table) -> int:
    """Copy the whole readable rows of a table and return how many; skips rows that violate a constraint."""
    taken = 0
    for row in damaged.rows(table):
        if isinstance(row, PartialRow):
            # A part of a delivery or of a setting would be used as if it were all of it.
            continue
        taken += add_row_if_valid(connection, table.name, row)
    return taken
