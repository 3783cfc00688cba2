"""Older stores are brought up to date, newer ones refused, and a half-done upgrade is finished."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError
from memoranda.memory.record.schema import SCHEMA
from memoranda.memory.record.store import open_store
from memoranda.storage.connection import Connection
from memoranda.storage.schema import Column, Migration, Schema, Table
from memoranda.storage.sqlite.database import Database
from memoranda.storage.sqlite.schema_upgrade import upgrade_schema
from tests.conftest import tree
from tests.forked import in_child

THINGS = Table("things", "Things.", (Column("id", "numbered"), Column("name", "text", "NOT NULL")))
FIRST = Schema(1, (THINGS,), ("CREATE INDEX IF NOT EXISTS idx_name ON things(name)",))
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


def test_an_older_store_gets_its_columns(tmp_path: Path) -> None:
    """Those that are missing, with their defaults, and everything that was there stays."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli", model="m")
        store.messages.append_message("s", "user", "old", reasoning="r")
    dropped = [("messages", "reasoning_content"), ("messages", "codex_message_items"), ("messages", "copy_of"),
               ("sessions", "archived"), ("sessions", "rewind_count"), ("sessions", "pricing_version")]  # fmt: skip
    _set_version(path, 0, "DROP INDEX idx_messages_copies",
                 *(f"ALTER TABLE {table} DROP COLUMN {column}" for table, column in dropped))  # fmt: skip
    for _ in range(2):
        with open_store(path) as store:
            (message,) = store.messages.get_messages("s")
            session = store.sessions.get_session("s")
            assert session is not None
            assert (message["content"], message["reasoning"], message["reasoning_content"]) == ("old", "r", None)
            assert (session["model"], session["archived"], session["rewind_count"]) == ("m", 0, 0)
            assert [row["id"] for row in store.listing.list_sessions_rich()] == ["s"]
    with open_store(path) as store:
        assert store.messages.append_message("s", "user", "new", reasoning_content="c")


_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"


def test_missing_indexes_are_created_again(tmp_path: Path) -> None:
    """An older store gets the indexes that it lacks."""
    path = tmp_path / "state.db"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute(_INDEXES)]
        for name in names:
            connection.execute(f"DROP INDEX {name}")
        connection.execute("UPDATE schema_version SET version = 0")
        connection.commit()
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        again = [row[0] for row in connection.execute(_INDEXES)]
    assert sorted(again) == sorted(names)
    assert len(names) >= 8


def test_a_migration_is_done_once(tmp_path: Path) -> None:
    """On stores that are older than it, after the columns are there; on one that is born with it while it is empty."""
    calls: list[str] = []

    def double(connection: Connection) -> None:
        calls.append("double")
        connection.execute("UPDATE things SET size = size * 2")

    second = replace(FIRST, version=2, tables=(WIDER,), migrations=(Migration("double", double),))
    database = _database(tmp_path / "old.db")
    upgrade_schema(database, FIRST)
    with database.writing() as connection:
        connection.execute("INSERT INTO things (name) VALUES ('a')")
    for _ in range(3):
        upgrade_schema(database, second)
    with database.reading() as connection:
        assert connection.execute("SELECT name, size FROM things").fetchall() == [("a", 14)]
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(2,)]
    database.close()
    assert calls == ["double"]
    born = _database(tmp_path / "new.db")
    upgrade_schema(born, second)
    upgrade_schema(born, replace(second, version=3))
    born.close()
    assert calls == ["double", "double"]


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


@pytest.mark.slow
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


def test_a_store_from_before_projects_gets_them(tmp_path: Path) -> None:
    """Its sessions have none, new ones may, and everything that was there is found as before."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("old", "cli")
        store.messages.append_message("old", "user", "before")
    _set_version(path, 2, "DROP INDEX idx_sessions_project", "ALTER TABLE sessions DROP COLUMN project")
    with open_store(path) as store:
        store.sessions.create_session("new", "cli", project="x#1")
        assert {row["id"]: row["project"] for row in store.listing.list_sessions_rich()} == {"old": None, "new": "x#1"}
        assert store.listing.known_projects() == {"x#1": 1}


@pytest.mark.skipif(os.name == "nt", reason="permissions work differently there")
def test_an_older_store_that_cannot_be_written_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables lack what we read, and nothing of it is changed."""
    path = tmp_path / "home" / "state.db"
    open_store(path).close()
    _set_version(path, 2, "DROP INDEX idx_sessions_project", "ALTER TABLE sessions DROP COLUMN project")
    before = path.read_bytes()
    opened = Database(path, application_id=int.from_bytes(b"Memo"))
    monkeypatch.setattr(opened, "read_only", True)
    with pytest.raises(StorageError, match=r"older Memoranda.*writable"):
        upgrade_schema(opened, SCHEMA)
    opened.close()
    assert path.read_bytes() == before
