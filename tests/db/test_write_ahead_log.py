"""The log of a database stays small, however much is written."""

import time
from pathlib import Path

import pytest

from memoranda.sessions.store import open_store
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
            # Every append logs about five pages of 8 KB.
            logged += 100 * 5 * 8_192
            largest = max(largest, log.stat().st_size)
