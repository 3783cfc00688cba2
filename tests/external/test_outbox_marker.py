"""A queue that was deleted, emptied or replaced is reported; whatever happens in normal use is not."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import ReplacedStoreError
from memoranda.external.checks import check_outbox
from memoranda.external.outbox.marker import OutboxGuard, OutboxMarker
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.queued_passages import QueuedPassages
from memoranda.support.health_issues import HealthIssue
from memoranda.support.text_matcher import TextMatcher

ARGS = {"user_content": "q" * 300, "assistant_content": "a"}


def _fill(home: Path, count: int, first: int = 0) -> None:
    with closing(Outbox(home)) as outbox:
        for number in range(first, first + count):
            outbox.put("p", "turn", f"s{number}", ARGS, {}, key=f"k{number}")
        outbox.release()


def _deliver(home: Path, count: int) -> None:
    with closing(Outbox(home)) as outbox:
        for _ in range(count):
            job = outbox.claim("p")
            assert job is not None
            outbox.delivered(job)


def _issues(home: Path) -> list[HealthIssue]:
    return [issue for issue in check_outbox(home, ("p",)) if issue.severity != "note"]


def _marker(home: Path) -> Path:
    return home / "outbox.marker.json"


def _copy(home: Path) -> bytes:
    return (home / "outbox.db").read_bytes()


def test_normal_use_raises_no_alarm(tmp_path: Path) -> None:
    """Queueing, delivering, forgetting, dropping and shrinking the file."""
    _fill(tmp_path, 5)
    assert _issues(tmp_path) == []
    _deliver(tmp_path, 2)
    assert _issues(tmp_path) == []
    queue = QueuedPassages(tmp_path, "")
    queue.put_deletion("p", ["s1"])
    queue.forget(TextMatcher(["qqq"]))
    queue.erase_removed()
    assert _issues(tmp_path) == []
    with closing(Outbox(tmp_path)) as outbox:
        outbox.drop(None)
    assert _issues(tmp_path) == []
    _fill(tmp_path, 1, 50)
    assert _issues(tmp_path) == []
    marker = OutboxGuard(tmp_path / "outbox.db").read()
    assert marker is not None and (marker.last_job, marker.waiting, marker.losses) == (6, 1, 0)


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_lost_queue_is_reported_with_what_waited_in_it(tmp_path: Path, how: str, opened: bool) -> None:
    """Also after a process has created a new file, until --fix."""
    _fill(tmp_path, 3)
    path = tmp_path / "outbox.db"
    path.unlink() if how == "deleted" else os.truncate(path, 0)
    if opened:
        _fill(tmp_path, 5, 10)
        _deliver(tmp_path, 2)
    (issue,) = _issues(tmp_path)
    assert issue.severity == "error" and "3 deliveries that waited are lost" in issue.problem
    assert issue.repair is not None
    issue.repair()
    assert _issues(tmp_path) == []
    _fill(tmp_path, 1, 90)
    assert _issues(tmp_path) == []


@pytest.mark.parametrize("opened", [False, True])
def test_an_older_copy_is_reported(tmp_path: Path, opened: bool) -> None:
    """With how many of the later jobs may be lost."""
    _fill(tmp_path, 4)
    older = _copy(tmp_path)
    _deliver(tmp_path, 4)
    _fill(tmp_path, 3, 10)
    (tmp_path / "outbox.db").write_bytes(older)
    if opened:
        _fill(tmp_path, 9, 20)
    (issue,) = _issues(tmp_path)
    assert "replaced by another file or an older copy since it was last used: 3 deliveries" in issue.problem


def test_the_queue_of_another_home_is_reported(tmp_path: Path) -> None:
    """Even if it has more jobs."""
    _fill(tmp_path / "a", 2)
    _fill(tmp_path / "b", 9)
    shutil.copy(tmp_path / "b" / "outbox.db", tmp_path / "a" / "outbox.db")
    (issue,) = _issues(tmp_path / "a")
    assert "2 deliveries that waited are lost" in issue.problem


def test_a_queue_that_was_empty_is_missed_with_a_warning(tmp_path: Path) -> None:
    """Nothing is known to be lost, but someone deleted a file of the home."""
    _fill(tmp_path, 2)
    _deliver(tmp_path, 2)
    (tmp_path / "outbox.db").unlink()
    (issue,) = _issues(tmp_path)
    assert (issue.severity, "no lost deliveries are known" in issue.problem) == ("warning", True)


def test_a_file_that_disappears_while_it_is_open_is_reported(tmp_path: Path) -> None:
    """The process that has it open is refused, and another one creates a new file."""
    with closing(Outbox(tmp_path)) as outbox:
        outbox.put("p", "turn", "s", ARGS, {}, key="k0")
        outbox.renew()
        for path in tmp_path.glob("outbox.db*"):
            path.unlink()
        with pytest.raises(ReplacedStoreError):
            outbox.put("p", "turn", "s", ARGS, {}, key="k1")
    _fill(tmp_path, 1, 5)
    (issue,) = _issues(tmp_path)
    assert "1 deliveries that waited are lost" in issue.problem


@pytest.mark.slow
def test_a_killed_process_raises_no_alarm(tmp_path: Path) -> None:
    """Its marker lags behind, which is no loss."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from memoranda.external.outbox.outbox import Outbox\n"
        "outbox = Outbox(Path(sys.argv[1]))\n"
        "for number in range(5):\n"
        "    outbox.put('p', 'turn', 's', {'a': 'b'}, {})\n"
        "    if number == 2: outbox.renew()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, timeout=60)
        assert done.returncode == -signal.SIGKILL
        assert _issues(tmp_path) == []
    (tmp_path / "outbox.db").unlink()
    for path in tmp_path.glob("outbox.db-*"):
        path.unlink()
    (issue,) = _issues(tmp_path)
    assert "8 deliveries that waited are lost" in issue.problem


