"""Defers Ctrl-C to places where it does no harm, for a program that continues after it.

Python may raise KeyboardInterrupt between any two steps, even inside its own locks, which then stay locked. While
interrupts are deferred, one is raised only where the main thread waits for long: `with interruptible:`.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Interruptible:
    """A block in which an interrupt may be raised, even one that was deferred before; only for the main thread."""

    def __init__(self) -> None:
        self._is_open = False
        self._is_pending = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._is_open = True
            if self._is_pending:
                self._raise()

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            self._is_open = False

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """The signal handler; a second Ctrl-C is raised at once."""
        if self._is_open or self._is_pending:
            self._raise()
        self._is_pending = True

    def reset(self) -> None:
        self._is_open = self._is_pending = False

    def _raise(self) -> None:
        self.reset()
        raise KeyboardInterrupt


interruptible = _Interruptible()


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Raise interrupts only inside `interruptible` blocks; one that is still pending at the end is dropped."""
    previous = signal.signal(signal.SIGINT, interruptible.handle_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        interruptible.reset()
