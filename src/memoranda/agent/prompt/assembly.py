"""Assembles the sections of a prompt, those that change least first.

A model provider caches the longest prefix it has seen. The order is therefore: who the agent is, how to use its tools,
which skills it has, the files of the project, its memory, what the memory provider adds, the date, and the platform.
Two sessions that share a beginning share its cost.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

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
