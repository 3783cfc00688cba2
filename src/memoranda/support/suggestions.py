"""Suggests the known name that a misspelt one may mean."""

from collections.abc import Iterable

_MAX_NAMES = 2
# The likeness of spelling, from 0 to 1, that names need; one that is only roughly alike is better than none.
_ALIKE, _ROUGHLY_ALIKE = 0.75, 0.6


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Returns " Did you mean 'x'?" with the names that are spelt like the word; "" when there are none."""
    # Only loaded after a mistake, because most commands never need it.
    from difflib import get_close_matches  # noqa: PLC0415

    lower_case = {name.lower(): name for name in names}
    found = get_close_matches(word.lower(), lower_case, _MAX_NAMES, _ALIKE)
    found = found or get_close_matches(word.lower(), lower_case, 1, _ROUGHLY_ALIKE)
    matches = [repr(lower_case[name]) for name in found]
    if not matches:
        return ""
    *others, last = matches
    return f" Did you mean {', '.join(others)} or {last}?" if others else f" Did you mean {last}?"
