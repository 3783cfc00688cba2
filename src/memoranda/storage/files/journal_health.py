"""Checks a journal for the doctor: lines that changed on the disk, and lines that are missing."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from memoranda.storage.files.journal import Journal
from memoranda.support.health_issues import HealthIssue


def check_journal(
    journal: Journal[Any], path: Path, purge: str, exclusive: Callable[[], AbstractContextManager[None]]
) -> Iterator[HealthIssue]:
    """The issues of one journal; `purge` is the command that starts a new history, `exclusive` takes its lock."""
    damaged, lost = journal.damaged_lines(), journal.find_loss()
    skipped = f"unreadable or changed lines ({', '.join(map(str, damaged))})"
    if not lost:
        if damaged:
            yield HealthIssue(
                "warning",
                path,
                f"has {skipped}, which are skipped",
                f"nothing to do; '{purge}' drops them with the history",
            )
        return

    def accept() -> str:
        with exclusive():
            journal.accept()
        return "what is left is the history from now on"

    yield HealthIssue(
        "error",
        path,
        lost + (f"; {skipped} are skipped" if damaged else ""),
        "put the file back from a backup while nothing uses the home; --fix accepts what is left of the history",
        accept,
    )
