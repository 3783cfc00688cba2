"""Finds a text that must be forgotten, however it is written, and replaces it with a visible mark.

Case, the kind and amount of whitespace, Unicode forms (composed or decomposed, full-width letters) and invisible
characters make no difference. A part of a word matches, too, unless whole words are wanted. In JSON, every text and
every key is searched, and texts that are JSON themselves, such as the arguments of a tool call.

`byte_pattern` finds a text in the bytes of any file: plain UTF-8, or escaped as JSON at any depth. It serves the proof
that nothing is left, which reads files as bytes, free pages and logs of databases included.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from memoranda.support.json_object import parse_json
from memoranda.support.json_texts import map_texts
from memoranda.support.lazy_dataclass import dataclass

MARK = "[forgotten]"
# For a text that is part of the mark itself.
_OTHER_MARK = "[…]"
_MAX_NESTED = 3
# Characters that are not seen: soft hyphen, zero-width and direction marks, byte order mark.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
# Vowels and finals of decomposed Hangul, which belong to the letter before them.
_JAMO = range(0x1160, 0x1200)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value without the text, and how many times the text was in it."""

    value: Any
    count: int


class TextMatcher:
    """Finds any of some texts that have a visible character: as parts of a text, or only as an `entire` one."""

    def __init__(self, texts: Iterable[str], *, whole_words: bool = False, entire: bool = False) -> None:
        self.texts = tuple(dict.fromkeys(text for text in texts if _fold(text).strip()))
        self.whole_words = whole_words
        # Longer texts first, so that none is left half replaced.
        self._words = [_fold(text).split() for text in sorted(self.texts, key=len, reverse=True)]
        alternatives = "|".join(r"\s+".join(map(re.escape, words)) for words in self._words)
        edges = (r"\A\s*", r"\s*\Z") if entire else (r"(?<!\w)", r"(?!\w)") if whole_words else ("", "")
        self._pattern = re.compile(f"{edges[0]}(?:{alternatives}){edges[1]}")
        self._first_words = tuple(words[0] for words in self._words)
        self._has_backslash = any("\\" in word for word in self._first_words)
        self.mark = _OTHER_MARK if self.texts and self._search(MARK) else MARK

    def __bool__(self) -> bool:
        return bool(self.texts)

    @property
    def shortest(self) -> int:
        """How many visible characters the shortest of the texts has."""
        return min((sum(map(len, words)) for words in self._words), default=0)

    def found_in(self, text: str) -> bool:
        return bool(self.texts) and self._search(text)

    def may_be_in(self, stored: str) -> bool:
        """Whether text that may contain JSON can have a match; much faster than `replace_value`."""
        if "\\u" in stored or self._has_backslash:
            return True
        folded = _fold(stored)
        return any(word in folded for word in self._first_words)

    def count(self, text: str) -> int:
        return len(self._pattern.findall(_fold(text))) if self.found_in(text) else 0

    def replace(self, text: str) -> Replaced:
        """The text with a mark instead of each occurrence."""
        if not self.found_in(text):
            return Replaced(text, 0)
        folded, starts = _fold_with_positions(text)
        parts: list[str] = []
        end = count = 0
        for match in self._pattern.finditer(folded):
            begin, stop = starts[match.start()], starts[match.end()]
            if stop > begin:
                parts += [text[end : max(begin, end)], self.mark]
                end, count = stop, count + 1
        return Replaced("".join([*parts, text[end:]]), count)

    def replace_value(self, value: Any, nested: int = _MAX_NESTED) -> Replaced:
        """A JSON value with a mark instead of each occurrence in its texts and keys."""
        total = 0

        def change(text: str) -> str:
            nonlocal total
            replaced = self._replace_in_json(text, nested) if nested and _looks_like_json(text) else self.replace(text)
            total += replaced.count
            return str(replaced.value)

        changed = map_texts(value, change)
        return Replaced(changed if total else value, total)

    def _replace_in_json(self, text: str, nested: int) -> Replaced:
        """Replace within a text that is JSON itself, so that it stays JSON; escapes hide parts from a plain search."""
        plain = self.replace(text)
        value = parse_json(text) if plain.count or "\\" in text else None
        if value is None:
            return plain
        inner = self.replace_value(value, nested - 1)
        if inner.count == plain.count and (not plain.count or parse_json(plain.value) is not None):
            # As it was written, with its spaces and line ends.
            return plain
        written = json.dumps(inner.value, ensure_ascii=False)
        # Quotes and brackets can be part of the text to forget.
        across = self.replace(written)
        return Replaced(across.value, inner.count + across.count)

    def _search(self, text: str) -> bool:
        folded = _fold(text)
        return any(word in folded for word in self._first_words) and bool(self._pattern.search(folded))


def _fold(text: str) -> str:
    """The text in one form for all ways of writing it."""
    if text.isascii():
        return text.lower()
    return _normalize(_INVISIBLE.sub("", _normalize(text)).casefold())


def _normalize(text: str) -> str:
    # Checking takes a tenth of the time of normalizing.
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _fold_with_positions(text: str) -> tuple[str, Sequence[int]]:
    """The folded text, and for each of its characters (and its end) the position in the text where it begins."""
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    pieces: list[str] = []
    starts: list[int] = []
    begin = 0
    while begin < len(text):
        end = begin + 1
        while end < len(text) and (unicodedata.combining(text[end]) or ord(text[end]) in _JAMO):
            end += 1
        piece = _fold(text[begin:end])
        pieces.append(piece)
        starts += [begin] * len(piece)
        begin = end
    return "".join(pieces), [*starts, len(text)]


def _looks_like_json(text: str) -> bool:
    return text[:1] in ("{", "[", '"')


_SPACE = rb"(?:\s|\\+[nrtfv]|\\+u00(?:0[9aAdDcCbB]|20|[aA]0)|\xc2\xa0|\xe3\x80\x80)+"


def byte_pattern(texts: Iterable[str], *, whole_words: bool = False) -> re.Pattern[bytes]:
    """Finds the texts in lower-cased bytes (`bytes.lower`)."""
    alternatives = b"|".join(_text_pattern(text) for text in texts)
    if whole_words:
        alternatives = rb"(?<![\w\x80-\xff])(?:" + alternatives + rb")(?![\w\x80-\xff])"
    return re.compile(alternatives)


def _text_pattern(text: str) -> bytes:
    return _SPACE.join(b"".join(map(_character_pattern, unicodedata.normalize("NFC", word))) for word in text.split())


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
