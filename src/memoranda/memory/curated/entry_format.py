"""The format of MEMORY.md and USER.md: entries separated by a line that contains only `§`.

Nothing precedes the first entry or follows the last, and there is no trailing newline. Other programs read and write
the same files by the same rules. Memoranda writes canonical files (LF line ends, NFC, no blank edges), reads the files
of other programs leniently, and leaves their text as it is.
"""

import re
from collections.abc import Sequence

from memoranda.support.canonical_text import BYTE_ORDER_MARK, digest, unify_newlines

ENTRY_DELIMITER = "\n§\n"
_DELIMITER_LINE = re.compile(r"^§$", re.MULTILINE)
_HANDLE = re.compile(r"entry:([0-9a-f]{8,64})")


def parse(text: str) -> list[str]:
    """The entries of a file's text, in file order, duplicates kept.

    A `§` line may also be the first or the last line, or follow another one: people leave such empty entries behind.
    """
    pieces = _DELIMITER_LINE.split(unify_newlines(text.removeprefix(BYTE_ORDER_MARK)))
    return [entry for piece in pieces if (entry := piece.strip())]


def serialise(entries: Sequence[str]) -> str:
    """The text of a file with these entries."""
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
