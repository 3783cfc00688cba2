"""Settings of search: the size of answers, hidden sources, and summaries."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """`answer_chars` limits one answer of the tool, as JSON text.

    `summary_model` is the name of the model that writes summaries; if empty, the model of the conversation does, or
    outside of one the configured model.
    """

    answer_chars: int = 16_000
    hidden_sources: tuple[str, ...] = ("tool", "subagent")
    summarize: bool = False
    summary_model: str = ""
    summary_workers: int = 3
    summary_deadline: float = 90.0
