"""The SQLite store keeps the whole contract, with a write-ahead log and without."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.sqlite.engine import SqliteEngine
from tests.contracts.store import StoreContract
from tests.memory.record.conftest import quick_directory


class TestWithWriteAheadLog(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[SessionStore]:
        with quick_directory() as directory, open_store(directory / "home" / "state.db") as opened:
            yield opened

    @pytest.fixture
    def other(self) -> Iterator[SessionStore]:
        with quick_directory() as directory, open_store(directory / "home" / "state.db") as opened:
            yield opened


@pytest.mark.slow
class TestWithoutWriteAheadLog(TestWithWriteAheadLog):
    @pytest.fixture(autouse=True)
    def _no_shared_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memoranda.storage.sqlite.engine.SqliteEngine", partial(SqliteEngine, vfs="unix-dotfile"))

    def test_this_file_system_has_no_log(self, store: SessionStore) -> None:
        """SQLite's log cannot be used on the file system of these tests."""
        store.sessions.create_session("s", "cli")
        assert not Path(f"{Path(store.engine.location)}-wal").exists()
