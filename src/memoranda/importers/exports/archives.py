"""Finds exports: zip archives as they were downloaded, and the JSON files in them when somebody has unpacked them."""

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
_BEGINNING = 1024 * 1024
_ENCRYPTED = 1
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UNUSABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


def find_exports(where: Path | None, ours: str, others: str) -> list[ImportItem]:
    """The lists of conversations under `where`, or among the downloads, that have the field `ours` in them.

    A file that is asked for by name is taken unless it is another service's, so that what is wrong with it is said.
    """
    if where is None:
        return [item for item in _downloads() if _field(item, ours, others) == ours]
    if item_at(where, "") is not None:
        return [item for item in _items(where) if _field(item, ours, others) != others]
    found = [item for each in find_files(where, _may_hold, "") for item in _items(each.file)]
    return [item for item in found if _field(item, ours, others) == ours]


@contextmanager
def opened(item: ImportItem) -> Iterator[IO[bytes]]:
    """The bytes of a list of conversations, wherever it lies; whatever is wrong with an archive is an OSError."""
    try:
        with open_source(item.file) as stream:
            if not _is_zip(stream):
                yield stream
                return
            with zipfile.ZipFile(stream) as archive, archive.open(_member(archive, item)) as member:
                yield member
    except _UNUSABLE as error:
        raise OSError(f"the archive is damaged: {error}") from error


def _member(archive: zipfile.ZipFile, item: ImportItem) -> zipfile.ZipInfo:
    found = next((each for each in archive.infolist() if each.filename == item.label), None)
    if found is None:
        raise OSError(f"the archive has no {item.label}")
    if found.flag_bits & _ENCRYPTED or found.compress_type not in _PACKED:
        raise OSError(f"{item.label} is encrypted, or packed in an unusual way")
    return found


def _downloads() -> list[ImportItem]:
    """What lies among the downloads, and in the folders there, without going deeper."""
    try:
        downloads = Path.home() / "Downloads"
        places = [downloads, *sorted(each for each in downloads.iterdir() if each.is_dir() and not each.is_symlink())]
    except (OSError, RuntimeError):
        return []
    found: list[ImportItem] = []
    for place in places:
        try:
            names = sorted(place.iterdir())
        except OSError:
            # A folder that its owner keeps closed.
            continue
        found += [item for file in names if _may_hold(file) for item in _items(file)]
    return found


def _may_hold(file: Path) -> bool:
    return file.suffix.lower() == ".zip" or bool(_CONVERSATIONS.fullmatch(file.name))


def _holds_conversations(member: str) -> bool:
    return bool(_CONVERSATIONS.fullmatch(member.rpartition("/")[2]))


def _items(file: Path) -> list[ImportItem]:
    """The lists of conversations that a file is or holds."""
    whole = item_at(file, "conversations")
    if whole is None:
        return []
    try:
        with open_source(file) as stream:
            if not _is_zip(stream):
                return [whole]
            with zipfile.ZipFile(stream) as archive:
                members = [
                    each for each in archive.infolist() if _CONVERSATIONS.fullmatch(each.filename.split("/")[-1])
                ]
    except (OSError, ValueError, *_UNUSABLE):
        # Reading it will say what is wrong.
        return [whole]
    return [ImportItem(file, each.file_size, whole.modified_at, each.filename) for each in members]


def _field(item: ImportItem, *fields: str) -> str | None:
    """Which of these fields a list of conversations has first; None when it has none, or cannot be read."""
    try:
        with opened(item) as stream:
            beginning = stream.read(_BEGINNING)
    except OSError:
        return None
    names = "|".join(map(re.escape, fields)).encode()
    found = re.search(rb'(?<!\\)"(' + names + rb')"\s*:', beginning)
    return found[1].decode() if found else None


def _is_zip(stream: IO[bytes]) -> bool:
    begins = stream.read(len(_ZIP)) == _ZIP
    stream.seek(0)
    return begins
