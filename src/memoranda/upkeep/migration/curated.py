"""Copies the curated memory of one user between files and tables: texts with their times, and the journal."""

import os
from collections.abc import Iterator
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.memory.curated.settings import FILE_NAMES
from memoranda.memory.curated.storage import FileStorage
from memoranda.memory.curated.table_storage import TableStorage, TableTexts
from memoranda.storage.files.journal_file import LineFile
from memoranda.storage.files.named_texts import NamedFiles
from memoranda.support.durable_files import make_private_directory

_SINGLE = ("allowed.json", "forgotten.json")


def copy_to_tables(directory: Path, target: TableStorage) -> None:
    """Store the files of a directory in tables, in one transaction; what the tables had is replaced."""
    files = FileStorage(directory, 10.0)
    with target.exclusive():
        target.lines.replace(_lines(directory))
        for collection, texts in _collections(files, target):
            for name in texts.names():
                texts.remove(name)
            for name in collection.names():
                texts.write(name, collection.read(name), collection.path(name).stat().st_mtime)


def copy_to_files(source: TableStorage, directory: Path) -> None:
    """Write the rows of a user into a directory, with their times."""
    files = FileStorage(directory, 10.0)
    make_private_directory(directory)
    lines = source.lines.read()
    if lines:
        LineFile(directory / "journal.jsonl").replace(lines)
    for collection, texts in _collections(files, source):
        for name in texts.names():
            content, modified = texts.read_dated(name)
            collection.write(name, content)
            os.utime(collection.path(name), (modified, modified))


def compare(directory: Path, tables: TableStorage) -> None:
    """Raise StorageError unless files and tables have the same texts, byte by byte."""
    differing = [] if _lines(directory) == tables.lines.read() else ["journal.jsonl"]
    for collection, texts in _collections(FileStorage(directory, 10.0), tables):
        names = {*collection.names(), *texts.names()}
        differing += [name for name in names if _read(collection, name) != _read(texts, name)]
    if differing:
        raise StorageError(f"{directory} and its copy differ in {', '.join(sorted(differing))}.")


def _lines(directory: Path) -> list[bytes]:
    try:
        lines = (directory / "journal.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return lines if lines[-1] else lines[:-1]


def _collections(files: FileStorage, tables: TableStorage) -> Iterator[tuple[NamedFiles, TableTexts]]:
    directory = files.directory
    yield NamedFiles(directory, *FILE_NAMES.values()), tables.texts
    yield files.proposals, tables.proposals
    yield files.backups, tables.backups
    for name, document in zip(_SINGLE, (tables.allowances, tables.forgotten), strict=True):
        yield NamedFiles(directory, name), document.texts


def _read(texts: NamedFiles | TableTexts, name: str) -> bytes | None:
    try:
        return texts.read(name)
    except FileNotFoundError:
        return None
