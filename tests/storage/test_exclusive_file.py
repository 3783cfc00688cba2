"""A damaged database is replaced only while no other process has it open, and no process loses anything by that."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.memory.record.health import salvage
from memoranda.memory.record.store import open_store
from memoranda.storage.salvage.rebuild import DamagedDatabase, rebuild
from memoranda.storage.sqlite import exclusive_file as alone_module
from memoranda.support.home import marker_path
from tests.conftest import tree
from tests.forked import Forked, Say, forking
from tests.storage.orphaned_stores import LOSSES, killed_store
from tests.timing import wait_until

pytestmark = [forking, pytest.mark.usefixtures("other_processes_open")]

_TAKE_IT = """
import sys
from pathlib import Path
from memoranda.storage.sqlite import exclusive_file
exclusive_file.processes_that_opened = lambda files: []
with exclusive_file.exclusive_access(Path(sys.argv[1])): pass
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "home" / "state.db"
    with open_store(file) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "first")
    return file


@contextmanager
def _open_in_another_process(path: Path) -> Iterator[int]:
    """Yields the id of another process that has the store open and is idle."""

    def hold(say: Say) -> None:
        open_store(path).messages.append_message("s", "user", "second")
        store = open_store(path)
        say(str(os.getpid()).encode())
        time.sleep(50)
        store.close()

    other = Forked(hold)
    try:
        yield int(other.heard())
    finally:
        other.kill()


