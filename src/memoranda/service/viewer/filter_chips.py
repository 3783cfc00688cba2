"""Filters of a page as chips: links that add a filter to the address or remove it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memoranda.service.viewer.page import page_url


@dataclass(frozen=True, slots=True)
class Chip:
    """One value of a filter; following its link chooses it, or removes it if it is chosen."""

    label: str
    url: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class ChipGroup:
    """The values of one filter."""

    label: str
    chips: tuple[Chip, ...]


def chip_group(
    label: str, name: str, values: Iterable[tuple[str, str]], *, path: str, query: Mapping[str, str]
) -> ChipGroup:
    """The chips of the parameter `name`: pairs of a value and its label. A chosen value that is missing is added."""
    pairs = dict(values)
    chosen = query.get(name, "")
    if chosen and chosen not in pairs:
        pairs = {chosen: chosen} | pairs
    chips = []
    for value, text in pairs.items():
        others = {key: kept for key, kept in query.items() if key != name}
        address = page_url(path, **others, **({} if value == chosen else {name: value}))
        chips.append(Chip(text, address, value == chosen))
    return ChipGroup(label, tuple(chips))
