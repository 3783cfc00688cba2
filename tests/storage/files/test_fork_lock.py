"""A lock that another thread holds during a fork is free in the child, which has no such thread."""

import pytest

from memoranda.storage.files.fork_lock import ForkLock, fork_condition
from tests.forked import forking, held_by_another_thread, in_child
from tests.timing import GIVE_UP


@forking
def test_a_lock_of_another_thread_is_free_in_the_child() -> None:
    """And still locked in the parent."""
    lock = ForkLock()
    with held_by_another_thread(lock):
        assert in_child(lambda: lock.acquire(timeout=GIVE_UP) or pytest.fail("still locked")) == 0
        assert not lock.acquire(blocking=False)
    assert lock.acquire(blocking=False)


@forking
def test_a_condition_that_another_thread_uses_works_in_the_child() -> None:
    """The child neither waits for that thread nor is it confused by those that wait."""
    condition = fork_condition()

    def use() -> None:
        with condition:
            condition.notify_all()
            assert not condition.wait(0.01)

    with held_by_another_thread(condition):
        assert in_child(use) == 0


@forking
def test_the_thread_that_forks_keeps_its_own_lock() -> None:
    """It releases the lock on both sides, and can take it again."""
    lock = ForkLock()

    def use() -> None:
        assert lock.locked()
        lock.release()
        assert lock.acquire(timeout=GIVE_UP)

    with lock:
        assert in_child(use) == 0
        assert lock.locked()
    assert not lock.locked()
