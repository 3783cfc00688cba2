"""One import at a time in a home; a second one learns who holds the lock."""

import os
from pathlib import Path

import pytest

import memoranda
from memoranda.importers.importer import LOCK_FILE, ImportRunningError, import_lock
from memoranda.integrations.hooks import capture
from memoranda.storage.files.file_lock import FileLock
from tests.importers.claude_code_lines import PRESENT, SESSION
from tests.importers.import_home import write_lines


def test_one_import_at_a_time_has_its_turn(tmp_path: Path) -> None:
    """A second one learns who is at work; when that is done, it is the only one."""
    told: list[str] = []
    with (
        import_lock(tmp_path / "home", 0.0),
        pytest.raises(ImportRunningError, match=f"process {os.getpid()} ") as refused,
        import_lock(tmp_path / "home", 0.05, told.append),
    ):
        pass
    assert told == [refused.value.holder]
    with import_lock(tmp_path / "home", 0.0):
        pass


def test_a_hook_does_not_wait_for_a_long_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It skips its turn quietly; the next event takes in what was said meanwhile."""
    monkeypatch.setattr(capture, "_LOCK_TIMEOUT", 0.05)
    transcript = write_lines(tmp_path / "projects" / "p" / f"{SESSION}.jsonl", PRESENT)
    with memoranda.open(tmp_path / "home") as memory:
        memory.sessions.session_count()
        with FileLock(memory.home.root / LOCK_FILE, timeout=0.0):
            assert capture.capture_transcript(memory, transcript, "claude-code") is None
        assert memory.sessions.session_count() == 0
        tally = capture.capture_transcript(memory, transcript, "claude-code")
        assert tally is not None
        assert tally.messages == 9
