"""Reads a memory file and parses its entries; see `memoranda.support.text_file` for the four states of a file.

Only missing and readable files may be replaced. A file that cannot be read is never treated as an empty one.
"""

from dataclasses import dataclass
from pathlib import Path

from memoranda.memory.curated.entry_format import parse, reads_back_as_itself, serialise
from memoranda.support import text_file
from memoranda.support.text_file import ABSENT, UndecodableFile, UnreadableFile, fingerprint

__all__ = ["ABSENT", "UndecodableFile", "UnreadableFile", "fingerprint"]


@dataclass(frozen=True, slots=True)
class MissingMemoryFile(text_file.MissingFile):
    @property
    def entries(self) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class ReadableMemoryFile(text_file.TextFile):
    entries: list[str]

    @property
    def is_canonical(self) -> bool:
        """Whether writing the same entries again would change at most blank edges."""
        return self.text.strip() == serialise(self.entries)

    def is_rewritable(self, limit: int) -> bool:
        """Whether rewriting keeps every entry, and no entry is larger than a whole file may be.

        Blanks around entries and empty entries, which a person's editor leaves, do not count: they are in the backup
        that is made before the file is rewritten. A person has to look at a file that is not rewritable.
        """
        return all(len(entry) <= limit and reads_back_as_itself(entry) for entry in self.entries)


WritableState = MissingMemoryFile | ReadableMemoryFile
MemoryFileState = WritableState | UnreadableFile | UndecodableFile


def read(path: Path, known: ReadableMemoryFile | None = None) -> MemoryFileState:
    """The current content of a memory file; returns `known` itself when the bytes are the same."""
    state = text_file.read_text(path, known)
    if isinstance(state, text_file.MissingFile):
        return MissingMemoryFile(path)
    return state if isinstance(state, UnreadableFile) else _parse(state)


def from_bytes(path: Path, raw: bytes, known: ReadableMemoryFile | None = None) -> MemoryFileState:
    """The content of a memory file that is stored elsewhere; returns `known` itself when the bytes are the same."""
    return _parse(text_file.decode_text(path, raw, known))


def _parse(state: text_file.TextFile | UndecodableFile) -> ReadableMemoryFile | UndecodableFile:
    if isinstance(state, ReadableMemoryFile | UndecodableFile):
        return state
    return ReadableMemoryFile(state.path, state.raw, state.text, state.fingerprint, parse(state.text))
