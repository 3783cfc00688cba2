"""A full disk, a read-only directory and a file system without shared memory: clear errors, nothing lost."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from memoranda.errors import StorageError
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.sqlite.engine import SqliteEngine
from tests.conftest import mode, unprivileged


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting needs root on Linux")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def _fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return ballast


def _append_until_full(store: SessionStore, count: int = 0) -> int:
    with pytest.raises(StorageError, match="disk is full"):
        while True:
            store.messages.append_message("s", "user", f"{count} " + "x" * 3000)
            count += 1
    return count


def _numbers(store: SessionStore) -> list[int]:
    return [int(row["content"].split()[0]) for row in store.messages.get_messages("s")]


def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    """The error says so, stored messages stay readable, and appends work again once there is space."""
    path = small_disk / "home" / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "0 first")
        ballast = _fill(small_disk)
        count = _append_until_full(store, 1)
        assert _numbers(store) == list(range(count))
        assert store.maintenance.check_integrity() == []
        assert store.maintenance.miscounted_sessions() == []
        ballast.unlink()
        store.messages.append_message("s", "user", f"{count} again")
        assert _numbers(store) == list(range(count + 1))
    with open_store(path) as store:
        assert _numbers(store) == list(range(count + 1))
        assert store.maintenance.check_integrity() == []


@pytest.mark.slow
def test_a_small_disk_stores_the_messages_that_fit(small_disk: Path) -> None:
    """Most of the space holds messages and not the log, and space that is freed later is used."""
    spare = small_disk / "spare"
    spare.write_bytes(bytes(300_000))
    path = small_disk / "home" / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        count = _append_until_full(store)
        # Two megabytes without the spare file; each of these messages has a page of 4 KB.
        assert count * 3000 > 0.5 * 1_800_000
        assert _append_until_full(store, count) == count
        spare.unlink()
        more = _append_until_full(store, count)
        assert (more - count) * 3000 > 0.5 * 300_000
    with open_store(path) as store:
        assert _numbers(store) == list(range(more))
        assert store.maintenance.check_integrity() == []


@pytest.mark.slow
def test_a_log_that_filled_the_disk_is_emptied_when_there_is_space(small_disk: Path) -> None:
    """A home whose log another program let grow records again after a little space was freed."""
    spare = small_disk / "spare"
    spare.write_bytes(bytes(500_000))
    path = small_disk / "home" / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        assert isinstance(store.engine, SqliteEngine)
        # As another program may, let the log grow until the disk is full.
        store.engine._checkpoints._until_check = 10_000
        count = _append_until_full(store)
        assert count * 3000 < 0.2 * 1_600_000
    spare.unlink()
    with open_store(path) as store:
        more = _append_until_full(store, count)
        assert more * 3000 > 0.5 * 2_000_000
        assert _numbers(store) == list(range(more))


def test_a_store_can_be_opened_and_read_on_a_full_disk(small_disk: Path) -> None:
    """Without losing sight of what is in the log, and written again when there is room."""
    path = small_disk / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "0 first")
    ballast = _fill(small_disk)
    try:
        store = open_store(path)
    except StorageError as error:
        assert "disk is full" in str(error) or "cannot" in str(error)
    else:
        with store:
            assert _numbers(store) == [0]
            with pytest.raises(StorageError, match="disk"):
                while True:
                    store.messages.append_message("s", "user", "1 " + "x" * 3000)
    ballast.unlink()
    with open_store(path) as store:
        assert _numbers(store)[0] == 0
        assert store.messages.append_message("s", "user", "9 again")


def test_a_new_store_on_a_full_disk_is_refused_clearly(small_disk: Path) -> None:
    """And can be made when there is room, whatever was left."""
    ballast = _fill(small_disk)
    with pytest.raises(StorageError):
        open_store(small_disk / "home" / "state.db")
    ballast.unlink()
    with open_store(small_disk / "home" / "state.db") as store:
        assert store.sessions.create_session("s", "cli")


@pytest.mark.parametrize("file_too", [False, True])
def test_a_read_only_directory_can_be_read(file_too: bool) -> None:
    """Everything that was recorded; a write is refused and says why."""
    with unprivileged() as directory:
        home = directory / "home"
        path = home / "state.db"
        with open_store(path) as store:
            store.sessions.create_session("s", "cli", title="T")
            store.messages.append_message("s", "user", "there")
        if file_too:
            path.chmod(0o400)
        home.chmod(0o500)
        try:
            with open_store(path) as store:
                assert [row["content"] for row in store.messages.get_messages("s")] == ["there"]
                assert store.maintenance.read_only
                assert len(store.listing.list_sessions_rich()) == 1
                assert store.feed.head().message.count == 1
                assert store.maintenance.check_integrity() == []
                with pytest.raises(StorageError, match=r"read-?only|reading only"):
                    store.messages.append_message("s", "user", "refused")
                assert store.feed.store_id()
        finally:
            home.chmod(0o700)


def test_a_copy_with_its_log_in_a_read_only_directory_hides_nothing() -> None:
    """Messages that are only in the log are shown, or the store says that it cannot show them."""
    with unprivileged() as directory:
        copy = directory / "copy"
        copy.mkdir()
        with open_store(directory / "state.db") as store:
            store.sessions.create_session("s", "cli")
            store.messages.append_message("s", "user", "in the log")
            for name in ("state.db", "state.db-wal"):
                shutil.copy(directory / name, copy / name)
        copy.chmod(0o500)
        try:
            with open_store(copy / "state.db") as store:
                assert [row["content"] for row in store.messages.get_messages("s")] == ["in the log"]
        except StorageError as error:
            assert "log" in str(error)
        finally:
            copy.chmod(0o700)


def test_a_store_that_cannot_be_made_is_refused_clearly(tmp_path: Path) -> None:
    """A directory that may not be written, a file where a directory should be, a directory where the file should be."""
    with unprivileged() as directory:
        directory.chmod(0o500)
        with pytest.raises(StorageError):
            open_store(directory / "state.db")
        with pytest.raises(StorageError):
            open_store(directory / "home" / "state.db")
        directory.chmod(0o700)
    (tmp_path / "file").write_text("a file")
    with pytest.raises(StorageError):
        open_store(tmp_path / "file" / "state.db")
    (tmp_path / "state.db").mkdir()
    with pytest.raises(StorageError):
        open_store(tmp_path / "state.db")
    assert (tmp_path / "file").read_text() == "a file"


def test_an_unreadable_file_is_refused_clearly() -> None:
    """The file does not change."""
    with unprivileged() as directory:
        open_store(directory / "state.db").close()
        (directory / "state.db").chmod(0o000)
        with pytest.raises(StorageError):
            open_store(directory / "state.db")


def test_the_files_are_private(store: SessionStore, path: Path) -> None:
    """The directory, the database and its log."""
    store.sessions.create_session("s", "cli")
    assert mode(path.parent) == 0o700
    assert {mode(file) for file in path.parent.iterdir()} == {0o600}


@pytest.fixture
def without_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite on a file system that has no shared memory."""
    monkeypatch.setattr("memoranda.storage.sqlite.engine.SqliteEngine", partial(SqliteEngine, vfs="unix-dotfile"))


def test_a_file_system_without_shared_memory_is_named_once_and_loudly(
    without_log: None, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for a file, however often it is opened; what is written there is still synced."""
    caplog.set_level(logging.WARNING)
    for number in range(3):
        with open_store(path) as store:
            store.sessions.create_session(f"s{number}", "cli")
            store.messages.append_message(f"s{number}", "user", "durable")
            assert store.maintenance.journal == "delete"
            assert isinstance(store.engine, SqliteEngine)
            writer = store.engine._writer
            assert writer is not None
            assert writer.execute("PRAGMA synchronous").fetchone() == (3,)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text
    assert "durable" in caplog.text
    with open_store(path) as store:
        assert store.usage.statistics()["messages"] == 3


def test_a_store_with_a_log_is_never_shown_without_the_log(path: Path, without_log: None) -> None:
    """On a file system without logs it works or is refused clearly, never shown without its last messages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memoranda.storage.sqlite.engine.SqliteEngine", SqliteEngine)
        with open_store(path) as store:
            store.sessions.create_session("s", "cli")
            store.messages.append_message("s", "user", "there")
    try:
        with open_store(path) as store:
            assert [row["content"] for row in store.messages.get_messages("s")] == ["there"]
    except StorageError as error:
        assert str(path) in str(error)
