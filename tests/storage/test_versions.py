"""Older stores are brought up to date, newer ones refused, and a half-done upgrade is finished."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError
from memoranda.memory.record.schema import SCHEMA
from memoranda.memory.record.store import open_store
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Column, Migration, Schema, Table
from memoranda.storage.sqlite.database import Database
from memoranda.storage.sqlite.schema_upgrade import upgrade_schema
from tests.conftest import tree
from tests.forked import in_child

pytestmark = pytest.mark.slow

THINGS = Table("things", "Things.", (Column("id", "numbered"), Column("name", "text", "NOT NULL")))
FIRST = Schema(1, (THINGS,), ("CREATE INDEX IF NOT EXISTS idx_name ON things(name)",), name="things")
WIDER = Table("things", "Things.", (*THINGS.columns, Column("size", "integer", "NOT NULL DEFAULT 7")))


def _database(path: Path) -> Database:
    return Database(path, application_id=42)


def _set_version(path: Path, version: int, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        triggers = [f"DROP TRIGGER IF EXISTS {trigger.name}" for trigger in SCHEMA.triggers]
        for statement in (f"UPDATE schema_version SET version = {version}", *triggers, *statements):
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("version", [SCHEMA.version + 1, 99])
def test_a_newer_store_is_refused_and_not_touched(tmp_path: Path, version: int, journal: str) -> None:
    """Not a byte, whatever kind of journal it has; the error names both versions."""
    path = tmp_path / "home" / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
    _set_version(path, version, "COMMIT", f"PRAGMA journal_mode={journal}", "BEGIN")
    before = tree(path.parent)
    with pytest.raises(NewerStoreError, match=f"{version}.*{SCHEMA.version}"):
        open_store(path)
    assert tree(path.parent) == before


@pytest.mark.parametrize("version", ["'abc'", "''", "4.5", "x'00ff'", "-1", f"'{'9' * 500}x'"])
def test_a_store_with_an_invalid_version_is_damaged(tmp_path: Path, version: str) -> None:
    """It is refused with a clear message, and not changed."""
    path = tmp_path / "home" / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE schema_version SET version = {version}")
    before = tree(path.parent)
    with pytest.raises(CorruptStoreError, match=r"is damaged: its schema_version is .* was not changed") as refused:
        open_store(path)
    assert len(str(refused.value)) < 200 + len(str(path))
    assert tree(path.parent) == before


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def server_url(request: pytest.FixtureRequest) -> str:
    """Where tables are: in a file, then on a server."""
    return str(request.getfixturevalue("postgres_url")) if request.param == "server" else ""


@contextmanager
def _opened(path: Path, schema: Schema, server_url: str) -> Iterator[Engine]:
    with closing(LazyDatabase(path, schema, 42, server_url=server_url)) as database:
        yield database.open()


def test_older_tables_are_brought_up_to_date(tmp_path: Path, server_url: str) -> None:
    """They get columns, indexes and migrations once, and then this version refuses what a newer one has changed."""
    calls: list[str] = []

    def double(connection: Connection) -> None:
        calls.append("double")
        connection.execute("UPDATE things SET size = size * 2")

    index = "CREATE INDEX IF NOT EXISTS idx_size ON things(size)"
    second = replace(
        FIRST, version=2, tables=(WIDER,), indexes=(*FIRST.indexes, index), migrations=(Migration("double", double),)
    )
    path = tmp_path / "things.db"
    with _opened(path, FIRST, server_url) as engine, engine.writing() as connection:
        connection.execute("INSERT INTO things (name) VALUES ('a')")
    for schema in (second, second, replace(second, version=3)):
        with _opened(path, schema, server_url) as engine, engine.reading() as connection:
            assert [tuple(row) for row in connection.execute("SELECT name, size FROM things")] == [("a", 14)]
    assert calls == ["double"]
    with pytest.raises(NewerStoreError, match=r"version 3.*up to 2"), _opened(path, second, server_url):
        pass


def test_new_tables_have_every_migration(tmp_path: Path, server_url: str) -> None:
    """They are applied while the tables are empty, and not again by a later version."""
    calls: list[str] = []
    schema = replace(FIRST, migrations=(Migration("note", lambda connection: calls.append("note")),))
    for version in (1, 2):
        with _opened(tmp_path / "things.db", replace(schema, version=version), server_url):
            assert calls == ["note"]


def test_a_migration_that_fails_does_not_change_the_store(tmp_path: Path) -> None:
    """Its transaction is rolled back, earlier migrations stay, and the next program continues from there."""
    order: list[str] = []

    def first(connection: Connection) -> None:
        order.append("first")
        connection.execute("UPDATE things SET size = size + 1")

    def second(connection: Connection) -> None:
        order.append("second")
        connection.execute("UPDATE things SET size = 0")
        if order.count("second") == 1:
            raise RuntimeError("power cut")

    schema = replace(FIRST, version=2, tables=(WIDER,), migrations=(Migration("1", first), Migration("2", second)))
    database = _database(tmp_path / "state.db")
    upgrade_schema(database, FIRST)
    with database.writing() as connection:
        connection.execute("INSERT INTO things (name) VALUES ('a')")
    with pytest.raises(RuntimeError):
        upgrade_schema(database, schema)
    with database.reading() as connection:
        assert connection.execute("SELECT size FROM things").fetchall() == [(8,)]
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(1,)]
    upgrade_schema(database, schema)
    with database.reading() as connection:
        assert connection.execute("SELECT size FROM things").fetchall() == [(0,)]
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(2,)]
    database.close()
    assert order == ["first", "second", "second"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("step", range(1, 12))
def test_an_upgrade_killed_at_any_statement_is_finished_by_the_next(tmp_path: Path, step: int) -> None:
    """Columns, migrations and version end up the same, and the migration was done exactly once."""

    def double(connection: Connection) -> None:
        connection.execute("UPDATE things SET size = size * 2")
        connection.execute("UPDATE things SET name = name || '!'")

    schema = replace(FIRST, version=2, tables=(WIDER,), migrations=(Migration("double", double),))
    path = tmp_path / "state.db"
    database = _database(path)
    upgrade_schema(database, FIRST)
    with database.writing() as connection:
        connection.execute("INSERT INTO things (name) VALUES ('a')")
    database.close()

    def migrate() -> None:
        own = _database(path)
        assert own._writer is not None
        left = [step]

        def die(statement: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)

        own._writer.set_trace_callback(die)
        upgrade_schema(own, schema)

    assert in_child(migrate) in (0, 9)
    again = _database(path)
    upgrade_schema(again, schema)
    with again.reading() as connection:
        assert connection.execute("SELECT name, size FROM things").fetchall() == [("a!", 14)]
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(2,)]
    again.close()


def test_a_new_store_made_by_many_at_once_is_one_store(tmp_path: Path) -> None:
    """Six processes open a file that is not there yet: all of them can use it, and it has one version."""
    path = tmp_path / "home" / "state.db"
    code = (
        "import sys; from memoranda.memory.record.store import open_store\n"
        "with open_store(sys.argv[1]) as store:\n"
        " store.sessions.create_session(sys.argv[2], 'cli'); print(store.feed.store_id())"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), f"s{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(6)
    ]
    names = {process.communicate()[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0] * 6
    assert len(names) == 1
    with open_store(path) as store:
        assert store.listing.session_count() == 6
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*), max(version) FROM schema_version").fetchone() == (1, SCHEMA.version)


def test_a_store_killed_while_it_was_made_is_made_by_the_next(tmp_path: Path) -> None:
    """Signed but without tables, or with tables but without a version."""
    path = tmp_path / "state.db"
    _database_of_ours = Database(path, application_id=_application_id(tmp_path))
    _database_of_ours.close()
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
    _set_version(path, 0, "DELETE FROM schema_version")
    with open_store(path) as store:
        assert store.sessions.get_session("s") is not None
        assert store.messages.append_message("s", "user", "x")


def _application_id(directory: Path) -> int:
    with open_store(directory / "other.db") as store:
        store.sessions.create_session("s", "cli")
    with closing(sqlite3.connect(directory / "other.db")) as connection:
        return int(connection.execute("PRAGMA application_id").fetchone()[0])


@pytest.mark.skipif(os.name == "nt", reason="permissions work differently there")
def test_an_older_store_that_cannot_be_written_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables lack what we read, and nothing of it is changed."""
    path = tmp_path / "home" / "state.db"
    open_store(path).close()
    _set_version(path, 0, "DROP INDEX idx_sessions_project", "ALTER TABLE sessions DROP COLUMN project")
    before = path.read_bytes()
    opened = Database(path, application_id=int.from_bytes(b"Memo"))
    monkeypatch.setattr(opened, "read_only", True)
    with pytest.raises(StorageError, match=r"older Memoranda.*writable"):
        upgrade_schema(opened, SCHEMA)
    opened.close()
    assert path.read_bytes() == before
