"""Leases on environment variables: values that are set temporarily and removed when the last lease is released."""

import threading
from collections.abc import Collection, Mapping, MutableMapping

from memoranda.support.lazy_dataclass import dataclass


@dataclass(slots=True)
class _LeasedValue:
    value: str
    holder: str
    count: int = 0


class EnvConflictError(Exception):
    """A variable is leased with another value."""


class EnvLease:
    """`values` are what the holder of the lease sees: a variable that was set before any lease keeps its value."""

    def __init__(self, leases: "EnvLeases", values: Mapping[str, str], names: frozenset[str]) -> None:
        self.values = dict(values)
        self._leases = leases
        self._names = names

    def release(self) -> None:
        """Remove the values, unless another lease needs them. May be called more than once."""
        names, self._names = self._names, frozenset()
        self._leases.release(names)


class EnvLeases:
    """Hands out leases on one environment; a variable has one value at a time."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._leased: dict[str, _LeasedValue] = {}

    def acquire(self, values: Mapping[str, str], holder: str, others: Collection[str] = ()) -> EnvLease:
        """Set all values or none; raises EnvConflictError when another holder has another value for one.

        `others` are variables that the holder sees if they are set, unless another holder has set them.
        """
        with self._lock:
            for name, value in values.items():
                other = self._leased.get(name)
                if other is not None and other.value != value:
                    raise EnvConflictError(f"{name} has another value for {other.holder}, which is in use")
            names = {name for name in values if name in self._leased or name not in self._environment}
            for name in names:
                self._leased.setdefault(name, _LeasedValue(values[name], holder)).count += 1
                self._environment[name] = values[name]
            shown = {name for name in others if name in self._environment and name not in self._leased}
            visible = {name: self._environment[name] for name in {*values, *shown}}
        return EnvLease(self, visible, frozenset(names))

    def release(self, names: frozenset[str]) -> None:
        with self._lock:
            for name in names:
                leased = self._leased[name]
                leased.count -= 1
                if not leased.count:
                    del self._leased[name]
                    # A value that the host has set meanwhile stays.
                    if self._environment.get(name) == leased.value:
                        del self._environment[name]
