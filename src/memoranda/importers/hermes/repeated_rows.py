"""Recognizes rows that only repeat earlier ones.

When Hermes compresses a conversation, it writes the remaining context once more: in the same session, after marking the
earlier rows as compacted, or at the start of a new session. It writes those rows together, so their timestamps are a
microsecond apart, or it copies the timestamps of the rows that they repeat. A row is a copy only if both are true: its
timestamp shows that compression wrote it, and an earlier row has the same content (or, for a shortened tool result, the
full content). The summary and other rewritten rows are marked as written by compression.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from memoranda.importers.hermes.message_rows import Row, content_fingerprint, fingerprint, is_summary

RowKind = Literal["original", "repetition", "summary"]
# Rows that were written together differ by this many seconds; separate commits take longer.
_MIN_GAP, _MAX_GAP = 1e-7, 5e-6


@dataclass(frozen=True, slots=True)
class ClassifiedRow:
    """A row, its external id, and whether it is original, a repetition, or a summary."""

    row: Row
    external_id: str
    kind: RowKind
    original: tuple[str, str] | None = None
    """The row that it repeats, by session and external id."""


@dataclass(slots=True)
class EarlierRows:
    """What precedes a row: contents and answered calls, each with its first row, and roles with timestamps."""

    contents: dict[bytes, tuple[str, str]] = field(default_factory=dict)
    timestamps: set[tuple[Any, Any]] = field(default_factory=set)
    answered_calls: dict[str, tuple[str, str]] = field(default_factory=dict)

    def learn(self, row: Row, content: bytes, name: tuple[str, str]) -> None:
        self.contents.setdefault(content, name)
        self.timestamps.add((row.get("role"), row.get("timestamp")))
        if row.get("role") == "tool" and isinstance(row.get("tool_call_id"), str):
            self.answered_calls.setdefault(row["tool_call_id"], name)

    def original_of(self, row: Row, content: bytes) -> tuple[str, str] | None:
        """Return the row with the same content, or the full result of which this one is shortened."""
        found = self.contents.get(content)
        if found is None and row.get("role") == "tool" and isinstance(row.get("tool_call_id"), str):
            found = self.answered_calls.get(row["tool_call_id"])
        return found


class ExternalIds:
    """Names the rows of a session by content and time, because some versions of Hermes rewrite rows with other ids."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._times: dict[bytes, int] = {}

    def name(self, row: Row, content: bytes) -> tuple[str, str]:
        """Return session and external id of the next row; equal rows are numbered, so their order matters."""
        content_and_time = fingerprint(content, row.get("timestamp"))
        times = self._times[content_and_time] = self._times.get(content_and_time, 0) + 1
        external_id = f"{self._session_id}/{content_and_time.hex()}" + (f"/{times}" if times > 1 else "")
        return self._session_id, external_id


def classify_rows(rows: Iterable[Row], known: EarlierRows, ids: ExternalIds) -> Iterator[ClassifiedRow]:
    """Yield every row with its kind."""
    run: list[Row] = []
    for row in rows:
        if run and not _written_together(run[-1], row):
            yield from _classify_run(run, known, ids)
            run = []
        run.append(row)
    yield from _classify_run(run, known, ids)


def _classify_run(run: list[Row], known: EarlierRows, ids: ExternalIds) -> Iterator[ClassifiedRow]:
    contents = [content_fingerprint(row) for row in run]
    originals = [known.original_of(row, content) for row, content in zip(run, contents, strict=True)]
    together = len(run) > 1 and any(originals)
    names = []
    for row, content, original in zip(run, contents, originals, strict=True):
        kept_time = _is_exact(row.get("timestamp")) and (row.get("role"), row["timestamp"]) in known.timestamps
        kind: RowKind = "original"
        if original and (together or kept_time):
            kind = "repetition"
        elif together or kept_time or is_summary(row):
            kind = "summary"
        name = ids.name(row, content)
        yield ClassifiedRow(row, name[1], kind, original if kind == "repetition" else None)
        names.append(name)
    for row, content, name in zip(run, contents, names, strict=True):
        known.learn(row, content, name)


def _written_together(before: Row, row: Row) -> bool:
    one, other = before.get("timestamp"), row.get("timestamp")
    return isinstance(one, float) and isinstance(other, float) and _MIN_GAP < other - one < _MAX_GAP


def _is_exact(timestamp: Any) -> bool:
    """Whether two messages cannot share a timestamp by chance; chat platforms record whole seconds."""
    return isinstance(timestamp, float) and not timestamp.is_integer()
