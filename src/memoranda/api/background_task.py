"""A thread of a long-running process that begins some seconds after the process, and stops with it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A process that ends sooner is not long-running, and what it was started for comes first.
START_DELAY_SECONDS = 5.0
_STOP_SECONDS = 2.0


@contextmanager
def in_background(name: str, work: Callable[[threading.Event], object], delay: float) -> Iterator[None]:
    """Call `work` in a thread while the block runs; when the block ends, the event is set, and `work` should return."""
    stopped = threading.Event()

    def run() -> None:
        if not stopped.wait(delay):
            work(stopped)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=_STOP_SECONDS)
