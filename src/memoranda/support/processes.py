"""Identifies processes, so that others can tell whether one has ended, and finds those that have a file open.

A process id is not enough: the system reuses it for another process later, and it means a different process on another
machine or in another container. So an identity also contains the machine and the start time, where the system has them.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_ENDED_STATES = ("Z", "X")
_UNLINKED = " (deleted)"


def process_identity() -> str:
    """The identity of this process; a forked process has its own."""
    number = os.getpid()
    return f"{number}.{_start_time(number)}.{_machine()}"


def has_ended(identity: str) -> bool:
    """Whether the process with this identity is known to have ended; False for other machines and unknown formats."""
    number, _, rest = identity.partition(".")
    began, _, where = rest.partition(".")
    if sys.platform == "win32" or not number.isdecimal() or not began or where != _machine():
        # On Windows os.kill would end the process instead of testing it.
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return _start_time(int(number)) != began


def _start_time(number: int) -> str:
    """The start time of a process in system ticks; "ended" when it is gone or a zombie."""
    if not _PROC.joinpath("self/stat").exists():
        return "unknown"
    try:
        # The program name is in brackets and may contain any character.
        state, *numbers = _PROC.joinpath(str(number), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return "ended"
    return "ended" if state in _ENDED_STATES else numbers[18]


@cache
def _machine() -> str:
    """A hash of this machine, its last boot, and the namespace of process ids."""
    import platform  # noqa: PLC0415 - it compiles nine expressions, and few commands ask

    parts = [platform.node()]
    try:
        parts += [(_PROC / "sys/kernel/random/boot_id").read_text().strip(), os.readlink(_PROC / "self/ns/pid")]
    except OSError:
        # Not Linux, or /proc is partly hidden: the host name must suffice.
        parts.append("")
    import hashlib  # noqa: PLC0415

    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def processes_that_opened(files: Iterable[Path]) -> list[int]:
    """The ids of other visible processes that have one of the files open; always empty outside Linux."""
    names = {os.path.realpath(file) for file in files}
    try:
        numbers = sorted(int(name) for name in os.listdir(_PROC) if name.isdecimal())
    except FileNotFoundError:
        return []
    return [number for number in numbers if number != os.getpid() and not names.isdisjoint(_open_files(number))]


def _open_files(number: int) -> set[str]:
    directory, found = f"{_PROC}/{number}/fd", set()
    # It may have ended, or belong to another user.
    with suppress(OSError):
        for name in os.listdir(directory):
            # The file may be closed by now.
            with suppress(FileNotFoundError):
                # Only the name is read: a stat would hang on a network drive that is gone.
                found.add(os.readlink(f"{directory}/{name}").removesuffix(_UNLINKED))
    return found