def test_a_queue_without_a_marker_gets_one_without_an_alarm(tmp_path: Path) -> None:
    """Also if it has no id, because a process was killed before it gave it one."""
    _fill(tmp_path, 3)
    _marker(tmp_path).unlink()
    with closing(sqlite3.connect(tmp_path / "outbox.db")) as connection, connection:
        connection.execute("DELETE FROM state_meta WHERE key = 'outbox_id'")
    assert _issues(tmp_path) == []
    _fill(tmp_path, 1, 10)
    assert _issues(tmp_path) == []
    assert _marker(tmp_path).exists()


def test_a_damaged_marker_is_ignored_and_written_again(tmp_path: Path) -> None:
    """It is not needed for anything but the alarm."""
    _fill(tmp_path, 3)
    _marker(tmp_path).write_bytes(_marker(tmp_path).read_bytes().replace(b'"waiting": 3', b'"waiting": 7'))
    assert OutboxGuard(tmp_path / "outbox.db").read() == OutboxMarker()
    assert _issues(tmp_path) == []
    _fill(tmp_path, 1, 10)
    marker = OutboxGuard(tmp_path / "outbox.db").read()
    assert marker is not None and marker.waiting == 4


@pytest.mark.slow
def test_a_salvaged_queue_raises_no_other_alarm(tmp_path: Path) -> None:
    """The new file has the id of the damaged one, and gives out later numbers."""
    _fill(tmp_path, 400)
    content = bytearray(_copy(tmp_path))
    middle = len(content) // 8192 // 2 * 8192
    content[middle : middle + 8192] = b"\xff" * 8192
    (tmp_path / "outbox.db").write_bytes(content)
    (issue,) = _issues(tmp_path)
    assert issue.repair is not None
    issue.repair()
    assert _issues(tmp_path) == []
    _fill(tmp_path, 1, 900)
    assert _issues(tmp_path) == []


def test_a_marker_that_cannot_be_written_disturbs_nothing(tmp_path: Path) -> None:
    """Jobs are queued as before."""
    _marker(tmp_path).mkdir()
    _fill(tmp_path, 2)
    assert _issues(tmp_path) == []
