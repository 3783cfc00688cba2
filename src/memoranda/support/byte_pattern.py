"""A pattern that finds a text in the bytes of any file: plain UTF-8, or escaped as JSON at any depth.

It serves the proof that nothing is left, which reads files as bytes, free pages and logs of databases included.
"""

import re
import unicodedata
from collections.abc import Iterable

_SPACE = rb"(?:\s|\\+[nrtfv]|\\+u00(?:0[9aAdDcCbB]|20|[aA]0)|\xc2\xa0|\xe3\x80\x80)+"


def byte_pattern(texts: Iterable[str], *, whole_words: bool = False) -> re.Pattern[bytes]:
    """Finds the texts in lower-cased bytes (`bytes.lower`)."""
    alternatives = b"|".join(_text_pattern(text) for text in texts)
    if whole_words:
        alternatives = rb"(?<![\w\x80-\xff])(?:" + alternatives + rb")(?![\w\x80-\xff])"
    return re.compile(alternatives)


def _text_pattern(text: str) -> bytes:
    return _SPACE.join(b"".join(map(_character_pattern, _clusters(word))) for word in text.split())


def _clusters(word: str) -> list[str]:
    """The characters of a word, with their combining marks."""
    return list(unicodedata.normalize("NFC", word))


def _character_pattern(character: str) -> bytes:
    if character.isascii():
        lowered = character.lower()
        plain = rb"\\*" + re.escape(lowered.encode()) if character in '"/\\' else re.escape(lowered.encode())
        # Some writers escape also <, > and &.
        return plain if character.isalnum() else rb"(?:" + plain + rb"|" + _escaped(lowered) + rb")"
    forms = {
        unicodedata.normalize(form, variant)
        for variant in (character, character.lower(), character.upper(), character.title(), character.casefold())
        for form in ("NFC", "NFD", "NFKC")
    }
    # Upper-case forms, too: `bytes.lower` changes only ASCII.
    written = {form.encode("utf-8", "surrogatepass").lower() for form in forms}
    options = [re.escape(form) for form in written] + [_escaped(form) for form in forms]
    # Longer forms first: a letter and its accent before the letter alone.
    options.sort(key=lambda option: -len(option))
    return rb"(?:" + b"|".join(options) + rb")"


def _escaped(form: str) -> bytes:
    """The JSON escapes of a few characters, in lower case, after one backslash or more; ASCII is seldom escaped."""
    units = form.encode("utf-16-be", "surrogatepass")
    codes = [rb"\\+u" + units[at : at + 2].hex().encode() for at in range(0, len(units), 2)]
    if form.isascii() or not form[0].isascii():
        return b"".join(codes)
    # A plain letter with an escaped accent.
    return rb"(?:" + re.escape(form[0].lower().encode()) + b"|" + codes[0] + b")" + b"".join(codes[1:])
