"""The log of a database stays small however much is written, and is given up where it cannot work."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record.store import open_store
from tests.timing import GIVE_UP


@pytest.mark.slow
def test_the_log_does_not_grow_with_what_one_process_writes(tmp_path: Path) -> None:
    """It is copied back and restarted while writing continues, so it stays far smaller than all that was logged."""
    log = tmp_path / "state.db-wal"
    with open_store(tmp_path / "state.db") as store:
        store.sessions.create_session("s", "cli")
        logged, largest, deadline = 0, 0, time.monotonic() + GIVE_UP
        # On a busy machine the thread that copies the log back comes late: the test writes until it has come.
        while logged < max(100_000_000, 3 * largest):
            assert time.monotonic() < deadline, f"After {logged:,} bytes the log has {largest:,}."
            for number in range(100):
                store.messages.append_message("s", "user", f"message {number} " + "word " * 100)
            # Every append logs about four pages of 4 KB.
            logged += 100 * 4 * 4_096
            largest = max(largest, log.stat().st_size)


# Opens the store, writes and reads, and prints the journal and what is in it.
_PROGRAM = """
import sys
from memoranda.memory.record.store import open_store

with open_store(sys.argv[1]) as store:
    store.sessions.create_session(sys.argv[2], "cli")
    store.messages.append_message(sys.argv[2], "user", sys.argv[2])
    print(store.maintenance.journal, store.usage.statistics()["messages"])
"""


def _run_with_errors(
    call: str, error: str, files: Iterable[Path | str], path: Path, session: str
) -> subprocess.CompletedProcess[str]:
    """Run the program while a system call on these files fails."""
    paths = [word for file in files for word in ("-P", str(file))]
    trace = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"inject={call}:error={error}", *paths]
    words = [*trace, sys.executable, "-c", _PROGRAM, str(path), session]
    return subprocess.run(words, capture_output=True, text=True, timeout=GIVE_UP, check=False)


def _run_without_shared_memory(path: Path, session: str, error: str = "ENODEV") -> subprocess.CompletedProcess[str]:
    """Run the program while the system cannot map the shared memory of a log, as on some network drives."""
    return _run_with_errors("mmap", error, [f"{path}-shm", f"{path}-probe-shm"], path, session)


@pytest.fixture
def can_trace() -> None:
    """Skips where no system call can be made to fail."""
    if (
        shutil.which("strace") is None
        or subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("strace, which makes a system call fail, is not here or not allowed")


@pytest.mark.slow
def test_a_file_system_without_shared_memory_gets_no_log(tmp_path: Path, can_trace: None) -> None:
    """A new file, a second process, and a file with a log that was copied there; each warns once and keeps its rows."""
    path = tmp_path / "state.db"
    for number in (1, 2):
        done = _run_without_shared_memory(path, f"s{number}")
        assert (done.returncode, done.stdout) == (0, f"delete {number}\n"), done.stderr
        assert done.stderr.count("without shared memory") == 1
    # On an ordinary disk the log is back.
    plain = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(path), "s3"], capture_output=True, text=True, timeout=GIVE_UP, check=False
    )
    assert plain.stdout == "wal 3\n", plain.stderr
    with open_store(path) as store:
        store.sessions.create_session("s4", "cli")
        store.messages.append_message("s4", "user", "only in the log")
        copy = tmp_path / "copy" / "state.db"
        copy.parent.mkdir(mode=0o700)
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{copy}{ending}")
    done = _run_without_shared_memory(copy, "s5")
    assert done.stdout == "delete 5\n", done.stderr
    assert sorted(file.name for file in tmp_path.iterdir() if "probe" in file.name) == []


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENODEV", "EINVAL", "EACCES"])
def test_a_home_that_was_left_with_a_log_works_without_shared_memory(
    tmp_path: Path, can_trace: None, error: str
) -> None:
    """Its header asks for a log, because it was copied from another file system."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    assert path.read_bytes()[18:20] == b"\x02\x02"
    path.chmod(0o600)
    for number in (1, 2):
        done = _run_without_shared_memory(path, f"s{number}", error)
        assert done.stdout == f"delete {number}\n", done.stderr
    assert path.read_bytes()[18:20] == b"\x01\x01"


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP", "EACCES", "EAGAIN"])
def test_a_file_system_without_locks_is_refused_with_the_reason(tmp_path: Path, can_trace: None, error: str) -> None:
    """SQLite takes one of them for a bad disk, and the others for a lock of another process; nothing changes."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
    before = path.read_bytes()
    done = _run_with_errors("fcntl", error, [path, f"{path}-shm", f"{path}-locks"], path, "t")
    assert "memoranda.errors.NoLocksError" in done.stderr
    assert "file system without byte locks" in done.stderr
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]
