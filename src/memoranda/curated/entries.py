"""The format of MEMORY.md and USER.md: entries with a line that holds only `§` between them.

Nothing stands before the first entry or after the last, and there is no trailing newline; other programs read and
write the same files, so the rules here are theirs too. What we write is canonical (line ends are LF, Unicode is
NFC, no blank edges); what others wrote is read leniently and kept as it is.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence

DELIMITER = "\n§\n"
_BYTE_ORDER_MARK = "\ufeff"
_HANDLE = re.compile(r"entry:([0-9a-f]{8,64})")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(text: str) -> list[str]:
    """The entries of a file's text, in file order, duplicates kept."""
    pieces = unify_newlines(text.removeprefix(_BYTE_ORDER_MARK)).split(DELIMITER)
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
    return unify_newlines(text.removeprefix(_BYTE_ORDER_MARK)).strip() == serialise(entries)


def keeps_apart(entry: str) -> bool:
    """Whether an entry reads back as itself wherever it stands: no line of it ends the entry, no mark begins it."""
    return all(parse(serialise(entries)) == entries for entries in ([entry, "x"], ["x", entry, "x"]))


def canonical(text: str) -> str:
    """Content as we store it."""
    composed = unicodedata.normalize("NFC", unify_newlines(text)).strip()
    while composed.startswith(_BYTE_ORDER_MARK):
        composed = composed.lstrip(_BYTE_ORDER_MARK).strip()
    return composed


def unify_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unstorable_character(text: str) -> str | None:
    """What keeps a text from being stored as UTF-8 text, in words; None when nothing does."""
    if "\0" in text:
        return "a NUL character"
    if found := _SURROGATE.search(text):
        return f"half of a surrogate pair (U+{ord(found.group()):04X}) that is not a character"
    return None


def handle(entry: str) -> str:
    """A name for an entry that shows nothing of its text; accepted wherever a part of the text is."""
    return "entry:" + digest(entry)[:8]


def digest(entry: str) -> str:
    return hashlib.sha256(entry.encode("utf-8", "surrogatepass")).hexdigest()


def digest_prefix(text: str) -> str | None:
    """The digest prefix that a handle names, or None when the text is not a handle."""
    found = _HANDLE.fullmatch(text.strip())
    return found.group(1) if found else None
