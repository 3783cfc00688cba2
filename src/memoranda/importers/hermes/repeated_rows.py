"""Recognizes rows that only repeat earlier ones.

When Hermes compresses a conversation, it writes the remaining context once more: in the same session, after marking the
earlier rows as compacted, or at the start of a new session. It writes those rows together, so their timestamps are a
microsecond apart, or it copies the timestamps of the rows that they repeat. A row is omitted only if both are true: its
timestamp shows that compression wrote it, and an earlier row has the same content (or, for a shortened tool result, the
full content). The summary and other rewritten rows are kept, and marked as written by compression.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from memoranda.importers.hermes.message_rows import Row, content_fingerprint, is_summary

RowKind = Literal["original", "repetition", "summary"]
# Rows that were written together differ by this many seconds; separate commits take longer.
_MIN_GAP, _MAX_GAP = 1e-7, 5e-6


@dataclass(frozen=True, slots=True)
class ClassifiedRow:
    """A row, the fingerprint of its content, and whether it is original, a repetition, or a summary."""

    row: Row
    content: bytes
    kind: RowKind


@dataclass(slots=True)
class EarlierRows:
    """What precedes a row: contents, roles with timestamps, and the calls that have results."""

    content: set[bytes] = field(default_factory=set)
    timestamps: set[tuple[Any, Any]] = field(default_factory=set)
    answered_calls: set[str] = field(default_factory=set)

    def learn(self, row: Row, content: bytes) -> None:
        self.content.add(content)
        self.timestamps.add((row.get("role"), row.get("timestamp")))
        if row.get("role") == "tool" and isinstance(row.get("tool_call_id"), str):
            self.answered_calls.add(row["tool_call_id"])


def classify_rows(rows: Iterable[Row], known: EarlierRows) -> Iterator[ClassifiedRow]:
    """Yield every row with its kind."""
    run: list[Row] = []
    for row in rows:
        if run and not _written_together(run[-1], row):
            yield from _classify_run(run, known)
            run = []
        run.append(row)
    yield from _classify_run(run, known)


def _classify_run(run: list[Row], known: EarlierRows) -> Iterator[ClassifiedRow]:
    contents = [content_fingerprint(row) for row in run]
    repeated = [
        content in known.content or _is_shortened_result(row, known) for row, content in zip(run, contents, strict=True)
    ]
    together = len(run) > 1 and any(repeated)
    for row, content, repeats in zip(run, contents, repeated, strict=True):
        kept_time = _is_exact(row.get("timestamp")) and (row.get("role"), row["timestamp"]) in known.timestamps
        kind: RowKind = "original"
        if repeats and (together or kept_time):
            kind = "repetition"
        elif together or kept_time or is_summary(row):
            kind = "summary"
        yield ClassifiedRow(row, content, kind)
    for row, content in zip(run, contents, strict=True):
        known.learn(row, content)


def _is_shortened_result(row: Row, known: EarlierRows) -> bool:
    return row.get("role") == "tool" and row.get("tool_call_id") in known.answered_calls


def _written_together(before: Row, row: Row) -> bool:
    one, other = before.get("timestamp"), row.get("timestamp")
    return isinstance(one, float) and isinstance(other, float) and _MIN_GAP < other - one < _MAX_GAP


def _is_exact(timestamp: Any) -> bool:
    """Whether two messages cannot share a timestamp by chance; chat platforms record whole seconds."""
    return isinstance(timestamp, float) and not timestamp.is_integer()
