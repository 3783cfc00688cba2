"""What a program has beside its transcripts, on its way in with them: one preview, one question, one report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memoranda.cli.context import Invocation


@dataclass(frozen=True, slots=True)
class StepReport:
    """What would happen or has happened: in words, as fields of the answer, and how many things are new."""

    lines: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    new: int = 0


class Companion(Protocol):
    """Something that is imported together with transcripts."""

    def plan(self, invocation: Invocation) -> StepReport:
        """Say what would happen; nothing is written."""
        ...

    def take(self, invocation: Invocation) -> StepReport:
        """Take it over, and say what was done."""
        ...
