"""Time limits of tests, so that none depends on how fast or how busy the machine is.

A test that proves that something does not wait lets its peer hang for `HANG` seconds and gives the code `GIVE_UP`
seconds: a machine under heavy load stays well below, and code that waits goes beyond.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_Value = TypeVar("_Value")

GIVE_UP = 100.0
"""Seconds after which a test stops waiting for something that must happen."""

HANG = 200.0
"""Seconds for which a peer hangs that nothing may wait for."""


def wait_until(condition: Callable[[], _Value], seconds: float = GIVE_UP, *, every: float = 0.01) -> _Value:
    """Return what a condition gives as soon as that is true; fail when it never is, so that no test hangs."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"This did not happen within {seconds:.0f} seconds."
        time.sleep(every)
    return value


@contextmanager
def without_waiting(limit: float = GIVE_UP) -> Iterator[None]:
    """Assert that the block ends long before a peer that hangs for `HANG` seconds would answer."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < limit
