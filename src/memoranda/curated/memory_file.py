"""Reading a memory file: missing, readable, unreadable and undecodable are four different things.

Only the first two may ever be written over. A file that could not be read is never taken for an empty one.
"""

from dataclasses import dataclass
from pathlib import Path

from memoranda.curated.entries import is_faithful, keeps_apart, parse, serialise
from memoranda.support import text_file
from memoranda.support.text_file import ABSENT, Undecodable, Unreadable, fingerprint

__all__ = ["ABSENT", "Undecodable", "Unreadable", "fingerprint"]


@dataclass(frozen=True, slots=True)
class Missing(text_file.Missing):
    @property
    def entries(self) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class Readable(text_file.Text):
    entries: list[str]

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


FileState = Missing | Readable | Unreadable | Undecodable


def read(path: Path, known: Readable | None = None) -> FileState:
    """What a memory file holds at this moment; when that is just what is `known`, it need not be parsed again."""
    state = text_file.read_text(path, known)
    if isinstance(state, text_file.Missing):
        return Missing(path)
    if isinstance(state, Readable | Unreadable | Undecodable):
        return state
    return Readable(path, state.raw, state.text, state.fingerprint, parse(state.text))


def still_holds(state: Missing | Readable) -> bool:
    """Whether the file is still what it was when it was read."""
    return text_file.holds(state.path, state.raw if isinstance(state, Readable) else None)
