"""Searches for any of several substrings, before costlier checks."""

from collections.abc import Collection, Iterable
from typing import AnyStr


def contains_any(hints: Iterable[AnyStr], text: AnyStr) -> bool:
    """Whether the text contains any of the hints; a plain loop, because it runs dozens of times for every note."""
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False


def lines_with(text: str, hints: Collection[str]) -> list[tuple[int, int]]:
    """The start and end, with its line end, of each line that contains any of the hints."""
    found = set[tuple[int, int]]()
    for hint in hints:
        at = text.find(hint)
        while at >= 0:
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at) + 1 or len(text)
            found.add((start, end))
            at = text.find(hint, end)
    return sorted(found)