@pytest.fixture
def no_process_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates a system that cannot list the processes that have a file open."""
    monkeypatch.setattr(alone_module, "processes_that_opened", lambda files: [])


def _count(path: Path) -> int:
    with open_store(path) as store:
        return len(store.messages.get_messages("s"))


@pytest.mark.slow
def test_a_store_that_another_process_has_open_is_not_replaced(path: Path) -> None:
    """Not a byte changes, and the process is named; when it has ended, it can be done."""
    with _open_in_another_process(path) as number:
        before = tree(path.parent)
        with pytest.raises(LockTimeoutError, match=rf"process {number}\b.*Nothing was changed.*doctor --fix"):
            salvage(path, path.with_name("kept"))
        assert tree(path.parent) == before
    assert salvage(path, path.with_name("kept"))["messages"] == 2
    assert _count(path) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("no_process_is_named")
def test_the_locks_alone_show_another_process(path: Path) -> None:
    """The other process neither reads nor writes at that time."""
    with _open_in_another_process(path):
        before = tree(path.parent)
        with pytest.raises(LockTimeoutError, match="another process"):
            salvage(path, path.with_name("kept"))
        assert tree(path.parent) == before


@pytest.mark.slow
@pytest.mark.usefixtures("no_process_is_named")
@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_log_that_lost_its_file_may_still_be_in_use(path: Path, lose: object) -> None:
    """By a process that has had the file open since before it was lost."""
    with _open_in_another_process(path):
        assert callable(lose)
        lose(path)
        before = tree(path.parent)
        with pytest.raises(LockTimeoutError):
            salvage(path, path.with_name("kept"))
        assert tree(path.parent) == before


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux tells who has a file open")
def test_a_process_that_has_lost_its_lock_is_noticed_all_the_same(path: Path) -> None:
    """It loses the lock when it reads the file apart from SQLite, and continues to write."""

    def hold(say: Say) -> None:
        store = open_store(path)
        path.read_bytes()
        say(b"ready")
        time.sleep(50)
        store.close()

    other = Forked(hold)
    other.heard()
    try:
        with pytest.raises(LockTimeoutError, match="is open in process"):
            salvage(path, path.with_name("kept"))
    finally:
        other.kill()


@pytest.mark.slow
def test_a_store_that_is_open_in_the_same_process_is_not_replaced(path: Path) -> None:
    """Locks would not keep a process from itself; and the ones that it has stay."""
    with open_store(path) as store:
        with pytest.raises(LockTimeoutError, match="open in this process"):
            salvage(path, path.with_name("kept"))
        other = subprocess.run([sys.executable, "-c", _TAKE_IT, str(path)], capture_output=True, text=True, check=False)
        assert "LockTimeoutError" in other.stderr
        store.messages.append_message("s", "user", "second")
    assert _count(path) == 2


@pytest.mark.slow
def test_a_process_that_waits_to_open_the_file_gets_the_new_one(path: Path) -> None:
    """Its writes are in the store, not in the kept file."""
    begun = path.with_name("begun")

    def write(say: Say) -> None:
        wait_until(begun.exists)
        with open_store(path) as store:
            store.messages.append_message("s", "user", f"of {os.getpid()}")

    def fill(damaged: DamagedDatabase, fresh: Path) -> None:
        with open_store(fresh) as store:
            store.sessions.create_session("s", "cli")
        # Without a marker, any store is the right one.
        marker_path(path).unlink()
        begun.touch()
        time.sleep(0.5)

    waiting = [Forked(write) for _ in range(3)]
    rebuild(path, path.with_name("kept"), lambda empty: open_store(empty).close(), fill)
    assert [other.wait() for other in waiting] == [0, 0, 0]
    assert _count(path) == 3
    assert _count(path.with_name("kept")) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("no_process_is_named")
def test_without_a_log_a_write_to_the_old_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process holds a lock, so an open file is not noticed; but none of its writes is lost silently."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")

    def write_late(say: Say) -> None:
        monkeypatch.setattr(
            "memoranda.storage.sqlite.database.choose_journal", lambda connection, path, deadline: "delete"
        )
        store = open_store(path)
        say(b"ready")
        wait_until(path.with_name("replaced").exists)
        with pytest.raises(StorageError, match="was moved or replaced"):
            store.messages.append_message("s", "user", "late")

    other = Forked(write_late)
    assert other.heard() == b"ready"
    salvage(path, path.with_name("kept"))
    path.with_name("replaced").touch()
    assert other.wait() == 0
    assert _count(path) == 1


@pytest.mark.slow
def test_one_of_two_concurrent_repairs_is_refused(path: Path) -> None:
    """It does not disturb the other one."""
    refused: list[int] = []

    def repair(say: Say) -> None:
        with pytest.raises(LockTimeoutError):
            salvage(path, path.with_name("kept too"))

    def fill(damaged: DamagedDatabase, fresh: Path) -> None:
        with open_store(fresh) as store:
            store.sessions.create_session("s", "cli")
        refused.append(Forked(repair).wait())

    rebuild(path, path.with_name("kept"), lambda empty: open_store(empty).close(), fill)
    assert refused == [0]
    assert {each.name for each in path.parent.iterdir()} == {"state.db", "state.marker.json", "kept"}


@pytest.mark.slow
def test_what_was_there_is_kept_byte_for_byte(tmp_path: Path) -> None:
    """The file and its log."""
    path = killed_store(tmp_path / "state.db")
    before = {name: tmp_path.joinpath(f"state.db{name}").read_bytes() for name in ("", "-wal")}
    salvage(path, tmp_path / "kept")
    assert {name: tmp_path.joinpath(f"kept{name}").read_bytes() for name in ("", "-wal")} == before
    assert {each.name for each in tmp_path.iterdir()} == {"state.db", "state.marker.json", "kept", "kept-wal"}
    assert _count(path) == 20


@pytest.mark.parametrize("name", ["kept", "kept-wal", "kept.wal"])
def test_what_was_kept_before_is_not_written_over(path: Path, name: str) -> None:
    """It may be all that is left of an earlier damage."""
    path.with_name(name).write_bytes(b"earlier")
    before = tree(path.parent)
    with pytest.raises(StorageError, match="not overwritten"):
        salvage(path, path.with_name("kept"))
    assert tree(path.parent) == before


@pytest.mark.slow
@pytest.mark.parametrize("lose", [*LOSSES.values(), lambda path: None], ids=[*LOSSES, "there"])
def test_a_repair_that_fails_changes_nothing(tmp_path: Path, lose: object) -> None:
    """For example, the disk is full."""
    path = killed_store(tmp_path / "state.db")
    assert callable(lose)
    lose(path)
    before = tree(tmp_path)

    def fill(damaged: DamagedDatabase, fresh: Path) -> None:
        open_store(fresh).close()
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        rebuild(path, tmp_path / "kept", lambda empty: open_store(empty).close(), fill)
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_a_journal_of_the_old_file_is_not_played_back_into_the_new_one(path: Path) -> None:
    """It is kept with the file that it belongs to."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")

    def die_while_writing(say: Say) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', ?, 1)",
            [("x" * 5000,) for _ in range(200)],
        )
        os._exit(9)

    assert Forked(die_while_writing).wait() == 9
    journal = Path(f"{path}-journal").read_bytes()
    salvage(path, path.with_name("kept"))
    assert not Path(f"{path}-journal").exists()
    assert path.with_name("kept-journal").read_bytes() == journal
    with open_store(path) as store:
        assert store.maintenance.check_integrity() == []
