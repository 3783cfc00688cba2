"""Ctrl-C where it does no harm, for a program that goes on after it.

Python lets an interrupt in between any two steps, also into the midst of its own locks, which are torn then. While
interrupts are held, one comes only where somebody waits for a long time: `with waiting:`.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Interruptible:
    """A moment at which an interrupt may come; one that came before is let in now. Only the main thread has any."""

    def __init__(self) -> None:
        self._open = False
        self._came = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._open = True
            if self._came:
                self._let_in()

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            self._open = False

    def take(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal; whoever presses twice does not want to wait any more."""
        if self._open or self._came:
            self._let_in()
        self._came = True

    def forget(self) -> None:
        self._open = self._came = False

    def _let_in(self) -> None:
        self.forget()
        raise KeyboardInterrupt


interruptible = _Interruptible()


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Let interrupts come only at good moments. One for which there was none until the end has nothing to stop."""
    previous = signal.signal(signal.SIGINT, interruptible.take)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        interruptible.forget()
