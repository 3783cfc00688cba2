"""The schedule: turns are counted once and for good, and a review that was not made stays due."""

import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.agent.review.background import DueReview, ReviewSchedule
from memoranda.agent.review.report import ReviewReport, ReviewWrite
from memoranda.agent.review.reviewer import ReviewFocus
from memoranda.agent.review.settings import ReviewSettings
from memoranda.errors import LockTimeoutError, StorageError
from tests.conftest import mode
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

BOTH = ("memory", "skill_manage")
MEMORY = ("memory",)


def _schedule(home: Path, interval: int = 3, url: str = "") -> ReviewSchedule:
    return ReviewSchedule(home, ReviewSettings(nudge_interval=interval), server_url=url)


def _turns(
    schedule: ReviewSchedule, count: int, *used: str, user: str | None = None, session: str = "s1"
) -> list[DueReview]:
    for _ in range(count):
        schedule.record_turn(user, session, used=used, offered=MEMORY)
    return schedule.open_reviews(user)


def test_a_review_is_due_every_so_many_turns(tmp_path: Path, server_url: str) -> None:
    """And the count starts again."""
    schedule = _schedule(tmp_path, url=server_url)
    assert _turns(schedule, 2) == []
    (due,) = _turns(schedule, 1)
    assert (due.session_id, due.focus) == ("s1", ReviewFocus(True, False))
    schedule.end(due, ReviewReport("s1"))
    assert _turns(schedule, 2) == []
    assert len(_turns(schedule, 1)) == 1
    schedule.close()


def test_using_the_memory_tool_resets_the_count(tmp_path: Path) -> None:
    """One turn, then one with the tool, then two: not due; the third after it is."""
    schedule = _schedule(tmp_path)
    _turns(schedule, 1)
    _turns(schedule, 1, "memory")
    assert _turns(schedule, 2) == []
    assert len(_turns(schedule, 1)) == 1
    schedule.close()


def test_memory_and_skills_are_counted_apart_and_reviewed_together(tmp_path: Path, server_url: str) -> None:
    """A user who saves memories all the time is still asked about skills."""
    schedule = _schedule(tmp_path, url=server_url)
    for used in ((), ("memory",), ()):
        schedule.record_turn(None, "s1", used=used, offered=BOTH)
    (due,) = schedule.open_reviews(None)
    assert due.focus == ReviewFocus(memory=False, skills=True)
    schedule.record_turn(None, "s1", used=(), offered=BOTH)
    schedule.record_turn(None, "s1", used=(), offered=BOTH)
    assert [each.focus for each in schedule.open_reviews(None)] == [ReviewFocus(True, True)]
    schedule.close()


def test_turns_are_counted_across_restarts_and_sessions(tmp_path: Path, server_url: str) -> None:
    """A program that is started for one question at a time comes to its review too."""
    for number in range(3):
        schedule = _schedule(tmp_path, url=server_url)
        assert _turns(schedule, 1, session=f"s{number}") == [] or number == 2
        schedule.close()
    schedule = _schedule(tmp_path, url=server_url)
    (due,) = schedule.open_reviews(None)
    schedule.close()
    assert due.session_id == "s2"


def test_each_user_has_a_separate_count(tmp_path: Path, server_url: str) -> None:
    """One user's turns never lead to a review of another's words."""
    schedule = _schedule(tmp_path, url=server_url)
    _turns(schedule, 2, user="ann")
    _turns(schedule, 2, user="bob")
    _turns(schedule, 2)
    assert [schedule.open_reviews(user) for user in ("ann", "bob", None)] == [[], [], []]
    assert len(_turns(schedule, 1, user="ann")) == 1
    assert [schedule.open_reviews(user) for user in ("bob", None)] == [[], []]
    schedule.close()


def test_zero_is_never_and_without_tools_nothing_is_counted(tmp_path: Path) -> None:
    """And no file is made for it."""
    assert _turns(_schedule(tmp_path, 0), 50) == []
    assert list(tmp_path.iterdir()) == []
    schedule = _schedule(tmp_path)
    for _ in range(10):
        schedule.record_turn(None, "s1", used=(), offered=())
    assert schedule.open_reviews(None) == []
    schedule.close()


def test_a_failed_review_is_tried_again_a_few_times(tmp_path: Path, server_url: str) -> None:
    """Then it is given up, and the history shows it."""
    schedule = _schedule(tmp_path, url=server_url)
    (due,) = _turns(schedule, 3)
    for number in range(3):
        begun = schedule.begin(due)
        assert begun is not None
        assert schedule.end(begun, ReviewReport("s1", failed="garbage")) == (number < 2)
    assert schedule.open_reviews(None) == []
    (past,) = schedule.history()
    assert (past.state, past.result) == ("given up", "failed: garbage")
    schedule.close()


