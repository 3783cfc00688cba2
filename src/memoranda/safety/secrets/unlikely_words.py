"""Finds the parts of a text that may hold a password or a generated value, so that only they are searched for names.

Such a value has a digit beside a letter or a sign, or a sign within a word. Most texts have no such word, and most
others have one or two, so this is far cheaper than a search of all texts for all names.
"""

import re

_DIGIT = ord("0")
_BESIDE_DIGIT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_!#$%&*@^~+-")
_IN_WORD = b"a0"
_MIN_WORD_CHARS = 8
_WORD_AND_NUMBER = re.compile(r"[^\w\s]*(?:[A-Za-z]+[-_.:]?\d{1,4}|\d{1,4}-?[a-z]+)\W*$").match
# How much of the text around such a word is searched. A name is near its value; a command may begin far before it.
_BEFORE_CHARS = 300
_AFTER_CHARS = 80
# A text with more of them, or with so many numbers that looking at each would take long, is searched as a whole.
_MAX_WORDS = 12
_MAX_NUMBERS = 48


def find_unlikely_parts(text: str, stored: bytes, kinds: bytes) -> list[tuple[int, int]]:
    """The parts of a text to be searched, without overlaps.

    `stored` is the text as ASCII bytes, one for each character. `kinds` has an `a` for each letter, a `0` for each
    digit, an `s` for each sign, and a space for white space.
    """
    stored, kinds = stored + b" ", kinds + b" "
    words: dict[int, int] = {}
    position, numbers = kinds.find(b"0"), 0
    while position >= 0:
        end = position + 1
        while kinds[end] == _DIGIT:
            end += 1
        # The first character has the space at the end before it.
        if stored[position - 1] in _BESIDE_DIGIT or stored[end] in _BESIDE_DIGIT:
            end = _add_word(text, kinds, position, words)
        numbers += 1
        if numbers > _MAX_NUMBERS or len(words) > _MAX_WORDS:
            return [(0, len(text))]
        position = kinds.find(b"0", end)
    position = kinds.find(b"s")
    while position >= 0:
        end = position + 1
        if kinds[position - 1] in _IN_WORD and kinds[end] in _IN_WORD:
            end = _add_word(text, kinds, position, words)
        position = kinds.find(b"s", end)
    return _parts_around(sorted(words.items()), len(text)) if words else []


def _add_word(text: str, kinds: bytes, position: int, words: dict[int, int]) -> int:
    """Add the word at a position unless it is short, or a word with a number; the end of the word."""
    start, end = kinds.rfind(b" ", 0, position) + 1, kinds.find(b" ", position)
    if end - start >= _MIN_WORD_CHARS and not _WORD_AND_NUMBER(text, start, end):
        words[start] = end
    return end


def _parts_around(words: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    parts: list[tuple[int, int]] = []
    for word_start, word_end in words:
        start, end = max(0, word_start - _BEFORE_CHARS), min(length, word_end + _AFTER_CHARS)
        if parts and start <= parts[-1][1]:
            start = parts.pop()[0]
        parts.append((start, end))
    return parts
