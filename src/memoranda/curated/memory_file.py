"""Reading a memory file: missing, readable, unreadable and undecodable are four different things.

Only the first two may ever be written over. A file that could not be read is never taken for an empty one.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from memoranda.curated.entries import is_faithful, keeps_apart, parse, serialise
from memoranda.support.files import read_file

# What the journal notes as the content of a file that is not there.
ABSENT = ""


@dataclass(frozen=True, slots=True)
class Missing:
    path: Path

    @property
    def entries(self) -> list[str]:
        return []

    @property
    def fingerprint(self) -> str:
        return ABSENT


@dataclass(frozen=True, slots=True)
class Readable:
    path: Path
    raw: bytes
    text: str
    entries: list[str]
    fingerprint: str

    @property
    def is_canonical(self) -> bool:
        """Whether writing the same entries again would change at most blank edges."""
        return self.text.strip() == serialise(self.entries)

    def is_odd(self, limit: int) -> bool:
        """Whether rewriting would alter more than edges and line ends, or an entry is larger than a whole file may be.

        Nobody who writes through Memoranda makes such a file, so a person has to look at it.
        """
        if not is_faithful(self.text, self.entries):
            return True
        return any(len(entry) > limit or not keeps_apart(entry) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Unreadable:
    path: Path
    problem: str


@dataclass(frozen=True, slots=True)
class Undecodable:
    path: Path
    problem: str


FileState = Missing | Readable | Unreadable | Undecodable


def read(path: Path, known: Readable | None = None) -> FileState:
    """What a memory file holds at this moment; when that is just what is `known`, it need not be parsed again."""
    try:
        raw = read_file(path)
    except FileNotFoundError:
        if path.is_symlink():
            return Unreadable(path, "it is a link to a file that is not there")
        return Missing(path)
    except OSError as error:
        return Unreadable(path, error.strerror or str(error))
    if known is not None and raw == known.raw:
        return known
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return Undecodable(path, f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8")
    return Readable(path, raw, text, parse(text), fingerprint(raw))


def still_holds(state: Missing | Readable) -> bool:
    """Whether the file is still what it was when it was read."""
    try:
        raw = read_file(state.path)
    except FileNotFoundError:
        return isinstance(state, Missing)
    return isinstance(state, Readable) and raw == state.raw


def fingerprint(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
