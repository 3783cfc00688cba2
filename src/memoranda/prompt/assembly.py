"""Putting sections together into a prompt, the slowest to change first.

A model provider keeps the state of the longest prefix it has seen. What stands first must therefore change least: who
the agent is, how to use its tools, which skills it has, the files of the project, its memory, what a provider adds,
the date, and where the conversation takes place. Two sessions that share a beginning share its cost.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

SectionName = Literal[
    "identity",
    "guidance",
    "instructions",  # what the program adds in whose service the agent is
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
    """One part of a prompt; several may have the same name and keep their order."""

    name: SectionName
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt, never changed but replaced; `notices` tell a person what was left out of it, and why."""

    text: str
    sections: tuple[Section, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Equal for prompts that are equal byte for byte."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def assemble(sections: Iterable[Section], notices: Iterable[str] = ()) -> Prompt:
    """The prompt of these sections in their order, blank ones left out, with an empty line between any two."""
    trimmed = [Section(section.name, section.text.strip()) for section in sections]
    ordered = sorted((each for each in trimmed if each.text), key=lambda each: ORDER.index(each.name))
    return Prompt("\n\n".join(each.text for each in ordered), tuple(ordered), tuple(notices))


def restore_prompt(text: str) -> Prompt:
    """A prompt as it was stored with its session: the same bytes, whatever the files say by now."""
    return Prompt(text)
