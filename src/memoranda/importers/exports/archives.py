"""Finds exports, which are zip archives or the JSON files of unpacked ones, and reads their list of conversations.

An export is a single list of all conversations, often on one line, and can be gigabytes large. Only the element that is
being read is in memory. A broken element is reported and skipped by its brackets, so that the others are read.
"""

import codecs
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_files import find_files, item_at, open_source
from memoranda.support.lazy_dataclass import dataclass

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
# The largest element, in characters; a conversation of several years has a tenth of that.
MAX_ELEMENT_CHARS = 128 * 1024 * 1024
_CHUNK = 1024 * 1024
# An error this close to the end of the buffer may only mean that more must be read.
_NEAR_END = 64
_BLANK = re.compile(r"[ \t\r\n]*")
_STRUCTURAL = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_WRAPPERS = ("conversations", "chats", "data")


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


@dataclass(frozen=True, slots=True)
class ArrayElement:
    """One element of the list, its number counted from one, and the line on which it starts."""

    value: Any
    number: int
    line: int


def read_elements(stream: IO[bytes], file: Path) -> Iterator[ArrayElement | Problem]:
    """Yield every element of the list in a stream; a single object is a list of one, or contains the list."""
    text = _Text(stream)
    first = text.next_character()
    if first == "[":
        text.advance(text.at + 1)
        yield from _members(text, file)
    elif first == "{":
        yield from _single(text, file)
    else:
        yield Problem(file, text.line, "not a JSON list" if first else "the file is empty")


def _single(text: "_Text", file: Path) -> Iterator[ArrayElement | Problem]:
    line = text.line
    value = text.value()
    if isinstance(value, _BrokenValue):
        yield Problem(file, line, f"not JSON ({value.why})")
        return
    inner = next((value[name] for name in _WRAPPERS if isinstance(value.get(name), list)), [value])
    for number, element in enumerate(inner, start=1):
        yield ArrayElement(element, number, line)
    yield from _check_end(text, file)


def _members(text: "_Text", file: Path) -> Iterator[ArrayElement | Problem]:
    number = 0
    while (character := text.next_character()) != "]":
        if not character:
            yield Problem(file, text.line, f"the file ends after element {number} of the list, before the list does")
            return
        if character == ",":
            text.advance(text.at + 1)
            continue
        number += 1
        line = text.line
        value = text.value()
        if isinstance(value, _BrokenValue):
            yield Problem(file, line, f"element {number} of the list {value.why}")
        else:
            yield ArrayElement(value, number, line)
    text.advance(text.at + 1)
    yield from _check_end(text, file)


def _check_end(text: "_Text", file: Path) -> Iterator[Problem]:
    if text.next_character():
        yield Problem(file, text.line, "the text after the end of the JSON was not read")


@dataclass(frozen=True, slots=True)
class _BrokenValue:
    why: str


class _Text:
    """A stream as text; only the needed part is in memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        # Bytes that are not UTF-8 become surrogates, which the record can store.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text = ""
        self._ended = False
        self.at = 0
        self.line = 1

    def advance(self, to: int) -> None:
        self.line += self._text.count("\n", self.at, to)
        self.at = to

    def next_character(self) -> str:
        """Return the next character that is not blank; "" at the end."""
        while True:
            found = _BLANK.match(self._text, self.at)
            self.advance(found.end() if found else self.at)
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._more(_CHUNK):
                return ""

    def value(self) -> Any:
        """Return the value that starts here, or why it cannot be read; moves past it either way."""
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self.at)
            except (ValueError, RecursionError) as error:
                if not self._may_be_incomplete(error):
                    return self._skip_value(_BrokenValue(f"is not JSON ({str(error)[:100]})"))
            else:
                if isinstance(value, dict | list | str) or end < len(self._text) or self._ended:
                    self.advance(end)
                    return value
            if len(self._text) - self.at > MAX_ELEMENT_CHARS:
                return self._skip_value(_BrokenValue(f"has more than {MAX_ELEMENT_CHARS // 1024 // 1024} MB"))
            # Twice as much each time, so that a large element is not parsed too often.
            if not self._more(max(_CHUNK, len(self._text) - self.at)):
                self._ended = True

    def _may_be_incomplete(self, error: Exception) -> bool:
        if self._ended or not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _NEAR_END

    def _more(self, size: int) -> bool:
        """Read more, and drop the text before the position; False at the end."""
        raw = self._stream.read(size)
        more = self._decoder.decode(raw, final=not raw)
        self._text = self._text[self.at :] + more
        self.at = 0
        return bool(raw) or bool(more)

    def _skip_value(self, broken: _BrokenValue) -> _BrokenValue:
        """Move past a value that cannot be read, by its brackets and strings."""
        depth = 0
        while character := self._find(_STRUCTURAL, search=True):
            if depth == 0 and character in ("]", ","):
                # It was not an object; here the list ends or continues.
                return broken
            self.advance(self.at + 1)
            if character == '"':
                if not self._find(_IN_STRING, search=False):
                    break
            elif character != ",":
                depth += 1 if character in "[{" else -1
                if depth <= 0:
                    return broken
        return _BrokenValue(f"{broken.why}; nothing after it could be read")

    def _find(self, pattern: re.Pattern[str], *, search: bool) -> str:
        """Move to the next match (`search`) or past a match at the position; return what was found."""
        while True:
            found = (pattern.search if search else pattern.match)(self._text, self.at)
            if found:
                self.advance(found.start() if search else found.end())
                return found[0]
            if search:
                self.advance(len(self._text))
            if len(self._text) - self.at > MAX_ELEMENT_CHARS or not self._more(max(_CHUNK, len(self._text) - self.at)):
                return ""
