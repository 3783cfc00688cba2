"""A lock that waits for a bounded time and names its holder."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memoranda.errors import LockTimeoutError
from memoranda.storage.files.file_lock import FileLock, lock_holder
from tests.forked import Forked, Say, forking, in_child
from tests.timing import GIVE_UP

_HOLD = """
import sys, time
from pathlib import Path
from memoranda.storage.files.file_lock import FileLock
with FileLock(Path(sys.argv[1]), 5):
    print("held", flush=True)
    time.sleep(200)
"""


def _holder(path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_held_elsewhere_times_out_and_names_the_holder(tmp_path: Path) -> None:
    """The error tells which process holds the lock, so that a person can do something about it."""
    process = _holder(tmp_path / "lock")
    try:
        started = time.monotonic()
        with pytest.raises(LockTimeoutError, match=f"process {process.pid} "), FileLock(tmp_path / "lock", 0.2):
            pass
        assert time.monotonic() - started < GIVE_UP
    finally:
        process.kill()
        process.communicate()


def test_a_lock_falls_with_a_killed_holder(tmp_path: Path) -> None:
    """After kill -9 of the holder the next one gets the lock."""
    process = _holder(tmp_path / "lock")
    process.kill()
    process.communicate()
    with FileLock(tmp_path / "lock", 5) as lock:
        assert lock is not None


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """A counter that threads read, wait and write under the lock loses no step."""
    counter = [0]

    def count() -> None:
        for _ in range(20):
            with FileLock(tmp_path / "lock", 10):
                value = counter[0]
                time.sleep(0.0005)
                counter[0] = value + 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter[0] == 80


def test_a_lock_file_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    """Who waited for the old file does not take it for the lock that others will see."""
    process = _holder(tmp_path / "lock")
    try:
        (tmp_path / "lock").unlink()
        with FileLock(tmp_path / "lock", 5), pytest.raises(LockTimeoutError), FileLock(tmp_path / "lock", 0.05):
            pass
    finally:
        process.kill()
        process.communicate()


def test_each_holder_leaves_its_own_name(tmp_path: Path) -> None:
    """Whatever the one before it left, longer or shorter."""
    for left in ("", "x" * 500):
        (tmp_path / "lock").write_text(left)
        with FileLock(tmp_path / "lock", 1):
            assert lock_holder(tmp_path / "lock").startswith(f"process {os.getpid()} (")


@forking
def test_a_forked_process_does_not_release_the_lock_of_its_parent(tmp_path: Path) -> None:
    """It does so neither when it leaves the block nor when it ends."""

    def leave() -> None:
        lock.__exit__()
        with pytest.raises(LockTimeoutError), FileLock(tmp_path / "lock", 0.05):
            pass

    with FileLock(tmp_path / "lock", 1) as lock:
        assert in_child(leave) == 0
        with pytest.raises(LockTimeoutError), FileLock(tmp_path / "lock", 0.05):
            pass
    with FileLock(tmp_path / "lock", 0.05):
        pass


@forking
def test_a_forked_process_does_not_keep_the_lock_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    """No process could use what the lock protects until it ends."""
    reading, writing = os.pipe()

    def hold_and_fork(say: Say) -> None:
        with FileLock(tmp_path / "lock", 1):
            if os.fork() == 0:
                os.close(writing)
                say(b"forked")
                # Until the test closes its side.
                os.read(reading, 1)
                os._exit(0)
            time.sleep(GIVE_UP)

    parent = Forked(hold_and_fork)
    assert parent.heard() == b"forked"
    os.kill(parent._process, signal.SIGKILL)
    os.waitpid(parent._process, 0)
    with FileLock(tmp_path / "lock", 1):
        pass
    os.close(reading)
    os.close(writing)
