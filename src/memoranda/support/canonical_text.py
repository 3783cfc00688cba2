"""Text as it is stored: one form for what is equal, and nothing that cannot be UTF-8."""

import hashlib
import re
import unicodedata

BYTE_ORDER_MARK = "\ufeff"
_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical(text: str) -> str:
    """Content as we store it: LF, NFC, without blank edges and byte order marks."""
    composed = unicodedata.normalize("NFC", unify_newlines(text)).strip()
    while composed.startswith(BYTE_ORDER_MARK):
        composed = composed.lstrip(BYTE_ORDER_MARK).strip()
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


def digest(text: str) -> str:
    """A name for a text that shows nothing of it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