def test_a_postponed_review_is_not_a_try(tmp_path: Path) -> None:
    """A week without budget does not lose it."""
    schedule = _schedule(tmp_path)
    (due,) = _turns(schedule, 3)
    for _ in range(10):
        begun = schedule.begin(due)
        assert begun is not None
        assert schedule.end(begun, ReviewReport("s1", failed="budget", postponed=True))
    assert schedule.open_reviews(None) == [due]
    schedule.close()


def test_a_review_that_ends_processes_is_given_up(tmp_path: Path) -> None:
    """It is begun a few times, and then no more."""
    schedule = _schedule(tmp_path)
    (due,) = _turns(schedule, 3)
    assert [schedule.begin(due) is not None for _ in range(5)] == [True, True, True, False, False]
    assert schedule.history()[0].state == "given up"
    schedule.close()


def test_a_review_that_is_done_is_not_begun_again(tmp_path: Path, server_url: str) -> None:
    """Two processes saw it; one was faster."""
    schedule = _schedule(tmp_path, url=server_url)
    (due,) = _turns(schedule, 3)
    begun = schedule.begin(due)
    assert begun is not None
    schedule.end(begun, ReviewReport("s1", writes=(ReviewWrite("added", "USER.md", "the secret text"),)))
    assert schedule.begin(due) is None
    assert schedule.history()[0].result == "1 added"
    schedule.close()


def test_turns_are_counted_while_a_review_is_running(tmp_path: Path, server_url: str) -> None:
    """They are for the next review, which is due as soon as this one is done."""
    schedule = _schedule(tmp_path, url=server_url)
    (due,) = _turns(schedule, 3)
    begun = schedule.begin(due)
    assert begun is not None
    assert len(_turns(schedule, 5)) == 1
    schedule.end(begun, ReviewReport("s1"))
    assert [each.id for each in _turns(schedule, 1)] != [due.id]
    assert len(schedule.open_reviews(None)) == 1
    schedule.close()


def test_one_review_runs_at_a_time_in_a_home(tmp_path: Path, server_url: str) -> None:
    """This is true across processes; the lock is released when its holder ends."""
    schedule, other = (_schedule(tmp_path, url=server_url) for _ in range(2))
    with schedule.exclusive(), pytest.raises(LockTimeoutError), other.exclusive():
        pass
    with other.exclusive():
        pass
    schedule.close()
    other.close()


def test_nodes_review_different_users_at_the_same_time(tmp_path: Path, postgres_url: str) -> None:
    """And never the same user, whichever homes the nodes have."""
    here, there = (_schedule(tmp_path / name, url=postgres_url) for name in "ab")
    with here.exclusive("ada"), there.exclusive("ben"), pytest.raises(LockTimeoutError), there.exclusive("ada"):
        pass
    here.close()
    there.close()


def test_the_file_is_private_and_has_no_text_of_conversations(tmp_path: Path) -> None:
    """Numbers, states and ids."""
    schedule = _schedule(tmp_path)
    (due,) = _turns(schedule, 3)
    schedule.end(due, ReviewReport("s1", writes=(ReviewWrite("added", "USER.md", "Ida was born in Bergen"),)))
    schedule.close()
    assert mode(tmp_path / "home.db") == 0o600
    assert b"Bergen" not in (tmp_path / "home.db").read_bytes()


def test_the_list_of_past_reviews_stays_short(tmp_path: Path, server_url: str) -> None:
    """For ever."""
    schedule = _schedule(tmp_path, 1, url=server_url)
    with schedule._file.open().writing() as connection:
        connection.executemany(
            "INSERT INTO reviews (created, session_id, state) VALUES (?, 's', 'done')", [(n,) for n in range(700)]
        )
    _turns(schedule, 1)
    assert len(schedule.history(10_000)) <= 502
    schedule.close()


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    """The file does not change."""
    (tmp_path / "home.db").write_bytes(b"not a database at all " * 100)
    with pytest.raises(StorageError, match=r"home\.db"):
        _turns(_schedule(tmp_path), 1)


_COUNT = """
import sys
from pathlib import Path
from memoranda.agent.review.background import ReviewSchedule
from memoranda.agent.review.settings import ReviewSettings
schedule = ReviewSchedule(Path(sys.argv[1]), ReviewSettings(nudge_interval=1000))
for _ in range(40):
    schedule.record_turn("ann", "s", used=(), offered=("memory",))
"""


def test_processes_count_together(tmp_path: Path) -> None:
    """No turn is lost among them."""
    processes = [subprocess.Popen([sys.executable, "-c", _COUNT, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(GIVE_UP) for process in processes] == [0] * 3
    schedule = _schedule(tmp_path)
    with schedule._file.open().reading() as connection:
        assert connection.execute("SELECT user_id, memory_turns FROM counters").fetchall() == [("ann", 120)]
    schedule.close()
