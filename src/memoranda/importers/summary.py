"""Counts what an import would do or has done; the plan and the report have the same figures."""

import json
import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.lazy_dataclass import dataclass

SessionResult = Literal["new", "grown", "unchanged", "deleted", "conflict"]
# The texts of this many problems are kept; the others are only counted per file.
MAX_PROBLEMS = 1000
REPORT_DIRECTORY = "imports"
MAX_REPORTS = 20
# Before the label of skipped lines whose kind the reader does not know.
UNKNOWN_KIND = "unknown kind: "
UNFINISHED = "unfinished last line to read next time"
_REPORT_NAMES = "[0-9]*-[0-9]*-[0-9]*.json"
_ItemKey = tuple[Path, str]


@dataclass(slots=True)
class ImportSummary:
    """The figures of one source."""

    source: str
    items: int = 0
    items_unchanged: int = 0
    bytes: int = 0
    messages: int = 0
    messages_known: int = 0
    kept_items: int = 0
    """How many values became items; `items` are the files of the source."""
    kept_items_known: int = 0
    states: int = 0
    """How many states of a framework's threads are new."""
    states_known: int = 0
    sessions: dict[str, SessionResult] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, str] = field(default_factory=dict)
    detached: list[str] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)
    proposals: Counter[str] = field(default_factory=Counter)
    """How many texts were proposed for curated memory ("new"), known from before ("known") or refused ("refused")."""
    refused_proposals: dict[str, str] = field(default_factory=dict)
    kept_problems: list[tuple[_ItemKey, Problem]] = field(default_factory=list)
    problems_by_file: Counter[Path] = field(default_factory=Counter)
    # The line of the checkpoint from which each item was read; None for an item that was read from its start.
    read_after: dict[_ItemKey, int | None] = field(default_factory=dict)

    def count(self, result: SessionResult) -> int:
        return sum(session_result == result for session_result in self.sessions.values())

    @property
    def problems(self) -> list[Problem]:
        return [problem for _, problem in self.kept_problems]

    @property
    def problem_count(self) -> int:
        return self.problems_by_file.total()

    @property
    def new(self) -> int:
        """How many messages, items, states and proposals are new."""
        return self.messages + self.kept_items + self.states + self.proposals["new"]

    def add_proposal(self, origin: str, status: str, reason: str) -> None:
        """Count a text that was offered for curated memory; `reason` says why it was refused."""
        self.proposals[status] += 1
        if reason:
            self.refused_proposals[origin] = reason

    def start_item(self, item: ImportItem) -> None:
        """Record that an item is being read, and from where."""
        self.bytes += item.size - (item.checkpoint.offset if item.checkpoint else 0)
        self.read_after[item.file, item.label] = item.checkpoint.line if item.checkpoint else None

    def add_problem(self, item: ImportItem, problem: Problem) -> None:
        self.problems_by_file[problem.file] += 1
        if len(self.kept_problems) < MAX_PROBLEMS:
            self.kept_problems.append(((item.file, item.label), problem))

    def set_result(self, session_id: str, result: SessionResult) -> None:
        """Record the result of a session; a new one stays new however often messages are added."""
        before = self.sessions.get(session_id)
        if before is None or before == "unchanged":
            self.sessions[session_id] = result

    def add(self, later: "ImportSummary") -> None:
        """Add the figures of a later pass over the same source."""
        self.items, self.items_unchanged = later.items, later.items_unchanged
        self.bytes += later.bytes
        self.messages += later.messages
        self.messages_known += later.messages_known
        self.kept_items += later.kept_items
        self.kept_items_known += later.kept_items_known
        self.states += later.states
        self.states_known += later.states_known
        for session_id, result in later.sessions.items():
            self.set_result(session_id, result)
        # The later pass has read these lines again.
        self.skipped.pop(UNFINISHED, None)
        self.skipped += later.skipped
        self.renamed |= later.renamed
        self.detached += later.detached
        self.conflicts |= later.conflicts
        self.proposals += later.proposals
        self.refused_proposals |= later.refused_proposals
        self._drop_reread_problems(later.read_after)
        self.kept_problems = [*self.kept_problems, *later.kept_problems][:MAX_PROBLEMS]
        self.problems_by_file += later.problems_by_file

    def _drop_reread_problems(self, read_after: dict[_ItemKey, int | None]) -> None:
        """Drop the problems of items that were read again, because reading them reported those that remain."""
        known, self.kept_problems = self.kept_problems, []
        for key, problem in known:
            if key in read_after and _was_reread(problem, read_after[key]):
                self.problems_by_file -= Counter([problem.file])
            else:
                self.kept_problems.append((key, problem))

    def as_json(self) -> dict[str, Any]:
        """Return the figures as JSON-like values, for a report or a program."""
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
            "items": self.kept_items,
            "items_known": self.kept_items_known,
            "states": self.states,
            "states_known": self.states_known,
            "set_aside": dict(sorted(self.skipped.items())),
            "renamed": self.renamed,
            "detached": self.detached,
            "conflicts": self.conflicts,
            "proposals": self.proposals["new"],
            "proposals_known": self.proposals["known"],
            "proposals_refused": self.refused_proposals,
            "problem_count": self.problem_count,
            "problems": [{"file": str(p.file), "line": p.line, "error": p.text} for p in self.problems],
            "problems_by_file": {str(file): number for file, number in self.problems_by_file.items()},
        }


def unknown_kinds(skipped: Mapping[str, int]) -> dict[str, int]:
    """Return the kinds of lines that a reader does not know, with how many were skipped."""
    return {
        label.removeprefix(UNKNOWN_KIND): number for label, number in skipped.items() if label.startswith(UNKNOWN_KIND)
    }


def _was_reread(problem: Problem, after: int | None) -> bool:
    return after is None or problem.unread or (problem.line is not None and problem.line > after)


def report_path(root: Path, started_at: float, *, shared: bool = False) -> Path:
    """Return the file for the report of an import that started at this time; its name is the id of the import.

    On a `shared` server the id also differs from those of other nodes, whose processes may have the same number.
    """
    at = datetime.fromtimestamp(started_at, UTC)
    ending = f"-{secrets.token_hex(3)}" if shared else ""
    return root / REPORT_DIRECTORY / f"{at:%Y%m%d-%H%M%S}-{os.getpid()}{ending}.json"


def build_report(summaries: Sequence[ImportSummary], started_at: float, ended_at: float) -> dict[str, Any]:
    """Return what an import did, as JSON-like values."""
    return {
        "began": _iso(started_at),
        "ended": _iso(ended_at),
        "seconds": round(ended_at - started_at, 3),
        "sources": [summary.as_json() for summary in summaries],
    }


def write_report(path: Path, content: dict[str, Any]) -> None:
    """Write a report that only its owner can read, and delete the oldest reports beyond the newest 20."""
    make_private_directory(path.parent)
    write_private(path, json.dumps(content, ensure_ascii=True, indent=2).encode() + b"\n")
    # By name, which starts with the time; files with other names stay.
    newest_first = sorted((file for file in path.parent.glob(_REPORT_NAMES) if file != path), reverse=True)
    for old in newest_first[MAX_REPORTS - 1 :]:
        old.unlink(missing_ok=True)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
