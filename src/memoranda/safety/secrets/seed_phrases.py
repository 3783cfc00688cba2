"""Finds the phrases of 12 to 24 words that restore a wallet (BIP-39).

All words of a phrase are in a list of 2,048 words of three to eight letters. It has few of the words that hold
sentences together, so ordinary text has no twelve of them in a row. The check word at the end is not tested: a phrase
with a typing error is a secret too.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memoranda.safety.secrets.found_secret import FoundSecret

_WORD = re.compile(r"[A-Za-z]+")
# Words may be numbered, quoted, or in lines of their own, which may be escaped.
_BETWEEN_WORDS = re.compile(r"(?:[\s,\"'\d.)]|\\n){1,8}").fullmatch
_MIN_WORDS = 12
_ROW = b"\1" * _MIN_WORDS


def find_seed_phrases(text: str) -> Iterator[FoundSecret]:
    """The seed phrases in a text: every row of at least twelve words of the list."""
    words = _seed_words()
    # Most texts about phrases have no such row: this takes a tenth of the time of looking at what is between words.
    if _ROW not in bytes(map(words.__contains__, map(str.lower, _WORD.findall(text)))):
        return
    start = end = count = 0
    for word in _WORD.finditer(text):
        is_seed_word = word[0].lower() in words
        if not is_seed_word or not _BETWEEN_WORDS(text, end, word.start()):
            if count >= _MIN_WORDS:
                yield FoundSecret("seed_phrase", start, end)
            start, count = word.start(), 0
        if is_seed_word:
            count, end = count + 1, word.end()
    if count >= _MIN_WORDS:
        yield FoundSecret("seed_phrase", start, end)


@cache
def _seed_words() -> frozenset[str]:
    lines = Path(__file__).with_name("seed_words.txt").read_text("ascii").splitlines()
    return frozenset(" ".join(line for line in lines if not line.startswith("#")).split())
