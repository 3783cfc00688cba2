"""Backs up a home before a migration, in one zip file that only its owner can read."""

import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from memoranda.support.durable_files import (
    PRIVATE_FILE,
    discard_staged,
    make_private_directory,
    publish,
    staged_path,
    sync,
)

DIRECTORY = "backups"
_PREFIX = "before-import-"
_MAX_BACKUPS = 5
# Derived data, running processes and copies; and other profiles, which a migration does not change.
_EXCLUDED = (DIRECTORY, "migration", "imports", "profiles", "logs", "run", "cache")
_DERIVED = "state.index.db"
_DATABASE = b"SQLite format 3\0"


def back_up(root: Path) -> Path | None:
    """Copy everything that is not derived, and keep the newest five backups; None when the home is empty."""
    files = list(_files(root))
    if not files:
        return None
    directory = root / DIRECTORY
    make_private_directory(directory)
    for leftover in directory.glob(f".{_PREFIX}*.tmp"):
        leftover.unlink()
    target = directory / f"{_PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%S%f}.zip"
    try:
        _write(Path(staged_path(target)), root, files)
        publish(target)
    except BaseException:
        discard_staged(target)
        raise
    for old in sorted(directory.glob(f"{_PREFIX}*.zip"))[:-_MAX_BACKUPS]:
        old.unlink()
    return target


def _write(staged: Path, root: Path, files: list[Path]) -> None:
    descriptor = os.open(staged, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    with open(descriptor, "w+b") as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as archive:
            for file in files:
                name = file.relative_to(root).as_posix()
                if _is_database(file):
                    _add_database(archive, file, name, staged.with_name(f".{_PREFIX}database.tmp"))
                else:
                    archive.write(file, name)
        stream.flush()
        sync(stream.fileno())


def _add_database(archive: zipfile.ZipFile, file: Path, name: str, copy: Path) -> None:
    """Add a database through SQLite's backup, so that the copy is consistent while other processes write."""
    try:
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        archive.write(copy, name)
    except sqlite3.Error as error:
        raise OSError(0, f"cannot be copied: {error}", str(file)) from error
    finally:
        copy.unlink(missing_ok=True)


def _files(root: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(root):
        directory = Path(parent)
        folders[:] = sorted(name for name in folders if directory != root or name not in _EXCLUDED)
        for name in sorted(names):
            file = directory / name
            is_temporary = name.endswith(("-wal", "-shm", ".tmp", ".lock")) or name.startswith(_DERIVED)
            if not is_temporary and file.is_file() and not file.is_symlink():
                yield file


def _is_database(file: Path) -> bool:
    with open(file, "rb") as stream:
        return stream.read(len(_DATABASE)) == _DATABASE
