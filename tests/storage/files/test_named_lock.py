"""A named lock has one holder at a time among threads and processes, and none after its holder ended."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.storage.files import named_lock
from memoranda.storage.files.named_lock import NamedLock
from tests.forked import Forked, Say, forking, in_child
from tests.storage.interrupts import interrupted_at, moments
from tests.timing import GIVE_UP, wait_until, without_waiting

_HOLD = """
import sys, time
from pathlib import Path
from memoranda.storage.files.named_lock import NamedLock
lock = NamedLock(Path(sys.argv[1]), sys.argv[2])
lock.acquire(5)
print("held", flush=True)
time.sleep(200)
"""


def _holder(path: Path, name: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(path), name], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def _is_free(path: Path, name: str) -> bool:
    lock = NamedLock(path, name)
    try:
        lock.acquire(0)
    except LockTimeoutError:
        return False
    lock.release()
    return True


def test_another_process_holds_only_its_own_name_until_it_is_killed(tmp_path: Path) -> None:
    """Other names are free meanwhile, and after kill -9 its own name is free too."""
    path = tmp_path / "lock"
    process = _holder(path, "a")
    try:
        with pytest.raises(LockTimeoutError, match="another process"):
            NamedLock(path, "a").acquire(0.05)
        assert _is_free(path, "b")
    finally:
        process.kill()
        process.communicate()
    NamedLock(path, "a").acquire(GIVE_UP)


def test_threads_exclude_each_other_and_are_served_in_order(tmp_path: Path) -> None:
    """The thread that asked first gets the lock first, even if its holder asks for it again at once."""
    path, order, waiting = tmp_path / "lock", list[int](), threading.Semaphore(0)
    first = NamedLock(path, "a")
    first.acquire(0)

    def wait(number: int) -> None:
        waiting.release()
        lock = NamedLock(path, "a")
        lock.acquire(GIVE_UP)
        order.append(number)
        lock.release()

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(4)]
    file = named_lock._registry._files[str(path)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        waiting.acquire()
        wait_until(lambda: sum(map(len, file._queues.values())) >= number, every=0.001)  # noqa: B023
    first.release()
    first.acquire(GIVE_UP)
    assert order == [0, 1, 2, 3]
    for thread in threads:
        thread.join()


def test_releasing_one_name_keeps_the_others(tmp_path: Path) -> None:
    """The system drops all locks of a file when any descriptor of it is closed, so none is closed too early."""
    path = tmp_path / "lock"
    kept, other = NamedLock(path, "kept"), NamedLock(path, "other")
    kept.acquire(0)
    other.acquire(0)
    other.release()
    assert not _is_free(path, "kept")
    assert in_child(lambda: NamedLock(path, "kept").acquire(0)) == 1
    kept.release()
    assert _is_free(path, "kept")
    assert not named_lock._registry._files


@pytest.mark.slow
def test_a_lock_that_is_dropped_is_released(tmp_path: Path) -> None:
    """This is true even when the garbage collector drops it during another use of the locks."""
    path = tmp_path / "lock"
    dropped = NamedLock(path, "a")
    dropped.acquire(0)
    cycle = [dropped]
    cycle.append(cycle)  # type: ignore[arg-type]
    del dropped, cycle
    with named_lock._registry._exclusive():
        gc.collect()
    assert _is_free(path, "a")


@forking
def test_a_forked_process_neither_holds_nor_releases_the_locks_of_its_parent(tmp_path: Path) -> None:
    """It may take them once its parent is gone, and a copy of the lock in it means nothing."""
    path = tmp_path / "lock"
    lock = NamedLock(path, "a")
    lock.acquire(0)

    def release_and_hold(say: Say) -> None:
        lock.release()
        assert not _is_free(path, "a")
        say(b"tried")
        time.sleep(GIVE_UP)

    child = Forked(release_and_hold)
    assert child.heard() == b"tried"
    lock.release()
    assert _is_free(path, "a")
    child.kill()


def test_an_event_loop_does_not_wait_for_itself(tmp_path: Path) -> None:
    """The coroutine that would release the lock cannot run while its thread waits."""
    held = NamedLock(tmp_path / "lock", "a")

    async def nested() -> None:
        held.acquire(0)
        with without_waiting(), pytest.raises(LockTimeoutError):
            NamedLock(tmp_path / "lock", "a").acquire(2 * GIVE_UP)

    asyncio.run(nested())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_step_leaves_nothing_locked(tmp_path: Path) -> None:
    """Taking and releasing a lock can be interrupted anywhere."""
    path = tmp_path / "lock"

    def use() -> None:
        lock = NamedLock(path, "a")
        lock.acquire(0)
        lock.release()

    # What an interrupted use leaves behind stays young, so that collecting it does not look at everything else.
    gc.disable()
    try:
        for moment in range(1, moments(use) + 1):
            interrupted_at(moment, use)
            gc.collect(0)
            assert _is_free(path, "a"), moment
            # No descriptor is open, so the system has no lock of this process either.
            assert not named_lock._registry._files, moment
    finally:
        gc.enable()


def test_a_file_that_cannot_be_locked_is_an_error_with_its_path(tmp_path: Path) -> None:
    """It is not mistaken for a lock that another process holds."""
    (tmp_path / "lock").mkdir()
    with pytest.raises(StorageError, match="cannot be locked") as caught:
        NamedLock(tmp_path / "lock", "a").acquire(0)
    assert not isinstance(caught.value, LockTimeoutError)
