"""The SQLite store keeps the whole contract, with a write-ahead log and without."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memoranda.db.sqlite import Database
from memoranda.sessions.store import SessionStore
from memoranda.testing.store_contract import StoreContract

# Tests of the contract that do not hold yet, with the number of the defect.
_KNOWN: dict[str, str] = {}

for _name, _reason in _KNOWN.items():
    setattr(StoreContract, _name, pytest.mark.xfail(strict=True, reason=_reason)(getattr(StoreContract, _name)))


class TestWithWriteAheadLog(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SessionStore]:
        with SessionStore(tmp_path / "one" / "state.db") as opened:
            yield opened

    @pytest.fixture
    def other(self, tmp_path: Path) -> Iterator[SessionStore]:
        with SessionStore(tmp_path / "other" / "state.db") as opened:
            yield opened


class TestWithoutWriteAheadLog(TestWithWriteAheadLog):
    @pytest.fixture(autouse=True)
    def _no_shared_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memoranda.sessions.store.Database", partial(Database, vfs="unix-dotfile"))

    def test_there_is_no_log_here(self, store: SessionStore) -> None:
        """The file system of these tests is one that SQLite's log cannot be used on."""
        store.create_session("s", "cli")
        assert not Path(f"{store.path}-wal").exists()
