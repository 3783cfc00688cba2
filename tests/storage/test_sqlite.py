"""A database gives transactions that are whole, readers that are consistent, and errors that say what to do."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.storage.sqlite.database import Connection, Database
from memoranda.storage.sqlite.engine import SqliteDialect
from tests.timing import GIVE_UP, HANG, without_waiting


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "some.db", application_id=7, wait=0.3)
    with opened.writing() as connection:
        connection.execute("CREATE TABLE things (name TEXT UNIQUE)")
    yield opened
    opened.close()


def _names(database: Database) -> list[str]:
    with database.reading() as connection:
        return [row[0] for row in connection.execute("SELECT name FROM things ORDER BY rowid")]


def _add(connection: Connection, name: str) -> None:
    connection.execute("INSERT INTO things (name) VALUES (?)", (name,))


def test_a_transaction_is_whole(database: Database) -> None:
    """All of it, or nothing when the block raises, whatever it raises."""
    with database.writing() as connection:
        _add(connection, "a")
        _add(connection, "b")
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), database.writing() as connection:
            _add(connection, "c")
            raise error
    assert _names(database) == ["a", "b"]


def test_a_nested_write_ends_the_outer_one_and_says_so(database: Database) -> None:
    """The inner one is written, the outer one is not, and neither keeps the next one out."""
    with pytest.raises(RuntimeError, match="A nested write"), database.writing() as outer:
        _add(outer, "outer")
        with database.writing() as inner:
            _add(inner, "inner")
    with database.writing() as connection:
        _add(connection, "next")
    assert _names(database) == ["inner", "next"]


def test_an_error_of_sqlite_is_one_of_ours(database: Database) -> None:
    """For writers and readers; the database is usable afterwards."""
    with pytest.raises(StorageError, match="UNIQUE"), database.writing() as connection:
        _add(connection, "a")
        _add(connection, "a")
    with pytest.raises(StorageError, match="nothing_such"), database.reading() as connection:
        connection.execute("SELECT * FROM nothing_such")
    with database.writing() as connection:
        _add(connection, "b")
    assert _names(database) == ["b"]


def test_a_reader_sees_one_moment(database: Database) -> None:
    """What is committed meanwhile comes with the next look."""
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM things").fetchone() == (0,)
        with database.writing() as writer:
            _add(writer, "a")
        assert connection.execute("SELECT count(*) FROM things").fetchone() == (0,)
    assert _names(database) == ["a"]


def test_a_reader_cannot_write(database: Database) -> None:
    """Not even by mistake."""
    with pytest.raises(StorageError, match="readonly"), database.reading() as connection:
        _add(connection, "a")
    assert _names(database) == []


def test_threads_take_turns_and_do_not_wait_for_ever(database: Database) -> None:
    """A thread that writes for too long is named."""
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with database.writing() as connection:
            _add(connection, "first")
            entered.set()
            leave.wait(GIVE_UP)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(GIVE_UP)
    with pytest.raises(LockTimeoutError, match="thread"), database.writing():
        pass
    assert _names(database) == []
    leave.set()
    thread.join()
    with database.writing() as connection:
        _add(connection, "second")
    assert _names(database) == ["first", "second"]


def test_many_readers_at_once_are_no_more_than_needed_afterwards(database: Database) -> None:
    """Connections are kept for the next reader, a few of them."""
    barrier = threading.Barrier(12)

    def read() -> None:
        with database.reading() as connection:
            connection.execute("SELECT count(*) FROM things").fetchone()
            barrier.wait(GIVE_UP)

    threads = [threading.Thread(target=read) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(database._readers) <= 4


def test_closing_leaves_one_file(database: Database) -> None:
    """The log is copied back, and closing twice is harmless."""
    with database.writing() as connection:
        _add(connection, "a")
    database.close()
    database.close()
    assert [file.name for file in database.path.parent.iterdir()] == ["some.db"]
    with closing(sqlite3.connect(database.path)) as connection:
        assert connection.execute("SELECT name FROM things").fetchall() == [("a",)]


def test_vacuum_gives_room_back(database: Database) -> None:
    """What was deleted takes none."""
    with database.writing() as connection:
        connection.executemany("INSERT INTO things (name) VALUES (?)", ((str(each) * 500,) for each in range(2000)))
    with database.writing() as connection:
        connection.execute("DELETE FROM things")
    database.shrink_log()
    before = database.path.stat().st_size
    database.vacuum()
    database.shrink_log()
    assert database.path.stat().st_size < before / 5
    assert _names(database) == []


def test_vacuum_that_takes_too_long_changes_nothing(database: Database) -> None:
    """Nothing can be written meanwhile, so a caller may limit it; the next writer finds the file as it was."""
    with database.writing() as connection:
        connection.executemany("INSERT INTO things (name) VALUES (?)", ((str(number),) for number in range(20_000)))
    assert database.vacuum(max_seconds=0.0) is False
    with database.writing() as connection:
        _add(connection, "later")
    assert len(_names(database)) == 20_001
    assert database.vacuum(max_seconds=HANG) is True


def test_shrinking_the_log_does_not_wait_for_a_reader(database: Database) -> None:
    """It is left for later."""
    with closing(sqlite3.connect(database.path)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM things").fetchone()
        with database.writing() as connection:
            _add(connection, "a")
        patient = Database(database.path, application_id=7, wait=HANG)
        with without_waiting():
            patient.shrink_log()
        patient.close()
    database.shrink_log()
    assert Path(f"{database.path}-wal").stat().st_size == 0


def test_another_writer_is_distinguished_from_damage(database: Database) -> None:
    """A lock causes a timeout that says that nothing was written."""
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LockTimeoutError, match="Nothing was written"), database.writing() as connection:
            _add(connection, "a")
    assert _names(database) == []


def test_lists_of_similar_length_share_a_statement() -> None:
    """A long-running process keeps few compiled statements, and a list that was filled up finds the same rows."""
    conditions = [SqliteDialect().one_of("value", range(size)) for size in range(1, 401)]
    assert len({condition.text for condition in conditions}) <= 8 + 13
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 41 AS value UNION ALL SELECT 50")
        text, values = conditions[49]
        assert connection.execute(f"SELECT value FROM t WHERE {text}", values).fetchall() == [(41,)]
