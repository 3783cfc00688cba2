"""Words that are related in meaning: synonyms, a class and its members, opposites, and words that are simply close.

They come from a sorted table in the package, which is searched in the file and never loaded. Both sides are stems, as
the index has them; a relation counts in both directions. `benchmarks/related_words` builds the table.
"""

from functools import cache, lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path

_TABLE = Path(__file__).with_name("related_words.txt")


@lru_cache(maxsize=4096)
def related_words(token: str) -> dict[str, float]:
    """The tokens that are related to a token, with their closeness: above 0, below 1. Empty for an unknown token."""
    return {word.rstrip("!+0123456789"): (int(word[-1]) + 0.5) / 10 for word in _row(token).split()}


@lru_cache(maxsize=4096)
def close_words(token: str) -> dict[str, float]:
    """The related tokens that are close by every measure, with that closeness, closest first: few, and rarely wrong."""
    words = (word.partition("+") for word in _row(token).split() if "+" in word)
    found = {word: (int(digits[0]) + 0.5) / 10 for word, _, digits in words}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


@lru_cache(maxsize=4096)
def opposite_words(token: str) -> frozenset[str]:
    """The related tokens with the opposite meaning."""
    return frozenset(word[:-2] for word in _row(token).split() if word[-2] == "!")


def _row(token: str) -> str:
    """The rest of the row that begins with a token."""
    if not token.isascii():
        return ""
    table = _table()
    wanted = token.encode()
    low, high = 0, len(table)
    while low < high:
        start = table.rfind(b"\n", 0, (low + high) // 2) + 1
        end = table.find(b"\n", start)
        own, _, rest = table[start:end].partition(b" ")
        if own == wanted:
            return rest.decode()
        if own < wanted:
            low = end + 1
        else:
            high = start
    return ""


@cache
def _table() -> mmap:
    with _TABLE.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)
