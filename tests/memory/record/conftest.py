"""A new session store for every test, and ways to inspect its file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memoranda.memory.record.store import SessionStore, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SessionStore]:
    with open_store(path) as opened:
        yield opened


@contextmanager
def quick_directory() -> Iterator[Path]:
    """A directory in memory, if the system has one, for tests that are not about durability."""
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)


def ask(path: Path, sql: str, values: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    """What another program reads from the file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, values)]


def file_bytes(path: Path) -> bytes:
    """Everything that the store has written, its log included."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()) if not file.name.endswith("-shm"))
