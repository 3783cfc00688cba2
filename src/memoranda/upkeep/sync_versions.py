"""Versions: which of two states of the same thing is the later one, or whether both were made without the other.

A version is a name that no other state has, and the names of all versions that it replaced. Names begin with a time,
so that all machines agree on an order where one is needed. What was recorded before the first synchronisation is named
by its content, so that the same import on two machines is the same version.
"""

import hashlib
import json
import math
import time
from collections.abc import Collection
from dataclasses import field
from typing import Any

from memoranda.support.lazy_dataclass import dataclass

_DIGITS = 16
# A clock this far ahead would win every comparison for as long.
MAX_AHEAD_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Version:
    """The name of a state, and of those it replaced; `digest` recognises its content."""

    name: str
    digest: str
    replaced: frozenset[str] = field(default_factory=frozenset)

    def follows(self, other: "Version") -> bool:
        """Whether this state was made with knowledge of the other one."""
        return self.name == other.name or other.name in self.replaced

    def merged(self, other: "Version", digest: str) -> "Version":
        """The version of the state that replaces both; every machine gives it the same name."""
        first, second = sorted((self.name, other.name))
        joined = hashlib.sha256(f"{first}\n{second}".encode()).hexdigest()[:16]
        return Version(f"{second}+{joined}", digest, self.replaced | other.replaced | {first, second})


class Clock:
    """Gives names to versions, each later than all that it has seen."""

    def __init__(self, machine: str, last: int) -> None:
        self._machine = machine
        self.last = last

    def name(self) -> str:
        self.last = max(int(time.time() * 1000), self.last + 1)
        return f"{self.last:0{_DIGITS}d}.{self._machine}"

    def see(self, name: str) -> None:
        self.last = max(self.last, time_of(name))

    def next_version(self, before: Version, digest: str) -> Version:
        return Version(self.name(), digest, before.replaced | {before.name})


def first_version(digest: str) -> Version:
    """The version of what existed before the first synchronisation."""
    return Version(f"{0:0{_DIGITS}d}.{digest[:16]}", digest)


def is_first(version: Version) -> bool:
    """Whether a version is that of what existed before the first synchronisation, and was never merged."""
    return not time_of(version.name) and "+" not in version.name


def time_of(name: str) -> int:
    """The time in the name of a version, in milliseconds; 0 if it has none."""
    digits = name[:_DIGITS]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def is_ahead(names: Collection[str], now: float) -> bool:
    """Whether one of the names has a time that is too far in the future."""
    limit = (now + MAX_AHEAD_SECONDS) * 1000
    return any(time_of(name) > limit for name in names)


def digest_of(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def is_number(value: Any) -> bool:
    """Whether a received value is a number that a table can store, and JSON exactly."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 2**53
    )
