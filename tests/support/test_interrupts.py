"""Interrupts that are held come where somebody waits, and nowhere else."""

import signal
import threading

import pytest

from memoranda.support.interrupts import held, waiting


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_one_comes_with_the_next_waiting() -> None:
    """What is done before that is done to its end."""
    steps = []
    with pytest.raises(KeyboardInterrupt), held():
        _interrupt()
        steps.append("work")
        with waiting:
            steps.append("waited")
    assert steps == ["work"]


def test_one_comes_at_once_to_who_waits() -> None:
    """And what follows is none of it."""
    with pytest.raises(KeyboardInterrupt), held(), waiting:
        _interrupt()
    with held(), waiting:
        pass


def test_without_anybody_who_waits_there_is_nothing_to_stop() -> None:
    """A second one is taken in earnest."""
    with held():
        _interrupt()
    with held(), waiting:
        pass
    with pytest.raises(KeyboardInterrupt), held():
        _interrupt()
        _interrupt()


def test_another_thread_that_waits_lets_none_in() -> None:
    """It would come to the main thread."""
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        with waiting:
            inside.set()
            go_on.wait(10)

    thread = threading.Thread(target=wait)
    thread.start()
    assert inside.wait(10)
    with held():
        _interrupt()
    go_on.set()
    thread.join()


def test_afterwards_all_is_as_before() -> None:
    """Ctrl-C ends a program again."""
    with held():
        pass
    with pytest.raises(KeyboardInterrupt):
        _interrupt()
