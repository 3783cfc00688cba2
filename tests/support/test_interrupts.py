"""Deferred interrupts are raised in interruptible blocks, and nowhere else."""

import signal
import threading

import pytest

from memoranda.support.interrupts import deferred_interrupts, interruptible
from tests.timing import GIVE_UP, HANG

pytestmark = pytest.mark.slow


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_one_comes_with_the_next_waiting() -> None:
    """What is done before that is done to its end."""
    steps = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        _interrupt()
        steps.append("work")
        with interruptible:
            steps.append("waited")
    assert steps == ["work"]


def test_one_comes_at_once_to_who_waits() -> None:
    """And what follows is none of it."""
    with pytest.raises(KeyboardInterrupt), deferred_interrupts(), interruptible:
        _interrupt()
    with deferred_interrupts(), interruptible:
        pass


def test_without_anybody_who_waits_there_is_nothing_to_stop() -> None:
    """A second one is taken in earnest."""
    with deferred_interrupts():
        _interrupt()
    with deferred_interrupts(), interruptible:
        pass
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        _interrupt()
        _interrupt()


def test_another_thread_that_waits_lets_none_in() -> None:
    """It would come to the main thread."""
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        with interruptible:
            inside.set()
            go_on.wait(HANG)

    thread = threading.Thread(target=wait)
    thread.start()
    assert inside.wait(GIVE_UP)
    with deferred_interrupts():
        _interrupt()
    go_on.set()
    thread.join()


def test_afterwards_all_is_as_before() -> None:
    """Ctrl-C ends a program again."""
    with deferred_interrupts():
        pass
    with pytest.raises(KeyboardInterrupt):
        _interrupt()
