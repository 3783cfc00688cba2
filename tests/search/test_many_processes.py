"""Many processes record and search in one home at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from tests.timing import GIVE_UP

_WRITER = """
import sys
from memoranda.home.session_db import SessionDB
number = sys.argv[2]
with SessionDB(sys.argv[1]) as db:
    db.create_session(f"s{number}", "cli", title=f"Writer {number}")
    for turn in range(60):
        db.append_message(f"s{number}", "user", f"writer {number} says zebra turn{turn}of{number}")
    print("done")
"""
_SEARCHER = """
import sys, time
from pathlib import Path
from memoranda.home.session_db import SessionDB
from memoranda.search.tool import SessionSearchTool
path, end = Path(sys.argv[1]), time.monotonic() + float(sys.argv[2])
with SessionDB(sys.argv[1]) as db:
    tool, answers = SessionSearchTool(lambda: db), 0
    while not (path.with_name("written").exists() and answers):
        assert time.monotonic() < end
        answer = tool.call({"query": "zebra", "limit": 10})
        assert answer["success"], answer
        for result in answer["results"]:
            read = tool.call({"session_id": result["session_id"], "around_message_id": result["match_message_id"]})
            assert read["success"], read
        answers += 1
    print(answers)
"""


@pytest.mark.slow
def test_eight_processes_record_while_others_search(tmp_path: Path) -> None:
    """No append and no search fails, every acknowledged message is stored in order, and found."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("first", "cli")
        db.append_message("first", "user", "the first zebra")
    commands = [[sys.executable, "-c", _SEARCHER, str(path), str(GIVE_UP)]] * 2
    commands += [[sys.executable, "-c", _WRITER, str(path), str(number)] for number in range(8)]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for each in commands]
    written = [process.communicate(timeout=GIVE_UP) for process in running[2:]]
    path.with_name("written").touch()
    told = [process.communicate(timeout=GIVE_UP) for process in running[:2]] + written
    assert [process.returncode for process in running] == [0] * 10, [error for _, error in told if error]
    assert all(int(output) > 0 for output, _ in told[:2])
    with SessionDB(path) as db:
        for number in range(8):
            expected = [f"writer {number} says zebra turn{turn}of{number}" for turn in range(60)]
            assert [message["content"] for message in db.get_messages(f"s{number}")] == expected
            (found,) = db.search_messages(f"turn59of{number}")
            assert found["session_id"] == f"s{number}"
        assert db.miscounted_sessions() == []
