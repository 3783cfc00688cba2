"""The difference between two texts, word by word, for a page."""

import re
from difflib import SequenceMatcher
from typing import Literal

from memoranda.support.lazy_dataclass import dataclass

# Comparing takes quadratic time in the worst case; longer texts are shown as removed and added.
_MAX_WORDS = 1_500
_WORD = re.compile(r"\s+|\w+|[^\w\s]")
# Below this share of common words, marking single words is harder to read than two whole texts.
_MIN_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class DiffPart:
    """A part of two texts: in both, or only in the one before or after."""

    kind: Literal["same", "removed", "added"]
    text: str


def diff_words(before: str | None, after: str | None) -> tuple[DiffPart, ...]:
    """The parts of two texts in order; None stands for a text that does not exist."""
    if before is None or after is None or before == after:
        return _whole(before, after)
    old, new = _WORD.findall(before), _WORD.findall(after)
    if max(len(old), len(new)) > _MAX_WORDS:
        return _whole(before, after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _MIN_SHARE:
        return _whole(before, after)
    parts: list[DiffPart] = []
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            parts.append(DiffPart("same", "".join(old[old_start:old_end])))
            continue
        if old_start < old_end:
            parts.append(DiffPart("removed", "".join(old[old_start:old_end])))
        if new_start < new_end:
            parts.append(DiffPart("added", "".join(new[new_start:new_end])))
    return tuple(parts)


def _whole(before: str | None, after: str | None) -> tuple[DiffPart, ...]:
    if before == after:
        return () if before is None else (DiffPart("same", before),)
    removed = () if before is None else (DiffPart("removed", before),)
    return removed if after is None else (*removed, DiffPart("added", after))
