"""Databases of other programs are read in one consistent state while others write, and no file is added to them."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.importers.source_databases import open_database, rows, tables
from tests.storage.live_databases import live_databases

pytestmark = pytest.mark.slow

_ROWS = 3000


@pytest.fixture
def running(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A program that has its database open, and nothing in its log."""
    (tmp_path / "source").mkdir()
    with closing(sqlite3.connect(_file(tmp_path), isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, words TEXT)")
        connection.executemany("INSERT INTO said (words) VALUES (?)", [("old" * 200,)] * _ROWS)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield connection


def _file(place: Path) -> Path:
    return place / "source" / "a.db"


def _rewrite(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM said WHERE id % 2 = 0")
    connection.execute("UPDATE said SET words = 'new'")
    connection.execute("VACUUM")
    # Busy while another connection reads, which is not an error.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def test_one_state_is_read_while_the_program_rewrites_its_database(tmp_path: Path, running: sqlite3.Connection) -> None:
    """Also when its log was empty at first."""
    found = []
    with open_database(_file(tmp_path)) as connection:
        for number, (words,) in enumerate(rows(connection, "SELECT words FROM said ORDER BY id")):
            found.append(words)
            if number == 300:
                _rewrite(running)
    assert found == ["old" * 200] * _ROWS


def test_a_program_that_begins_to_write_meanwhile_is_noticed(tmp_path: Path, running: sqlite3.Connection) -> None:
    """What was read of a database that had been closed may be of two states then, and it is read again."""
    running.close()
    assert os.listdir(tmp_path / "source") == ["a.db"]
    with pytest.raises(OSError, match="changed while it was read"), open_database(_file(tmp_path)) as connection:
        found = rows(connection, "SELECT words FROM said ORDER BY id")
        next(found)
        with closing(sqlite3.connect(_file(tmp_path), isolation_level=None)) as writer:
            writer.execute("UPDATE said SET words = 'new' WHERE id = 2000")
        list(found)


@pytest.mark.parametrize("mode", [0o700, 0o500])
def test_a_copy_with_its_log_is_read_and_not_changed(tmp_path: Path, running: sqlite3.Connection, mode: int) -> None:
    """A backup has no file for locks; none is made there, also where none could be."""
    running.execute("INSERT INTO said (words) VALUES ('last')")
    backup = tmp_path / "backup"
    backup.mkdir()
    for name in ("a.db", "a.db-wal"):
        shutil.copy(tmp_path / "source" / name, backup / name)
    backup.chmod(mode)
    with open_database(backup / "a.db") as connection:
        assert connection.execute("SELECT count(*) FROM said").fetchone() == (_ROWS + 1,)
    assert sorted(os.listdir(backup)) == ["a.db", "a.db-wal"]
    backup.chmod(0o700)


def test_a_closed_database_is_read_and_no_file_is_created(tmp_path: Path, running: sqlite3.Connection) -> None:
    """Even if its name has characters with a meaning in a URI."""
    running.close()
    odd = _file(tmp_path).rename(tmp_path / "source" / "a?b#c%20.db")
    with open_database(odd) as connection:
        assert connection.execute("SELECT count(*) FROM said").fetchone() == (_ROWS,)
    assert os.listdir(tmp_path / "source") == [odd.name]


def test_a_database_without_a_log_does_not_block_its_writer(tmp_path: Path) -> None:
    """It is locked only while a query runs."""
    (tmp_path / "source").mkdir()
    with closing(sqlite3.connect(_file(tmp_path), isolation_level=None, timeout=0)) as writer:
        writer.execute("CREATE TABLE said (words TEXT)")
        with open_database(_file(tmp_path)) as connection:
            assert connection.execute("SELECT count(*) FROM said").fetchone() == (0,)
            writer.execute("INSERT INTO said VALUES ('x')")
            assert connection.execute("SELECT count(*) FROM said").fetchone() == (1,)


def test_reading_a_database_that_this_process_has_open_keeps_its_locks(tmp_path: Path) -> None:
    """A program may import from a database that it uses itself; another process must not delete its log then."""
    file = tmp_path / "program.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE notes (text)")
    with live_databases(tmp_path) as databases:
        with open_database(file) as connection:
            assert tables(connection) == {"notes": {"text"}}
        assert not databases.problems()


def test_a_log_that_links_out_of_the_folder_is_not_read(tmp_path: Path, running: sqlite3.Connection) -> None:
    """Someone else may have written the folder; the log of a new database contains all of it."""
    shared = tmp_path / "shared" / "a.db"
    shared.parent.mkdir()
    with closing(sqlite3.connect(shared)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    running.execute("VACUUM")
    shared.with_name("a.db-wal").symlink_to(_file(tmp_path).with_name("a.db-wal"))
    with pytest.raises(OSError, match="leads out of its folder"), open_database(shared):
        pass
