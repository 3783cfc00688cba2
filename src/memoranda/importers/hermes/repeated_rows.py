"""Which rows only say again what stands elsewhere.

When Hermes compresses a conversation, it writes what is left of the context once more: in the same session, whose
earlier rows are marked as compacted, or at the beginning of a new one. Those rows are written in one go, so their times
are a microsecond apart, or they have kept the times of the rows that they repeat. Both must hold for a row to be left
out: that it was written in such a way, and that the very same words stand before it (or, of a tool's output that was
cut short, the whole of it). The summary, and what else was rewritten, is kept and marked as written by compression.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from memoranda.importers.hermes.message_rows import Row, is_summary, said

Standing = Literal["said", "again", "summary"]
# Written in one go: later, by hardly more than nothing. Nobody commits two messages that fast.
_LEAST, _MOST = 1e-7, 5e-6


@dataclass(frozen=True, slots=True)
class ClassifiedRow:
    """A row, what was said in it as a fingerprint, and whether that was said here, is said again, or is a summary."""

    row: Row
    words: bytes
    standing: Standing


@dataclass(slots=True)
class EarlierRows:
    """What stands before: the words, at which moment who spoke, and which calls were answered."""

    words: set[bytes] = field(default_factory=set)
    moments: set[tuple[Any, Any]] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)

    def learn(self, row: Row, words: bytes) -> None:
        self.words.add(words)
        self.moments.add((row.get("role"), row.get("timestamp")))
        if row.get("role") == "tool" and isinstance(row.get("tool_call_id"), str):
            self.answers.add(row["tool_call_id"])


def classify_rows(rows: Iterable[Row], known: EarlierRows) -> Iterator[ClassifiedRow]:
    """Every row, and what it is to those before it."""
    run: list[Row] = []
    for row in rows:
        if run and not _in_one_go(run[-1], row):
            yield from _judged_run(run, known)
            run = []
        run.append(row)
    yield from _judged_run(run, known)


def _judged_run(run: list[Row], known: EarlierRows) -> Iterator[ClassifiedRow]:
    words = [said(row) for row in run]
    again = [each in known.words or _is_cut_short(row, known) for row, each in zip(run, words, strict=True)]
    together = len(run) > 1 and any(again)
    for row, each, repeats in zip(run, words, again, strict=True):
        kept_time = _is_exact(row.get("timestamp")) and (row.get("role"), row["timestamp"]) in known.moments
        standing: Standing = "said"
        if repeats and (together or kept_time):
            standing = "again"
        elif together or kept_time or is_summary(row):
            standing = "summary"
        yield ClassifiedRow(row, each, standing)
    for row, each in zip(run, words, strict=True):
        known.learn(row, each)


def _is_cut_short(row: Row, known: EarlierRows) -> bool:
    return row.get("role") == "tool" and row.get("tool_call_id") in known.answers


def _in_one_go(before: Row, row: Row) -> bool:
    one, other = before.get("timestamp"), row.get("timestamp")
    return isinstance(one, float) and isinstance(other, float) and _LEAST < other - one < _MOST


def _is_exact(timestamp: Any) -> bool:
    """Whether a time is one that two messages do not share by chance; chat platforms say whole seconds."""
    return isinstance(timestamp, float) and not timestamp.is_integer()
