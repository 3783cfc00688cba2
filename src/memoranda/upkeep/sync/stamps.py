"""Stamps: when and where something was last changed, as a text that orders all changes in the same way on all machines.

A stamp is the time of the last removal of the thing that its writer knew of, the time of the change, and the machine.
The greater stamp wins. So a removal wins over every change that was made without knowledge of it, and what is added
again after it wins over it. Times come from a hybrid clock: in milliseconds, and later than all that it has seen.
"""

import hashlib
import json
import math
import time
from typing import Any

_DIGITS = 16
# A clock this far ahead would win every comparison for as long.
MAX_AHEAD_SECONDS = 86_400


class Clock:
    """Gives stamps to the changes of this machine, each later than all that it has seen."""

    def __init__(self, machine: str, last: int) -> None:
        self._machine = machine
        self.last = last

    def change(self, before: str = "") -> str:
        """Return the stamp of a change of what had the stamp `before`."""
        return _stamp(_times(before)[0], self._next(), self._machine)

    def removal(self) -> str:
        """Return the stamp of a removal."""
        return _stamp(self._next(), self.last, self._machine)

    def untrusted_change(self, before: str) -> str:
        """Return a stamp directly after `before`, so that what a person says elsewhere meanwhile wins over it."""
        removed, changed = _times(before)
        return _stamp(removed, changed + 1, self._machine)

    def see(self, stamp: str) -> None:
        """Make all further stamps later than this one."""
        self.last = max(self.last, *_times(stamp))

    def _next(self) -> int:
        self.last = max(int(time.time() * 1000), self.last + 1)
        return self.last


def first_stamp(machine: str) -> str:
    """Return the stamp of what a machine had before it was first synchronised."""
    return _stamp(0, 0, machine)


def machine_of(stamp: str) -> str:
    """Return the machine that made a change."""
    return stamp.rpartition(".")[2]


def check_stamp(stamp: Any) -> None:
    """Raise ValueError unless a received text is a stamp, of a time that is not far in the future."""
    parts = stamp.split(".")
    if len(parts) != 3 or not all(len(part) == _DIGITS and part.isdecimal() for part in parts[:2]):
        raise ValueError("a stamp")
    if max(map(int, parts[:2])) > (time.time() + MAX_AHEAD_SECONDS) * 1000:
        raise ValueError("a stamp from the future; is the clock of a machine wrong?")


def _stamp(removed: int, changed: int, machine: str) -> str:
    return f"{removed:0{_DIGITS}d}.{changed:0{_DIGITS}d}.{machine}"


def _times(stamp: str) -> tuple[int, int]:
    if not stamp:
        return 0, 0
    removed, changed, _ = stamp.split(".")
    return int(removed), int(changed)


def digest_of(value: Any) -> str:
    """Return a digest of a JSON value that is the same on all machines."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def is_number(value: Any) -> bool:
    """Return whether a received value is a number that a table can store, and JSON exactly."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 2**53
    )
