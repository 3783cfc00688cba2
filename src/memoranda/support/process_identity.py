"""The name of a process, by which others on the same machine can tell that it has ended.

A number alone is not enough: it is given to another process some day, and means another one on another machine or in
another container. So a name holds where it was given and when the process began, as far as the system tells.
"""

import hashlib
import os
import platform
import sys
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_ENDED = ("Z", "X")


def this_process() -> str:
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
    return "ended" if state in _ENDED else numbers[18]


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
