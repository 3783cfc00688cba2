"""Assembles the sections of a prompt, those that change least first, and withholds attacks that are split over two.

A model provider caches the longest prefix it has seen. The order is therefore: who the agent is, how to use its tools,
which skills it has, the files of the project, its memory, what the memory provider adds, the date, and the platform.
Two sessions that share a beginning share its cost.

Each part is scanned where it is read. Here the parts meet, and a reader may join the end of one with the start of
another, whatever is between them. Of two parts that form an attack together, the shorter passage is withheld: an entry
or a description as a whole, of a longer text the line at the seam.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, get_args

from memoranda.safety.seams import scan_distant, scan_seams
from memoranda.support.lazy_dataclass import dataclass

SectionName = Literal[
    "identity",
    "guidance",
    "instructions",  # what the program that runs the agent adds
    "skills",
    "project",
    "memory",
    "provider",
    "date",
    "platform",
]
ORDER: tuple[SectionName, ...] = get_args(SectionName)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a prompt; several may have the same name and keep their order.

    `parts` are the texts in it that others wrote, in their order, each of them literally as in `text`.
    """

    name: SectionName
    text: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt; `notices` say what was left out of it and why, for a person."""

    text: str
    sections: tuple[Section, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Equal for prompts that are equal byte for byte."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def assemble(sections: Iterable[Section], notices: Iterable[str] = ()) -> Prompt:
    """Join the sections in the order of `ORDER`, with an empty line between them; blank ones are left out."""
    trimmed = [replace(section, text=section.text.strip()) for section in sections]
    ordered = sorted((section for section in trimmed if section.text), key=lambda section: ORDER.index(section.name))
    return Prompt("\n\n".join(section.text for section in ordered), tuple(ordered), tuple(notices))


def restore_prompt(text: str) -> Prompt:
    """A prompt as it was stored with its session: the same bytes, whatever the files contain now."""
    return Prompt(text)


# After each round, what is withheld no longer separates its neighbours.
_MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class _Passage:
    """One line or text of a section, by the numbers of the section, of the part in it and of the line in the part."""

    section: int
    part: int
    line: int
    text: str

    @property
    def size(self) -> tuple[int, int, int, int]:
        """The order in which passages are withheld: the shortest first, of equally long ones the later one."""
        return len(self.text), -self.section, -self.part, -self.line


def withhold_split_attacks(sections: Sequence[Section]) -> tuple[list[Section], list[str]]:
    """The sections without what forms an attack with another part, and a notice for a person about each passage."""
    shown = list(sections)
    notices: list[str] = []
    for _ in range(_MAX_ROUNDS):
        found = _find_split(shown)
        if not found:
            break
        passage, other, ids = found
        placeholder = f"[withheld: {', '.join(ids)}]"
        shown[passage.section] = _replace(shown[passage.section], passage, placeholder)
        names = [shown[each.section].name for each in (passage, other)]
        notices.append(f"{names[0]}: a passage is withheld that forms an attack with {names[1]} ({', '.join(ids)}).")
    return shown, notices


def _find_split(sections: Sequence[Section]) -> tuple[_Passage, _Passage, tuple[str, ...]] | None:
    """The shorter and the longer passage of the first pair that forms an attack, and what they form."""
    parts = [
        _read_part(number, index, part)
        for number, section in enumerate(sections)
        for index, part in enumerate(section.parts)
    ]
    pairs = [pair for pair in _pairs([part for part in parts if part]) if not _is_in_memory(pair, sections)]
    texts = [("\n".join(line.text for line in one), "\n".join(line.text for line in two)) for one, two in pairs]
    for (one, two), ids in zip(pairs, scan_seams(texts), strict=True):
        if ids:
            shorter, longer = sorted((one[-1], two[0]), key=lambda passage: passage.size)
            return shorter, longer, ids
    lines = [line for part in parts for line in part]
    for found in scan_distant([line.text for line in lines]):
        shorter, longer = sorted((lines[found.first], lines[found.second]), key=lambda passage: passage.size)
        is_one_text = (shorter.section, shorter.part) == (longer.section, longer.part)
        if not is_one_text and not _is_in_memory(([shorter], [longer]), sections):
            return shorter, longer, found.ids
    return None


def _is_in_memory(pair: tuple[list[_Passage], list[_Passage]], sections: Sequence[Section]) -> bool:
    """Whether both are entries: curated memory has scanned them together, and knows what a person has allowed."""
    return all(sections[part[0].section].name == "memory" for part in pair)


def _read_part(section: int, index: int, part: str) -> list[_Passage]:
    """The lines of a part that say something; what is withheld already says nothing."""
    return [
        _Passage(section, index, line, text)
        for line, text in enumerate(part.split("\n"))
        if text.strip() and not text.startswith(("[withheld: ", "[blocked: "))
    ]


def _pairs(parts: Sequence[list[_Passage]]) -> Iterator[tuple[list[_Passage], list[_Passage]]]:
    """Neighbours in both orders, and the last part of each section with the first part of every other one."""
    by_section: dict[int, list[list[_Passage]]] = {}
    for part in parts:
        by_section.setdefault(part[0].section, []).append(part)
    for one, two in pairwise(parts):
        yield one, two
        yield two, one
    for first, own in by_section.items():
        for second, other in by_section.items():
            if first != second:
                yield own[-1], other[0]


def _replace(section: Section, passage: _Passage, placeholder: str) -> Section:
    """The section with a passage replaced, in its text and in its parts."""
    part = section.parts[passage.part]
    lines = part.split("\n")
    lines[passage.line] = placeholder
    changed = "\n".join(lines)
    # The parts follow each other in the text, so the one that is meant comes after those before it.
    position = 0
    for before in section.parts[: passage.part]:
        position = section.text.index(before, position) + len(before)
    position = section.text.index(part, position)
    text = section.text[:position] + changed + section.text[position + len(part) :]
    parts = (*section.parts[: passage.part], changed, *section.parts[passage.part + 1 :])
    return replace(section, text=text, parts=parts)
