"""Old sessions are pruned once per interval by any process, and a prune that was not completed is repeated."""

import sqlite3
import time
from pathlib import Path

import pytest

from memoranda import SessionDB
from memoranda.errors import StorageError

pytestmark = pytest.mark.slow

DAY = 86_400.0
SET_LAST = "INSERT INTO state_meta (key, value) VALUES ('last_auto_prune', ?)"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A record with thirty sessions that are a hundred days old: more than one step."""
    then = time.time() - 100 * DAY
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        for number in range(30):
            db.create_session(f"s{number}", "cli", started_at=then)
            db.append_message(f"s{number}", "user", "hello", timestamp=then)
            db.end_session(f"s{number}", "user_exit")
    return path


def test_a_prune_that_was_stopped_is_completed_by_the_next(state: Path) -> None:
    """A process that ends soon does not postpone the rest for a day."""
    answers = iter([False, True])
    with SessionDB(state) as db:
        first = db.prune_when_due(40, stopped=lambda: next(answers))
        assert first is not None and 0 < first < 30
        assert db.prune_when_due(40) == 30 - first
        assert db.prune_when_due(40) is None


def test_a_prune_that_failed_is_repeated_by_the_next(state: Path) -> None:
    """What failed is raised, and the next call is due."""
    with SessionDB(state) as db:
        with sqlite3.connect(state) as other:
            other.execute("CREATE TRIGGER refuse BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'no'); END")
        with pytest.raises((StorageError, sqlite3.Error)):
            db.prune_when_due(40)
        with sqlite3.connect(state) as other:
            other.execute("DROP TRIGGER refuse")
        assert db.prune_when_due(40) == 30


def test_a_time_in_the_future_does_not_turn_pruning_off(state: Path) -> None:
    """A clock that was wrong once has no effect once it is right."""
    with SessionDB(state) as db:
        with sqlite3.connect(state) as other:
            other.execute(
                "INSERT INTO state_meta (key, value) VALUES ('last_auto_prune', ?)", (repr(time.time() + DAY),)
            )
        assert db.prune_when_due(40) == 30
