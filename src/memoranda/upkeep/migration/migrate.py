"""Copies a home to a PostgreSQL server, or back, and verifies the copy.

The source is only read. The target must be empty, or the target of the same migration that was interrupted. Nothing
may use either of the two meanwhile; the comparison at the end finds out if something did.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memoranda.errors import HomeError, StorageError
from memoranda.memory.curated.schema import SCHEMA as CURATED
from memoranda.memory.curated.storage import FileStorage, MemoryStorage
from memoranda.memory.curated.table_storage import TableStorage
from memoranda.memory.record.record import open_record
from memoranda.memory.record.schema import (
    CHANGES,
    DELETED_SESSIONS,
    ITEM_CHANGES,
    ITEMS,
    MESSAGES,
    NOTIFICATIONS,
    SESSIONS,
    SYSTEM_PROMPTS,
)
from memoranda.storage.engine import Engine
from memoranda.storage.files.named_texts import NamedTexts
from memoranda.storage.lazy_database import open_server_engine, users_of
from memoranda.storage.orphaned_wal import database_exists
from memoranda.storage.state_meta import drop_meta, write_meta
from memoranda.support.durable_files import make_private_directory
from memoranda.support.home import Home, decode_user_id, encode_user_id
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.migration.tables import (
    CopiedTable,
    Progress,
    compare_table,
    continue_numbers,
    copy_parts_to_files,
    copy_parts_to_server,
    copy_table,
    count_rows,
)


def copy_to_tables(directory: Path, target: TableStorage) -> None:
    """Store the files of a directory in tables, in one transaction; what the tables had is replaced."""
    source = FileStorage(directory, 10.0)
    with target.exclusive():
        target.lines.replace(source.lines.read())
        for texts in _collections(target):
            for name in texts.names():
                texts.remove(name)
        _copy_texts(source, target)


def copy_to_files(source: TableStorage, directory: Path) -> None:
    """Write the rows of a user into a directory, with their times."""
    target = FileStorage(directory, 10.0)
    make_private_directory(directory)
    if lines := source.lines.read():
        target.lines.replace(lines)
    _copy_texts(source, target)


def compare(directory: Path, tables: TableStorage) -> None:
    """Raise StorageError unless files and tables have the same texts, byte by byte."""
    files = FileStorage(directory, 10.0)
    differing = [] if files.lines.read() == tables.lines.read() else ["journal.jsonl"]
    for one, two in zip(_collections(files), _collections(tables), strict=True):
        differing += [name for name in {*one.names(), *two.names()} if _read(one, name) != _read(two, name)]
    if differing:
        raise StorageError(f"{directory} and its copy differ in {', '.join(sorted(differing))}.")


def _copy_texts(source: MemoryStorage, target: MemoryStorage) -> None:
    for texts, copies in zip(_collections(source), _collections(target), strict=True):
        for name in texts.names():
            copies.write(name, texts.read(name), texts.modified_at(name))


def _collections(storage: MemoryStorage) -> tuple[NamedTexts, ...]:
    return (storage.texts, storage.proposals, storage.backups, storage.allowances.texts, storage.forgotten.texts)


def _read(texts: NamedTexts, name: str) -> bytes | None:
    try:
        return texts.read(name)
    except FileNotFoundError:
        return None


TABLES = (
    CopiedTable(SYSTEM_PROMPTS, "id"),
    CopiedTable(SESSIONS, "id", at_once=True),
    CopiedTable(DELETED_SESSIONS, "id"),
    CopiedTable(MESSAGES, "id"),
    CopiedTable(CHANGES, "seq"),
    CopiedTable(ITEMS, "id"),
    CopiedTable(ITEM_CHANGES, "seq"),
    CopiedTable(NOTIFICATIONS, "id"),
)
_MARK = "memoranda_migration_from"
# What belongs to a store itself, and not to its content.
_OWN_KEYS = ("memoranda_schema_version", _MARK)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """How many rows each table has, and whose memories were copied."""

    tables: dict[str, int]
    memories: int


def migrate_to_server(home: Home, url: str, progress: Progress) -> MigrationReport:
    """Copy a home to a server; raises StorageError if the target has another content, or if the copy differs."""
    with _record(home.state_db) as source, _record(url) as target, closing(open_server_engine(url, CURATED)) as tables:
        _claim(source, target, tables)
        counts = _copy_record(source, target, progress)
        continue_numbers(target, TABLES)
        directories = _memory_directories(home, source)
        for number, (user, directory) in enumerate(directories.items()):
            progress("curated memory", number, len(directories))
            storage = TableStorage(lambda: tables, user)
            copy_to_tables(directory, storage)
            compare(directory, storage)
        counts |= copy_parts_to_server(home, url, progress)
        _release(target)
    return MigrationReport(counts, len(directories))


def migrate_to_files(url: str, home: Home, progress: Progress) -> MigrationReport:
    """Copy what a server has into a home without conversations and memories; raises as `migrate_to_server` does."""
    is_new = not database_exists(home.state_db)
    if is_new and (home.root / "memories").exists():
        raise HomeError(f"{home.root} has memories already. Name a new home.")
    with _record(url) as source, _record(home.state_db) as target, closing(open_server_engine(url, CURATED)) as tables:
        _claim(source, target, None)
        counts = _copy_record(source, target, progress)
        users: list[str | None] = [None, *users_of(tables, CURATED.user_tables)]
        copied = 0
        for user in users:
            storage = TableStorage(lambda: tables, user)
            if storage.exists():
                progress("curated memory", copied, len(users))
                directory = home.memories(user)
                copy_to_files(storage, directory)
                compare(directory, storage)
                copied += 1
        counts |= copy_parts_to_files(url, home, progress)
        _release(target)
    return MigrationReport(counts, copied)


@contextmanager
def _record(location: Path | str) -> Iterator[Engine]:
    engine = open_record(location)
    try:
        yield engine.acting_for(None, everyone=True)
    finally:
        engine.close()


def _claim(source: Engine, target: Engine, tables: Engine | None) -> None:
    """Note in the target whose copy it is; refuse one that has a content of its own."""
    name = _meta(source).get("store_id", "")
    found = _meta(target).get(_MARK)
    if found is None:
        occupied = any(count_rows(target, copied.table.name) for copied in TABLES)
        everyone = tables.acting_for(None, everyone=True) if tables is not None else None
        if occupied or (everyone is not None and any(count_rows(everyone, each.name) for each in CURATED.tables)):
            raise StorageError(f"{target.location} is not empty. Nothing was copied; name an empty target.")
    elif found != name:
        raise StorageError(f"{target.location} has a part of another store. Nothing was copied; name an empty target.")
    _set_meta(target, {_MARK: name})


def _copy_record(source: Engine, target: Engine, progress: Progress) -> dict[str, int]:
    counts = {copied.table.name: copy_table(source, target, copied, progress) for copied in TABLES}
    for copied in TABLES:
        compare_table(source, target, copied, progress)
    meta = {key: value for key, value in _meta(source).items() if not _is_own(key)}
    _set_meta(target, meta)
    return counts


def _release(target: Engine) -> None:
    with target.writing() as connection:
        drop_meta(connection, _MARK)


def _meta(engine: Engine) -> dict[str, str]:
    with engine.reading() as connection:
        return dict(connection.execute("SELECT key, value FROM state_meta").fetchall())


def _set_meta(engine: Engine, values: dict[str, str]) -> None:
    with engine.writing() as connection:
        for key, value in values.items():
            write_meta(connection, key, value)


def _is_own(key: str) -> bool:
    return key in _OWN_KEYS or key.startswith(("migration:", "outbox:", "imports:"))


def _memory_directories(home: Home, source: Engine) -> dict[str | None, Path]:
    """The memory directories of a home by user; the id of a long name is found in the record."""
    known = {encode_user_id(user): user for user in users_of(source, {SESSIONS.name: "user_id"})}
    found: dict[str | None, Path] = {None: home.memories()} if home.memories().is_dir() else {}
    for directory in home.user_memories():
        user = known.get(directory.name) or decode_user_id(directory.name)
        if user is None:
            raise HomeError(f"The user of {directory} is unknown, because their id is too long for a name of a file.")
        found[user] = directory
    return found
