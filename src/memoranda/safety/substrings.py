"""A cheap first question to a text: is there anything at all that a costlier check could find?"""

from collections.abc import Iterable


def contains_any(hints: Iterable[str], text: str) -> bool:
    """Whether any of the hints is in the text; a plain loop, because it runs dozens of times for every short note."""
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False
