"""The format of MEMORY.md and USER.md: entries with a line that holds only `§` between them.

Nothing stands before the first entry or after the last, and there is no trailing newline; other programs read and
write the same files, so the rules here are theirs too. What we write is canonical (line ends are LF, Unicode is
NFC, no blank edges); what others wrote is read leniently and kept as it is.
"""

import re
from collections.abc import Sequence

from memoranda.support.canonical_text import BYTE_ORDER_MARK, digest, unify_newlines

DELIMITER = "\n§\n"
_HANDLE = re.compile(r"entry:([0-9a-f]{8,64})")


def parse(text: str) -> list[str]:
    """The entries of a file's text, in file order, duplicates kept."""
    pieces = unify_newlines(text.removeprefix(BYTE_ORDER_MARK)).split(DELIMITER)
    return [entry for piece in pieces if (entry := piece.strip())]


def serialise(entries: Sequence[str]) -> str:
    """The text of a file that holds these entries."""
    return DELIMITER.join(entries)


def serialise_to_bytes(entries: Sequence[str]) -> bytes:
    """The same in UTF-8; encoding entry by entry is far faster, because most are ASCII and the delimiter is not."""
    return DELIMITER.encode().join(map(str.encode, entries))


def size(entries: Sequence[str]) -> int:
    """What these entries cost against the limit: code points of the whole text, delimiters included."""
    return sum(map(len, entries)) + len(DELIMITER) * max(0, len(entries) - 1)


def is_faithful(text: str, entries: Sequence[str]) -> bool:
    """Whether writing the parsed entries back would change nothing but blank edges, line ends and a byte order mark."""
    return unify_newlines(text.removeprefix(BYTE_ORDER_MARK)).strip() == serialise(entries)


def reads_back_as_itself(entry: str) -> bool:
    """Whether an entry reads back as itself wherever it stands: no line of it ends the entry, no mark begins it."""
    return all(parse(serialise(entries)) == entries for entries in ([entry, "x"], ["x", entry, "x"]))


def handle(entry: str) -> str:
    """A name for an entry that shows nothing of its text; accepted wherever a part of the text is."""
    return "entry:" + digest(entry)[:8]


def digest_prefix(text: str) -> str | None:
    """The digest prefix that a handle names, or None when the text is not a handle."""
    found = _HANDLE.fullmatch(text.strip())
    return found.group(1) if found else None
