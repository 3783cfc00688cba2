"""Messages that an earlier version recorded get their checksums while a long-running process works."""

import threading
from pathlib import Path

import pytest

from memoranda.api import maintenance as record_upgrade
from memoranda.api.maintenance import upgrade_record, upgrade_record_in_background
from memoranda.memory.record.store import open_store
from tests.memory.record.conftest import ask
from tests.memory.record.test_checksums import make_older
from tests.timing import wait_until


def missing(path: Path) -> int:
    return int(ask(path, "SELECT count(*) AS n FROM messages WHERE checksum IS NULL")[0]["n"])


def test_checksums_of_an_earlier_version_are_added_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some seconds after the start, while the process does its work, and never twice."""
    monkeypatch.setattr(record_upgrade, "START_DELAY_SECONDS", 0.0)
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_messages("s", [{"role": "user", "content": str(number)} for number in range(30)])
    make_older(path)
    with open_store(path):
        assert missing(path) == 30
        with upgrade_record_in_background(path):
            wait_until(lambda: missing(path) == 0)
    before = path.read_bytes()
    upgrade_record(path, threading.Event())
    assert path.read_bytes() == before


def test_a_missing_record_is_not_created(tmp_path: Path) -> None:
    """There is nothing to add, and a failure is no reason to stop a process."""
    upgrade_record(tmp_path / "state.db", threading.Event())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "state.db").write_bytes(b"not a database" * 100)
    upgrade_record(tmp_path / "state.db", threading.Event())
