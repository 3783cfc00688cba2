"""Combines what several providers recall into one text: repeated items folded, every item labelled, one size budget.

An item is a line. Providers keep their order, and the items of each theirs, so the best of each provider come first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from memoranda.support.shorten import shorten_end

# Shorter lines say too little to be the same thing.
_MIN_FOLDED_CHARS = 12
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_LABEL = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, slots=True)
class RecalledPart:
    """What a provider recalls; for several together, with the names of all."""

    provider: str
    text: str


@dataclass(slots=True)
class _Item:
    """One line of a provider, and the providers that recall it too."""

    line: str
    provider: str
    also: list[str] = field(default_factory=list)

    def labelled(self) -> str:
        """The line with its provider, unless the provider has put its name there itself."""
        label = _LABEL.search(self.line)
        words = re.split(r"[\s,()\[\]]+", label[0].casefold()) if label is not None else []
        names = [] if self.provider.casefold() in words else [self.provider]
        names += [f"also {provider}" for provider in self.also]
        return f"{self.line} ({', '.join(names)})" if names else self.line


def combine_recall(parts: Sequence[RecalledPart], max_chars: int) -> RecalledPart:
    """All parts as one, with the names of those that recall something, and a text of at most `max_chars` characters.

    A single one stays as it is, because the fence names its provider.
    """
    used = [part for part in parts if part.text.strip()]
    if len(used) < 2:
        return used[0] if used else RecalledPart("", "")
    lines = [[item.labelled() for item in items] for items in _fold(used)]
    # Between the parts there is a line end.
    room = max_chars - len(lines) + 1
    shares = share_budget([len("\n".join(each)) for each in lines], room)
    kept = (_fit(each, share) for each, share in zip(lines, shares, strict=True))
    return RecalledPart(" and ".join(part.provider for part in used), "\n".join(text for text in kept if text))


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
                item = _Item(line.rstrip(), part.provider)
                seen[words] = item
                items += [item] if line.strip() else []
            elif part.provider not in (first.provider, *first.also):
                first.also.append(part.provider)
        folded.append(items)
    return folded


def _comparable(line: str) -> str:
    """The words of a line without bullet, labels, articles, capitals and punctuation."""
    text = _LABEL.sub("", _BULLET.sub("", line))
    return " ".join(word for word in re.findall(r"\w+", text.casefold()) if word not in _ARTICLES)


def _fit(lines: Sequence[str], room: int) -> str:
    """As many lines as fit; the first is shortened if it alone is too long."""
    kept: list[str] = []
    for line in lines:
        if len(line) + 1 > room + (not kept):
            break
        kept.append(line)
        room -= len(line) + (len(kept) > 1)
    return "\n".join(kept) if kept or not lines else shorten_end(lines[0], room)
