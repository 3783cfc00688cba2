"""Old conversations are deleted by long-running processes, when the settings ask for it and not before."""

import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memoranda import SessionDB
from memoranda.api import maintenance as automatic_prune
from memoranda.api.maintenance import prune_if_due, prune_in_background
from memoranda.memory.record.settings import RetentionSettings
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

ON = RetentionSettings(auto_prune=True, retention_days=30)
DAY = 86_400.0
# The command, without the pause before the first deletion.
PROGRAM = """
import memoranda.api.maintenance as automatic_prune
automatic_prune.START_DELAY_SECONDS = 0.0
from memoranda.cli.main import main
main()
"""


@pytest.fixture
def state_db(tmp_path: Path) -> Path:
    """A record with two old conversations, one of them of another user, and an open, an archived and a new one."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        for name, days in (("old", 40), ("theirs", 40), ("open", 40), ("archived", 40), ("new", 20)):
            then = time.time() - days * DAY
            db.create_session(name, "cli", started_at=then, user_id="ana" if name == "theirs" else None)
            db.append_message(name, "user", f"in {name}", timestamp=then)
            if name != "open":
                db.end_session(name, "user_exit")
        db.set_session_archived("archived", True)
    return path


def names(path: Path) -> set[str]:
    with SessionDB(path) as db:
        return {row["id"] for row in db.export_all()}


def test_a_long_running_process_deletes_what_is_old_once(
    state_db: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended ones of all users, and the log says how many; not again before the interval has passed."""
    monkeypatch.setattr(automatic_prune, "START_DELAY_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "memoranda.api.maintenance")
    with prune_in_background(state_db, ON):
        wait_until(lambda: "Deleted 2 sessions" in caplog.text)
    assert "without a message for 30 days" in caplog.text
    assert names(state_db) == {"open", "archived", "new"}
    prune_if_due(state_db, RetentionSettings(auto_prune=True, retention_days=10), threading.Event())
    assert "new" in names(state_db)


def test_nothing_happens_without_the_setting_or_in_a_short_process(state_db: Path) -> None:
    """Off is the default, and the first seconds belong to what the process was started for."""
    before = threading.active_count()
    with prune_in_background(state_db, RetentionSettings()):
        assert threading.active_count() == before
    with prune_in_background(state_db, ON):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    assert "old" in names(state_db)


def test_a_missing_record_is_not_created(tmp_path: Path) -> None:
    """Looking for something to delete creates no file."""
    prune_if_due(tmp_path / "state.db", ON, threading.Event())
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The process continues."""
    (tmp_path / "state.db").write_bytes(b"no database" * 1000)
    prune_if_due(tmp_path / "state.db", ON, threading.Event())
    assert "could not be pruned" in caplog.text


def test_the_mcp_server_prunes(state_db: Path) -> None:
    """It logs what it deleted, and answers as before."""
    home = state_db.parent
    (home / "config.yaml").write_text("sessions:\n  auto_prune: true\n  retention_days: 30\n")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "--home", str(home), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        log = home / "logs" / "mcp.log"
        wait_until(lambda: log.exists() and "Deleted 2 sessions" in log.read_text())
        output, _ = server.communicate(timeout=GIVE_UP)
    assert output == b""
    assert names(state_db) == {"open", "archived", "new"}
