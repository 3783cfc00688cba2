"""Processes for tests, forked from this one: they begin at once, say how far they are, and can be killed."""

import os
import signal
import traceback
from collections.abc import Callable

import pytest

Say = Callable[[bytes], object]
_ROOM = 1 << 20

# Pytest's workers have threads, which is no harm here: the child starts its own, and never returns to pytest.
forking = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


class Forked:
    """A child that does some work; what it says through the function that it is given can be read here."""

    def __init__(self, work: Callable[[Say], object], longest: int = 100) -> None:
        """After `longest` seconds it is taken to hang."""
        self._code: int | None = None
        self._pipe, writer = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            code = 1
            try:
                # Pytest's own limit uses the same signal, with a handler that would only raise an error here.
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(longest)
                os.close(self._pipe)
                work(lambda said: os.write(writer, said))
                code = 0
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(code)
        os.close(writer)

    def heard(self) -> bytes:
        """What it says next, once it has said something; empty when it has ended."""
        said = os.read(self._pipe, _ROOM)
        if not said:
            self._ended()
        return said

    def rest(self) -> bytes:
        """Everything else that it says, once it has ended; it must end well."""
        said = self._rest()
        assert self._ended() == 0
        return said

    def kill(self) -> bytes:
        """Kill it with -9; what it had said that was not read yet."""
        os.kill(self._process, signal.SIGKILL)
        said = self._rest()
        self._ended()
        return said

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        if self._code is None:
            self._rest()
        return self._ended()

    def _rest(self) -> bytes:
        with open(self._pipe, "rb") as pipe:
            return pipe.read()

    def _ended(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        assert self._code != -signal.SIGALRM, "The child hangs."
        return self._code


def in_child(do: Callable[[], object], longest: int = 100) -> int:
    """Do something in a forked process; its exit code, 0 when nothing was raised."""
    return Forked(lambda say: do(), longest).wait()
