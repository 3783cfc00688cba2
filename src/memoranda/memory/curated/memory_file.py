"""MEMORY.md and USER.md: their format, reading them, and byte-exact private copies of them.

Entries are separated by a line that contains only `§`. Nothing precedes the first entry or follows the last, and there
is no trailing newline. Other programs read and write the same files by the same rules. Memoranda writes canonical files
(LF line ends, NFC, no blank edges), reads the files of other programs leniently, and leaves their text as it is.

`memoranda.support.text_file` describes the four states of a file. Only missing and readable files may be replaced, and
a backup is made before a write could lose something. A file that cannot be read is never treated as an empty one.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from memoranda.storage.files.named_texts import NamedTexts
from memoranda.support import text_file
from memoranda.support.canonical_text import BYTE_ORDER_MARK, digest, unify_newlines
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_file import UndecodableFile, UnreadableFile

ENTRY_DELIMITER = "\n§\n"
_DELIMITER_LINE = re.compile(r"^§$", re.MULTILINE)
_HANDLE = re.compile(r"entry:([0-9a-f]{8,64})")

MAX_BACKUPS_PER_FILE = 10
# The number at the end distinguishes these backups from those of Hermes, which stay untouched.
_BACKUP_NAME = re.compile(r"\.bak\.(\d+)-(\d+)$")


def parse(text: str) -> list[str]:
    """The entries of a file's text, in file order, duplicates kept.

    A `§` line may also be the first or the last line, or follow another one: people leave such empty entries behind.
    """
    pieces = _DELIMITER_LINE.split(unify_newlines(text.removeprefix(BYTE_ORDER_MARK)))
    return [entry for piece in pieces if (entry := piece.strip())]


def serialise(entries: Sequence[str]) -> str:
    return ENTRY_DELIMITER.join(entries)


def serialise_to_bytes(entries: Sequence[str]) -> bytes:
    """The same in UTF-8. Encoding entry by entry is much faster, because most are ASCII and the delimiter is not."""
    return ENTRY_DELIMITER.encode().join(map(str.encode, entries))


def size(entries: Sequence[str]) -> int:
    """How much of the limit these entries use: code points of the whole text, delimiters included."""
    return sum(map(len, entries)) + len(ENTRY_DELIMITER) * max(0, len(entries) - 1)


def reads_back_as_itself(entry: str) -> bool:
    """Whether an entry survives writing and reading: no line of it is a delimiter, and no byte order mark starts it."""
    return all(parse(serialise(entries)) == entries for entries in ([entry, "x"], ["x", entry, "x"]))


def handle(entry: str) -> str:
    """An id for an entry that reveals nothing of its text; tools accept it wherever they accept a part of the text."""
    return "entry:" + digest(entry)[:8]


def digest_prefix(text: str) -> str | None:
    """The digest prefix that a handle names, or None when the text is not a handle."""
    found = _HANDLE.fullmatch(text.strip())
    return found.group(1) if found else None


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


def list_backups(backups: NamedTexts, file_name: str) -> list[str]:
    """The names of the backups of a file, oldest first."""
    found = [
        (stamp, name) for name in backups.names() if (stamp := _backup_stamp(name)) and name.startswith(f"{file_name}.")
    ]
    return [name for _, name in sorted(found)]


def store_backup(backups: NamedTexts, file_name: str, state: ReadableMemoryFile) -> Path:
    """Copy a file as it was read, unless an equal backup exists; older backups are pruned. Needs the lock."""
    existing = list_backups(backups, file_name)
    for name in existing:
        if backups.read(name) == state.raw:
            return backups.path(name)
    backup = _next_backup_name(file_name, existing)
    backups.write(backup, state.raw)
    for surplus in existing[: max(0, len(existing) + 1 - MAX_BACKUPS_PER_FILE)]:
        backups.remove(surplus)
    return backups.path(backup)


def _next_backup_name(file_name: str, existing: list[str]) -> str:
    """A name that sorts after all existing ones, even within the same second."""
    seconds, number = int(time.time()), 0
    if existing and (newest := _backup_stamp(existing[-1])) and newest >= (seconds, 0):
        seconds, number = newest[0], newest[1] + 1
    return f"{file_name}.bak.{seconds}-{number}"


def _backup_stamp(name: str) -> tuple[int, int] | None:
    found = _BACKUP_NAME.search(name)
    return (int(found.group(1)), int(found.group(2))) if found else None
