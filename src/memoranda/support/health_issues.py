"""Health issues: what the doctor reports about a path, how to repair it, and whether Memoranda can do so itself."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from memoranda.support.durable_files import PRIVATE_DIRECTORY, PRIVATE_FILE
from memoranda.support.lazy_dataclass import dataclass

_MIN_FREE_BYTES = 1_000_000


Progress = Callable[[str, int, int], object]
"""Called by long checks: what is checked, how many parts are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class HealthIssue:
    """One problem. `repair` is set when `memoranda doctor --fix` may run it; a text that it returns is shown.

    `harmless` says that the repair changes only permissions, leftovers or what is derived from the record, so that a
    running service may offer it to a person.
    """

    severity: Literal["error", "warning", "note"]
    path: Path
    problem: str
    remedy: str
    repair: Callable[[], object] | None = None
    harmless: bool = False

    def as_report(self) -> dict[str, Any]:
        """The issue as plain data, as `MemoryProvider.check` returns it."""
        return {
            "severity": self.severity,
            "path": str(self.path),
            "problem": self.problem,
            "remedy": self.remedy,
            "repairable": self.repair is not None,
        }


def repair_reported(report: Mapping[str, Any], issues: Iterable[HealthIssue]) -> str:
    """Repair the issue that a report describes, if it still exists; the text says what was done."""
    for issue in issues:
        if issue.repair is not None and issue.as_report() == dict(report):
            return str(issue.repair() or "")
    return ""


def issues_until_error(path: Path, *checks: Callable[[], Iterator[HealthIssue]]) -> Iterator[HealthIssue]:
    """Yield the issues that checks find; an OSError that ends one of them becomes one more issue."""
    for check in checks:
        try:
            yield from check()
        except OSError as error:
            yield HealthIssue(
                "error",
                Path(error.filename or path),
                f"cannot be examined: {error.strerror}",
                "correct its permissions or its file type",
            )


def leftover(path: Path, remove: Callable[[], object]) -> HealthIssue:
    """The issue of a file that a killed writer left.

    A writer that holds the lock may still need it; `remove` then raises and leaves it.
    """
    return HealthIssue("warning", path, "was left by a writer that was killed", "delete it", remove, harmless=True)


def check_writable(directory: Path) -> Iterator[HealthIssue]:
    """Report a directory that lacks write permission or free space."""
    import shutil  # noqa: PLC0415

    if not os.access(directory, os.W_OK | os.X_OK):
        yield HealthIssue("error", directory, "cannot be written", "make it writable (chmod 700), or use another home")
    elif shutil.disk_usage(directory).free < _MIN_FREE_BYTES:
        yield HealthIssue("error", directory, "is on a disk that is full", "free some space on the disk")


def check_permissions(path: Path) -> Iterator[HealthIssue]:
    """Report a file or directory that users other than the owner can access."""
    if sys.platform == "win32" or path.is_symlink():
        return
    wanted = PRIVATE_DIRECTORY if path.is_dir() else PRIVATE_FILE
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & ~wanted & 0o077:
        yield HealthIssue(
            "warning",
            path,
            f"can be used by others (mode {mode:04o})",
            f"chmod {wanted:o}",
            lambda: os.chmod(path, wanted),
            harmless=True,
        )
