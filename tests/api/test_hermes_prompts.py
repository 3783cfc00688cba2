"""Sessions get their prompts into their rows, where Hermes reads them, while a long-running process works."""

import threading
from pathlib import Path

import pytest

from memoranda.api import maintenance
from memoranda.api.maintenance import fill_prompts, fill_prompts_in_background
from memoranda.memory.record.store import open_store
from tests.memory.record.conftest import ask
from tests.memory.record.test_shared_prompts import change
from tests.timing import wait_until

pytestmark = pytest.mark.slow


def missing(path: Path) -> int:
    return int(ask(path, "SELECT count(*) AS n FROM sessions WHERE system_prompt IS NULL")[0]["n"])


def test_the_rows_are_filled_once_hermes_has_opened_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some seconds after the start, while the process does its work, and never twice."""
    monkeypatch.setattr(maintenance, "START_DELAY_SECONDS", 0.0)
    path = tmp_path / "state.db"
    with open_store(path) as store:
        for number in range(30):
            store.sessions.create_session(f"s{number}", "cli", system_prompt="You are a baker.")
    fill_prompts(path, threading.Event())
    assert missing(path) == 30
    change(path, "CREATE TABLE compression_locks (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL)")
    with fill_prompts_in_background(path):
        wait_until(lambda: missing(path) == 0)
    before = path.read_bytes()
    fill_prompts(path, threading.Event())
    assert path.read_bytes() == before


def test_a_missing_record_is_not_created(tmp_path: Path) -> None:
    """There is nothing to fill, and a failure is no reason to stop a process."""
    fill_prompts(tmp_path / "state.db", threading.Event())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "state.db").write_bytes(b"not a database" * 100)
    fill_prompts(tmp_path / "state.db", threading.Event())
