"""Values that are put into a shared place for a while, such as the environment, and taken out by their last user."""

import threading
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass


@dataclass(slots=True)
class _Lent:
    value: str
    borrower: str
    count: int = 0


class EnvConflictError(Exception):
    """A name is lent out with another value."""


class EnvLease:
    """`values` are those that count for the borrower: what was there before anybody lent anything stays."""

    def __init__(self, lending: "EnvLeases", values: Mapping[str, str], names: frozenset[str]) -> None:
        self.values = dict(values)
        self._lending = lending
        self._names = names

    def release(self) -> None:
        """May be called more than once."""
        names, self._names = self._names, frozenset()
        self._lending.give_back(names)


class EnvLeases:
    """Lends values into one place; a name has one value at a time."""

    def __init__(self, place: MutableMapping[str, str]) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._lent: dict[str, _Lent] = {}

    def acquire(self, values: Mapping[str, str], borrower: str) -> EnvLease:
        """Put values there, all of them or none; raises ClashError when one is there for somebody else."""
        with self._lock:
            for name, value in values.items():
                other = self._lent.get(name)
                if other is not None and other.value != value:
                    raise EnvConflictError(f"{name} has another value for {other.borrower}, which is in use")
            names = {name for name in values if name in self._lent or name not in self._place}
            for name in names:
                self._lent.setdefault(name, _Lent(values[name], borrower)).count += 1
                self._place[name] = values[name]
            counts = {name: self._place[name] for name in values}
        return EnvLease(self, counts, frozenset(names))

    def give_back(self, names: frozenset[str]) -> None:
        with self._lock:
            for name in names:
                lent = self._lent[name]
                lent.count -= 1
                if not lent.count:
                    del self._lent[name]
                    # Somebody may have put something else there meanwhile, which is not ours to take.
                    if self._place.get(name) == lent.value:
                        del self._place[name]
