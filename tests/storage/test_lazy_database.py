"""Databases that are opened when they are first needed."""

import threading
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Column, Schema, Table
from tests.conftest import mode

pytestmark = pytest.mark.slow

SCHEMA = Schema(1, (Table("notes", "Notes.", (Column("id", "numbered"), Column("text", "text"))),), ())


def _file(directory: Path) -> LazyDatabase:
    return LazyDatabase(directory / "notes.db", SCHEMA, 7)


def _write(file: LazyDatabase, times: int = 1) -> None:
    for _ in range(times):
        with file.open().writing() as connection:
            connection.execute("INSERT INTO notes (text) VALUES ('x')")


def _count(file: LazyDatabase) -> int:
    with file.open().reading() as connection:
        return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


def test_nothing_is_created_before_it_is_needed(tmp_path: Path) -> None:
    """Then the file exists with its tables, and is private."""
    file = _file(tmp_path)
    assert not file.exists()
    file.close()
    assert list(tmp_path.iterdir()) == []
    _write(file)
    assert file.exists()
    assert mode(file.path) == 0o600
    file.close()


def test_it_is_opened_once_for_all_threads_and_again_after_it_was_closed(tmp_path: Path) -> None:
    """No caller has to know which one was first."""
    file = _file(tmp_path)
    threads = [threading.Thread(target=_write, args=(file,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.open() is file.open()
    file.close()
    assert _count(file) == 8
    file.close()


def test_a_file_that_is_damaged_is_an_error_each_time(tmp_path: Path) -> None:
    """The file does not change."""
    file = _file(tmp_path)
    file.path.write_bytes(b"not a database at all " * 100)
    for _ in range(2):
        with pytest.raises(CorruptStoreError):
            file.open()
    assert file.path.read_bytes().startswith(b"not a database")
