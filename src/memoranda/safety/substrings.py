"""Checks whether a text contains any of several substrings, before costlier checks."""

from collections.abc import Iterable


def contains_any(hints: Iterable[str], text: str) -> bool:
    """Whether the text contains any of the hints; a plain loop, because it runs dozens of times for every note."""
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False
