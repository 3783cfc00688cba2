"""The files of an index and their names."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.search.index import generations as generation_files
from memoranda.search.index.generations import (
    create_generation,
    generations,
    is_damage,
    next_generation,
    remove,
    remove_older,
)

pytestmark = pytest.mark.slow


def _make(path: Path) -> Path:
    file = next_generation(path)
    with create_generation(file) as connection:
        connection.execute("CREATE TABLE t (x)")
    return file


def test_every_file_has_a_newer_name_than_those_before(tmp_path: Path) -> None:
    """Even when the clock goes backwards."""
    path = tmp_path / "index.db"
    assert generations(path) == generations(tmp_path / "nowhere" / "index.db") == []
    future = path.with_name(f"index.db.{time.time_ns() + 10**15}")
    future.touch()
    newer = _make(path)
    assert generations(path) == [newer, future]
    remove_older(path, newer)
    assert generations(path) == [newer]
    assert next_generation(path) != newer


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """Only names of ours count, and only what is long abandoned is cleared away."""
    path = tmp_path / "index.db"
    others = [
        tmp_path / name for name in ("index.db", "other.db.1-wal", "index.db.x", "other.db.1", "index.db.2.building")
    ]
    for other in others:
        other.touch()
    abandoned = tmp_path / "index.db.1.building"
    abandoned.touch()
    os.utime(abandoned, (1, 1))
    left_behind = tmp_path / "index.db.1-wal"
    left_behind.touch()
    made = _make(path)
    remove_older(path, made)
    assert generations(path) == [made]
    assert all(other.exists() for other in others)
    assert not abandoned.exists()
    assert not left_behind.exists()


def test_a_file_that_could_not_be_finished_leaves_nothing(tmp_path: Path) -> None:
    """No process ever sees half an index."""
    file = next_generation(tmp_path / "index.db")
    with pytest.raises(RuntimeError), create_generation(file):
        assert not file.exists()
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_removed_with_its_companions(tmp_path: Path) -> None:
    """No other process may find a log of it."""
    file = _make(tmp_path / "index.db")
    Path(f"{file}-wal").touch()
    Path(f"{file}-shm").touch()
    remove(file)
    remove(file)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("supported", "journal"), [(True, "wal"), (False, "delete")])
def test_an_index_has_a_log_where_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supported: bool, journal: str
) -> None:
    """On a file system without shared memory it has none; one that was built with a log there is built again."""
    monkeypatch.setattr(generation_files, "supports_log", lambda file: supported)
    file = next_generation(tmp_path / "state.index.db")
    with create_generation(file) as connection:
        connection.execute("CREATE TABLE t (x)")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == (journal,)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMMAP
    assert is_damage(error)
