"""Finds exports: downloaded zip archives, and the JSON files of unpacked ones."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from memoranda.importers.reader_protocol import ImportItem
from memoranda.importers.source_files import find_files, item_at, open_source

# `conversations.json`, and in parts `conversations-000.json`; browsers add ` (1)` to a second download.
_CONVERSATIONS = re.compile(r"conversations[^/]*\.json", re.IGNORECASE)
_ZIP = b"PK\x03\x04"
_CHECKED_BYTES = 1024 * 1024
_ENCRYPTED = 1
# Exports shrink to a tenth. What shrinks a hundred times is made to fill memory and disk.
_MAX_RATIO = 100
_HARMLESS_BYTES = 32 * 1024 * 1024
_SUPPORTED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


def find_exports(path: Path | None, own_field: str, other_field: str) -> list[ImportItem]:
    """Return the lists of conversations under `path`, or in the downloads, that have the field `own_field`.

    If `path` is a file, it is returned unless it has the field of the other service, so that reading it reports what
    is wrong with it.
    """
    if path is None:
        return [item for item in _downloads() if _first_field(item, own_field, other_field) == own_field]
    if item_at(path, "") is not None:
        return [item for item in _items(path) if _first_field(item, own_field, other_field) != other_field]
    found = [item for candidate in find_files(path, _may_be_export, "") for item in _items(candidate.file)]
    return [item for item in found if _first_field(item, own_field, other_field) == own_field]


@contextmanager
def open_list(item: ImportItem) -> Iterator[IO[bytes]]:
    """Open a list of conversations, in an archive or not; raises OSError for a damaged archive."""
    try:
        with open_source(item.file) as stream:
            if not _is_zip(stream):
                yield stream
                return
            with zipfile.ZipFile(stream) as archive, archive.open(_member(archive, item)) as member:
                yield member
    except _DAMAGED as error:
        raise OSError(f"the archive is damaged: {error}") from error


def _member(archive: zipfile.ZipFile, item: ImportItem) -> zipfile.ZipInfo:
    found = next((member for member in archive.infolist() if member.filename == item.label), None)
    if found is None:
        raise OSError(f"the archive has no {item.label}")
    if found.flag_bits & _ENCRYPTED or found.compress_type not in _SUPPORTED:
        raise OSError(f"{item.label} is encrypted, or compressed in an unsupported way")
    if found.file_size > max(_HARMLESS_BYTES, _MAX_RATIO * found.compress_size):
        raise OSError(
            f"{item.label} would expand from {found.compress_size:,} to {found.file_size:,} bytes, as no export does; "
            "unpack it yourself if you trust it"
        )
    return found


def _downloads() -> list[ImportItem]:
    """Return the exports in the downloads and in the directories directly below."""
    try:
        downloads = Path.home() / "Downloads"
        directories = [
            downloads,
            *sorted(path for path in downloads.iterdir() if path.is_dir() and not path.is_symlink()),
        ]
    except (OSError, RuntimeError):
        return []
    found: list[ImportItem] = []
    for directory in directories:
        try:
            names = sorted(directory.iterdir())
        except OSError:
            # No permission for this directory.
            continue
        found += [item for file in names if _may_be_export(file) for item in _items(file)]
    return found


def _may_be_export(file: Path) -> bool:
    return file.suffix.lower() == ".zip" or bool(_CONVERSATIONS.fullmatch(file.name))


def _items(file: Path) -> list[ImportItem]:
    """Return the lists of conversations in a file, which is a list itself or an archive of lists."""
    whole = item_at(file, "conversations")
    if whole is None:
        return []
    try:
        with open_source(file) as stream:
            if not _is_zip(stream):
                return [whole]
            with zipfile.ZipFile(stream) as archive:
                members = [
                    member for member in archive.infolist() if _CONVERSATIONS.fullmatch(member.filename.split("/")[-1])
                ]
    except (OSError, ValueError, *_DAMAGED):
        # Reading it will report what is wrong.
        return [whole]
    return [ImportItem(file, member.file_size, whole.modified_at, member.filename) for member in members]


def _first_field(item: ImportItem, *fields: str) -> str | None:
    """Return which of these fields comes first in a list of conversations; None when it has none, or is unreadable."""
    try:
        with open_list(item) as stream:
            start = stream.read(_CHECKED_BYTES)
    except OSError:
        return None
    names = "|".join(map(re.escape, fields)).encode()
    found = re.search(rb'(?<!\\)"(' + names + rb')"\s*:', start)
    return found[1].decode() if found else None


def _is_zip(stream: IO[bytes]) -> bool:
    begins = stream.read(len(_ZIP)) == _ZIP
    stream.seek(0)
    return begins
