"""A database that is deleted or replaced while it is open: nothing is acknowledged that would be lost."""

import os
import shutil
from pathlib import Path

import pytest

from memoranda.errors import ReplacedStoreError, StorageError
from memoranda.memory.record.store import open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def _with_backup(path: Path) -> Path:
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "before")
    backup = path.with_name("backup")
    shutil.copy(path, backup)
    return backup


def test_a_deleted_store_acknowledges_nothing(path: Path) -> None:
    """And is not silently created again as an empty one."""
    _with_backup(path)
    with open_store(path) as store:
        store.messages.append_message("s", "user", "one")
        for name in path.parent.glob("state.db*"):
            name.unlink()
        with pytest.raises(ReplacedStoreError, match="deleted or replaced"):
            store.messages.append_message("s", "user", "two")
        with pytest.raises(StorageError):
            store.messages.append_message("s", "user", "three")
        assert not path.exists()


def test_a_replaced_store_continues_in_the_new_file(path: Path) -> None:
    """The first write is refused, the next one goes to the new file, which lacks earlier writes to the old one."""
    backup = _with_backup(path)
    with open_store(path) as store:
        store.messages.append_message("s", "user", "in the old file")
        for name in path.parent.glob("state.db-*"):
            name.unlink()
        os.replace(backup, path)
        with pytest.raises(ReplacedStoreError):
            store.messages.append_message("s", "user", "refused")
        store.messages.append_message("s", "user", "after")
    with open_store(path) as store:
        assert [message["content"] for message in store.messages.get_messages("s")] == ["before", "after"]
        assert store.maintenance.check_integrity() == []


def test_a_reader_sees_the_new_file(path: Path) -> None:
    """It gets no error."""
    backup = _with_backup(path)
    with open_store(path) as store:
        store.messages.append_message("s", "user", "in the old file")
        assert len(store.messages.get_messages("s")) == 2
        for name in path.parent.glob("state.db-*"):
            name.unlink()
        os.replace(backup, path)
        assert [message["content"] for message in store.messages.get_messages("s")] == ["before"]
