"""What an import would do or has done, counted; a plan and a report are the same figures before and after."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.support.durable_files import make_private_directory, write_private

SessionResult = Literal["new", "grown", "unchanged", "deleted", "conflict"]
# So many problems are kept word by word; of more, the number per file is kept.
MOST_PROBLEMS = 1000
_Key = tuple[Path, str]


@dataclass(slots=True)
class ImportSummary:
    """The figures of one source."""

    source: str
    items: int = 0
    items_unchanged: int = 0
    bytes: int = 0
    messages: int = 0
    messages_known: int = 0
    sessions: dict[str, SessionResult] = field(default_factory=dict)
    aside: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, str] = field(default_factory=dict)
    detached: list[str] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)
    problems_kept: list[tuple[_Key, Problem]] = field(default_factory=list)
    problems_by_file: Counter[Path] = field(default_factory=Counter)
    # After which line each item was read; None for one that was read from its beginning.
    read_after: dict[_Key, int | None] = field(default_factory=dict)

    def count(self, fate: SessionResult) -> int:
        """How many sessions have come to this."""
        return sum(each == fate for each in self.sessions.values())

    @property
    def problems(self) -> list[Problem]:
        return [problem for _, problem in self.problems_kept]

    @property
    def problem_count(self) -> int:
        return self.problems_by_file.total()

    @property
    def adds_something(self) -> bool:
        return bool(self.messages)

    def begin(self, item: ImportItem) -> None:
        """Say that an item is read now, and from where."""
        self.bytes += item.size - (item.begin.offset if item.begin else 0)
        self.read_after[item.file, item.what] = item.begin.line if item.begin else None

    def add_problem(self, item: ImportItem, problem: Problem) -> None:
        """Count a problem that was met in an item."""
        self.problems_by_file[problem.file] += 1
        if len(self.problems_kept) < MOST_PROBLEMS:
            self.problems_kept.append(((item.file, item.what), problem))

    def settle(self, session_id: str, fate: SessionResult) -> None:
        """Say what becomes of a session; a new one stays new however often something is added."""
        before = self.sessions.get(session_id)
        if before is None or before == "unchanged":
            self.sessions[session_id] = fate

    def add(self, other: "ImportSummary") -> None:
        """Take in the figures of a later round over the same source."""
        self.items, self.items_unchanged = other.items, other.items_unchanged
        self.bytes += other.bytes
        self.messages += other.messages
        self.messages_known += other.messages_known
        for session_id, fate in other.sessions.items():
            self.settle(session_id, fate)
        self.aside += other.aside
        self.renamed |= other.renamed
        self.detached += other.detached
        self.conflicts |= other.conflicts
        self._forget_problems(other.read_after)
        self.problems_kept = [*self.problems_kept, *other.problems_kept][:MOST_PROBLEMS]
        self.problems_by_file += other.problems_by_file

    def _forget_problems(self, read_after: dict[_Key, int | None]) -> None:
        """Leave out what was read once more: what is still wrong there is said again."""
        known, self.problems_kept = self.problems_kept, []
        for key, problem in known:
            if key in read_after and _is_read_again(problem, read_after[key]):
                self.problems_by_file -= Counter([problem.file])
            else:
                self.problems_kept.append((key, problem))

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON-like values, for a report or a program."""
        return {
            "source": self.source,
            "files": self.items,
            "files_unchanged": self.items_unchanged,
            "bytes": self.bytes,
            "sessions_new": self.count("new"),
            "sessions_grown": self.count("grown"),
            "sessions_unchanged": self.count("unchanged"),
            "sessions_deleted_here": self.count("deleted"),
            "messages": self.messages,
            "messages_known": self.messages_known,
            "set_aside": dict(sorted(self.aside.items())),
            "renamed": self.renamed,
            "detached": self.detached,
            "conflicts": self.conflicts,
            "problem_count": self.problem_count,
            "problems": [{"file": str(p.file), "line": p.line, "error": p.text} for p in self.problems],
            "problems_by_file": {str(file): number for file, number in self.problems_by_file.items()},
        }


def _is_read_again(problem: Problem, after: int | None) -> bool:
    return after is None or problem.unread or (problem.line is not None and problem.line > after)


DIRECTORY = "imports"
# So many reports are kept, the newest.
KEPT = 20
_NAMED = "[0-9]*-[0-9]*-[0-9]*.json"


def report_path(root: Path, began: float) -> Path:
    """Where the report of the import that began then is kept."""
    at = datetime.fromtimestamp(began, UTC)
    return root / DIRECTORY / f"{at:%Y%m%d-%H%M%S}-{os.getpid()}.json"


def report(tallies: Sequence[ImportSummary], began: float, ended: float) -> dict[str, Any]:
    """What an import did, as JSON-like values."""
    return {
        "began": _iso(began),
        "ended": _iso(ended),
        "seconds": round(ended - began, 3),
        "sources": [tally.as_json() for tally in tallies],
    }


def keep_report(path: Path, content: dict[str, Any]) -> None:
    """Write a report where its owner alone can read it, in the place of the oldest one when there are enough."""
    make_private_directory(path.parent)
    write_private(path, json.dumps(content, ensure_ascii=True, indent=2).encode() + b"\n")
    # By their names, which begin with the time; somebody else's files stay.
    newest_first = sorted((each for each in path.parent.glob(_NAMED) if each != path), reverse=True)
    for old in newest_first[KEPT - 1 :]:
        old.unlink(missing_ok=True)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
