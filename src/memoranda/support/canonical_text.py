"""Normalizes text for storage: one form for equal texts, and nothing that UTF-8 cannot encode."""

import hashlib
import re
import unicodedata

BYTE_ORDER_MARK = "\ufeff"
_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical(text: str) -> str:
    """The text with LF line ends, in NFC, without blank edges and byte order marks."""
    composed = unicodedata.normalize("NFC", unify_newlines(text)).strip()
    while composed.startswith(BYTE_ORDER_MARK):
        composed = composed.lstrip(BYTE_ORDER_MARK).strip()
    return composed


def unify_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unstorable_character(text: str) -> str | None:
    """Names the character that keeps a text from being stored as UTF-8; None when there is none."""
    if "\0" in text:
        return "a NUL character"
    if not text.isascii() and (found := _SURROGATE.search(text)):
        return f"half of a surrogate pair (U+{ord(found.group()):04X}) that is not a character"
    return None


def digest(text: str) -> str:
    """A hash that identifies a text without revealing it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
