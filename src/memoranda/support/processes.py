"""Identifies processes, so that others can tell whether one has ended, and finds those that have a file open.

A process id is not enough: the system gives it to another process later, and it means a different process on another
machine or in another container. So an identity also contains the machine and the start time, where the system has them.
"""

import hashlib
import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_ENDED_STATES = ("Z", "X")
_UNLINKED = " (deleted)"


def process_identity() -> str:
    """The name of the process that asks; a forked one has its own."""
    number = os.getpid()
    return f"{number}.{_began(number)}.{_machine()}"


def has_ended(name: str) -> bool:
    """Whether the process of that name is known to have ended; one on another machine, or with no such name, is not."""
    number, _, rest = name.partition(".")
    began, _, where = rest.partition(".")
    if sys.platform == "win32" or not number.isdecimal() or not began or where != _machine():
        # Windows would end the process instead of telling.
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return _began(int(number)) != began


def _began(number: int) -> str:
    """When a process began, in the system's own count; "ended" when it only waits to be cleared away."""
    if not _PROC.joinpath("self/stat").exists():
        return "unknown"
    try:
        # The name of the program stands in brackets, and may have any character in it.
        state, *numbers = _PROC.joinpath(str(number), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return "ended"
    return "ended" if state in _ENDED_STATES else numbers[18]


@cache
def _machine() -> str:
    """This machine since it was started, and which processes can be seen from here."""
    parts = [platform.node()]
    try:
        parts += [(_PROC / "sys/kernel/random/boot_id").read_text().strip(), os.readlink(_PROC / "self/ns/pid")]
    except OSError:
        # Not Linux, or a part of it is hidden: the name of the machine has to do.
        parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def processes_that_opened(files: Iterable[Path]) -> list[int]:
    """The numbers of those that can be seen from here; none where the system does not tell, as only Linux does."""
    names = {os.path.realpath(file) for file in files}
    try:
        numbers = sorted(int(name) for name in os.listdir(_PROC) if name.isdecimal())
    except FileNotFoundError:
        return []
    return [number for number in numbers if number != os.getpid() and not names.isdisjoint(_open_in(number))]


def _open_in(number: int) -> set[str]:
    directory, found = f"{_PROC}/{number}/fd", set()
    # It may have ended, or belong to somebody else.
    with suppress(OSError):
        for name in os.listdir(directory):
            # Closed in the meantime.
            with suppress(FileNotFoundError):
                # The name alone: to look at the file itself would mean to wait for a network drive that is gone.
                found.add(os.readlink(f"{directory}/{name}").removesuffix(_UNLINKED))
    return found
