"""Combines what several providers recall: repeated items folded, every item with its providers, one size budget.

An item is a line. Providers keep their order, and the items of each theirs, so the best of each provider come first.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end

# Shorter lines say too little to be the same thing.
_MIN_FOLDED_CHARS = 12
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_LABEL = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_ARTICLES = frozenset({"a", "an", "the"})
# Between a provider and its text, and after the text, where an item is quoted.
_MARK_CHARS = len("> \n")


@dataclass(frozen=True, slots=True)
class RecalledPart:
    """What a provider recalls; an item that several recall, with the names of all."""

    provider: str
    text: str


@dataclass(slots=True)
class _Item:
    """One line, and the providers that recall it."""

    line: str
    providers: list[str]

    @property
    def part(self) -> RecalledPart:
        return RecalledPart(" and ".join(self.providers), self.line)


def combine_recall(parts: Sequence[RecalledPart], max_chars: int) -> list[RecalledPart]:
    """The items of all parts, together with the names of their providers at most `max_chars` characters.

    What a single provider recalls stays as it is.
    """
    used = [part for part in parts if part.text.strip()]
    if len(used) < 2:
        return used
    items = [[item.part for item in each] for each in _fold(used)]
    shares = share_budget([sum(map(_size, each)) for each in items], max_chars)
    return [part for each, share in zip(items, shares, strict=True) for part in _fit(each, share)]


def share_budget(sizes: Sequence[int], budget: int) -> list[int]:
    """How much of the budget each size gets: equal shares, and what one does not need is passed on to the others."""
    shares = [0] * len(sizes)
    left = max(budget, 0)
    by_size = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for position, index in enumerate(by_size):
        shares[index] = min(sizes[index], left // (len(sizes) - position))
        left -= shares[index]
    return shares


def _fold(parts: Sequence[RecalledPart]) -> list[list[_Item]]:
    """The items of each provider, without those that came before; an earlier item names who recalls it too."""
    seen: dict[str, _Item] = {}
    folded: list[list[_Item]] = []
    for part in parts:
        items: list[_Item] = []
        for line in part.text.splitlines():
            words = _comparable(line)
            first = seen.get(words) if len(words) >= _MIN_FOLDED_CHARS else None
            if first is None:
                item = _Item(line.rstrip(), [part.provider])
                seen[words] = item
                items += [item] if line.strip() else []
            elif part.provider not in first.providers:
                first.providers.append(part.provider)
        folded.append(items)
    return folded


def _comparable(line: str) -> str:
    """The words of a line without bullet, labels, articles, capitals and punctuation."""
    text = _LABEL.sub("", _BULLET.sub("", line))
    return " ".join(word for word in re.findall(r"\w+", text.casefold()) if word not in _ARTICLES)


def _size(part: RecalledPart) -> int:
    return len(part.provider) + len(part.text) + _MARK_CHARS


def _fit(parts: Sequence[RecalledPart], room: int) -> list[RecalledPart]:
    """As many parts as fit; the first is shortened if it alone is too long."""
    kept: list[RecalledPart] = []
    for part in parts:
        room -= _size(part)
        if room < 0:
            break
        kept.append(part)
    if kept or not parts:
        return kept
    text = shorten_end(parts[0].text, max(0, len(parts[0].text) + room))
    return [replace(parts[0], text=text)] if text else []
