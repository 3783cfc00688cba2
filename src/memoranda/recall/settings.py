"""How search answers: sizes and which sources stay out of sight."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """`answer_chars` is the most that one answer of the tool may hold, as JSON text."""

    answer_chars: int = 16_000
    hidden_sources: tuple[str, ...] = ("tool", "subagent")
    summary_workers: int = 3
    summary_deadline: float = 90.0
