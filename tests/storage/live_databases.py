"""Connections to every database of a home, and another process that writes to them: nobody may break the other.

SQLite's locks belong to the process. If any part of a process opens a database file itself and closes it, the process
loses its locks; the next process that closes the database then deletes the log that this one still writes to.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_COMPANIONS = ("-wal", "-shm", "-journal")
_DELETED = " (deleted)"
# Closing deletes the log, unless another process has a lock on the file.
_WRITER = """
import sqlite3, sys
for line in sys.stdin:
    number, *paths = line.rstrip("\\n").split("\\t")
    for path in paths:
        connection = sqlite3.connect(path, timeout=30, isolation_level=None)
        connection.execute(f"PRAGMA user_version={number}")
        connection.close()
    print(number, flush=True)
"""


class LiveDatabases:
    """The databases of a home, each open in this process, beside another process that opens, writes and closes."""

    def __init__(self, root: Path, writer: "subprocess.Popen[str]") -> None:
        self._root = root
        self._writer = writer
        self._number = 0
        self._open: dict[Path, sqlite3.Connection] = {}

    def names(self) -> set[str]:
        """The names of the open databases below the home."""
        return {path.relative_to(self._root).as_posix() for path in self._open}

    def problems(self) -> list[str]:
        """What is wrong after the other process has written to every database; also opens those that are new."""
        for path in [path for path in self._open if not path.exists()]:
            # A generation of the search index has been replaced by another one.
            self._open.pop(path).close()
        self._number += 1
        held = [str(path) for path in self._open]
        assert self._writer.stdin is not None and self._writer.stdout is not None
        self._writer.stdin.write("\t".join([str(self._number), *held]) + "\n")
        self._writer.stdin.flush()
        assert self._writer.stdout.readline().strip() == str(self._number)
        found = [f"{path} is open, but deleted" for path in self._deleted_files()]
        for path, connection in self._open.items():
            (seen,) = connection.execute("PRAGMA user_version").fetchone()
            if seen != self._number:
                found.append(f"what another process wrote to {path} is not seen")
        for path in _databases(self._root):
            if path not in self._open:
                self._open[path] = connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return found

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()

    def _deleted_files(self) -> Iterator[str]:
        """The files of databases that this process has open and that are deleted, although the database exists."""
        for number in os.listdir("/proc/self/fd"):
            try:
                path = os.readlink(f"/proc/self/fd/{number}")
            except FileNotFoundError:
                continue
            name = path.removesuffix(_DELETED)
            for companion in _COMPANIONS:
                name = name.removesuffix(companion)
            if path.endswith(_DELETED) and name.startswith(str(self._root)) and os.path.exists(name):
                yield path


@contextmanager
def live_databases(root: Path) -> Iterator[LiveDatabases]:
    """Open every database of a home, and start the other process."""
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        databases = LiveDatabases(root, writer)
        try:
            assert not databases.problems()
            yield databases
        finally:
            databases.close()
            assert writer.stdin is not None
            writer.stdin.close()


def _databases(root: Path) -> Iterator[Path]:
    """The files with a name of a database; copies of damaged ones and unfinished ones are none."""
    for path in root.rglob("*.db*"):
        suffix = path.suffix.removeprefix(".")
        if (suffix == "db" or suffix.isdecimal()) and not path.name.startswith(".") and path.is_file():
            yield path
