"""Reads text files and distinguishes missing, readable, unreadable and undecodable files.

Only the first two may be replaced. A file that cannot be read is never treated as an empty one.
"""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from memoranda.support.durable_files import read_file
from memoranda.support.lazy_dataclass import dataclass

# The fingerprint that a journal records for a missing file.
ABSENT = ""


@dataclass(frozen=True, slots=True)
class MissingFile:
    path: Path

    @property
    def fingerprint(self) -> str:
        return ABSENT


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file with UTF-8 text, line ends as they are."""

    path: Path
    raw: bytes
    text: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    path: Path
    problem: str


@dataclass(frozen=True, slots=True)
class UndecodableFile:
    path: Path
    problem: str


TextFileState = MissingFile | TextFile | UnreadableFile | UndecodableFile


def read_text(path: Path, known: TextFile | None = None) -> TextFileState:
    """The current content of a file; returns `known` itself when the bytes are the same."""
    try:
        raw = read_file(path)
    except FileNotFoundError:
        if path.is_symlink():
            return UnreadableFile(path, "it is a link to a file that does not exist")
        return MissingFile(path)
    except OSError as error:
        return UnreadableFile(path, error.strerror or str(error))
    return decode_text(path, raw, known)


def decode_text(path: Path, raw: bytes, known: TextFile | None = None) -> TextFile | UndecodableFile:
    """The text that these bytes are; returns `known` itself when its bytes are the same."""
    if known is not None and raw == known.raw:
        return known
    try:
        return TextFile(path, raw, raw.decode("utf-8"), fingerprint(raw))
    except UnicodeDecodeError as error:
        return UndecodableFile(path, f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8")


def has_content(path: Path, raw: bytes | None) -> bool:
    """Whether a file has exactly these bytes, or is missing when they are None."""
    try:
        return read_file(path) == raw
    except FileNotFoundError:
        return raw is None


def is_unchanged(state: MissingFile | TextFile) -> bool:
    """Whether a file is still as it was read."""
    return has_content(state.path, state.raw if isinstance(state, TextFile) else None)


def fingerprint(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)


class FrontMatterParts(NamedTuple):
    front_matter: str
    body: str


def split_front_matter(text: str) -> FrontMatterParts | None:
    """The YAML between two lines of three dashes at the start, and the rest; None without such a start.

    The text has LF line ends.
    """
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return None
    return FrontMatterParts(text[opening.end() : closing.start()], text[closing.end() :])
