"""Time limits of tests, so that none depends on how fast or how busy the machine is.

A test that proves that something does not wait lets its peer hang for `HANG` seconds and gives the code `GIVE_UP`
seconds: a machine under heavy load stays well below, and code that waits goes beyond.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

GIVE_UP = 100.0
"""Seconds after which a test stops waiting for something that must happen."""

HANG = 200.0
"""Seconds for which a peer hangs that nothing may wait for."""


@contextmanager
def without_waiting(limit: float = GIVE_UP) -> Iterator[None]:
    """Assert that the block ends long before a peer that hangs for `HANG` seconds would answer."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < limit
