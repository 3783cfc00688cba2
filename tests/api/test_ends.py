"""An external memory is notified of the end of a session, whenever a process is killed, and once by its key."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoranda.api.memory import open_memory
from tests.external.diary import diary_home, told, told_in_time
from tests.timing import GIVE_UP

KILLED = """
import os, signal, sys, time
from pathlib import Path
from memoranda.api.memory import open_memory
from memoranda.external.outbox.outbox import Outbox
from memoranda.home.session_db import SessionDB

home, how, when = sys.argv[1:]
diary = Path(home) / "diary.jsonl"

def is_delivered():
    told = diary.read_text() if diary.exists() else ""
    return '"end"' in told and not Outbox(Path(home)).backlog().waiting

def killed(*given, **named):
    while when == "delivered" and not is_delivered():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

session = open_memory(home).session(session_id="s1", source="cli")
for number in range(12):
    with session.turn(f"Crate {number} goes to row {number}. " * 20) as turn:
        turn.done("I see. " * 20)
if how == "compressed":
    SessionDB.rotate_session = killed
    session.compress(force=True)
else:
    SessionDB.end_session = killed
    session.end()
"""


def _diary_with_keys(home: Path, start: str = "pass") -> Path:
    """The end of a session is written down with its key."""
    code = diary_home(home, start=start) / "plugins" / "diary" / "__init__.py"
    code.write_text(code.read_text().replace('"end", len(messages)', '"end", len(messages), facts["idempotency_key"]'))
    return code


def _ends(home: Path) -> list[list[Any]]:
    return [line for line in told(home) if line[0] == "end"]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["delivered", "queued"])
@pytest.mark.parametrize("how", ["compressed", "ended"])
def test_an_end_that_was_notified_before_it_was_recorded_is_notified_again_as_the_same(
    tmp_path: Path, how: str, when: str
) -> None:
    """By the process that takes the session up: with the same key, and not at all while the first is still waiting."""
    code = _diary_with_keys(tmp_path, "pass" if when == "delivered" else "raise OSError('down')")
    process = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), how, when], check=False, timeout=GIVE_UP)
    assert process.returncode == -signal.SIGKILL
    code.write_text(code.read_text().replace("raise OSError('down')", "pass"))
    with open_memory(tmp_path) as memory:
        session = memory.session(session_id="s1", source="cli")
        row = memory.sessions.get_session("s1")
        assert row is not None
        assert row["ended_at"] is None
        if how == "compressed":
            assert session.compress(force=True).done
            told_in_time(tmp_path, ["switch", session.id, "s1", "compression"])
        else:
            session.end()
    with open_memory(tmp_path) as memory, memory.session(session_id="s2", source="cli") as session:
        session.turn("Last.").done("Yes.")
        told_in_time(tmp_path, ["turn", "Last.", "Yes."])
    ends = [line for line in _ends(tmp_path) if ":s1:" in line[2]]
    assert [line[1] for line in ends] == [24] * (2 if when == "delivered" else 1)
    assert len({line[2] for line in ends}) == 1
