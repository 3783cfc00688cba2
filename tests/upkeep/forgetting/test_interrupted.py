"""A run that is killed at any time is completed by the next one, and other processes do not bring the text back."""

import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import memoranda
from memoranda.memory.record.scope import Scope
from tests.conftest import Strikes
from tests.forked import Forked, Say, forking
from tests.timing import GIVE_UP
from tests.upkeep.forgetting.filled_home import fill, import_transcripts, occurrences

WORD = "zorblaxquint"
# Records while the text is forgotten, with store, index and a provider open, and searches all the time.
_AGENT = """
import sys, memoranda
with memoranda.open(sys.argv[1]) as memory, memory.session(source="busy") as session:
    memory.search(sys.argv[2])
    print("ready", flush=True)
    for number, line in enumerate(sys.stdin):
        with session.turn(f"turn {number} about apples") as turn:
            turn.done(f"answer {number}")
        memory.search("apples")
        memory.search(sys.argv[2])
        print(session.id, flush=True)
"""


def _forget(root: Path, say: Say) -> None:
    with memoranda.open(root) as memory:
        say(b"begun")
        memory.forget(WORD)


@pytest.mark.slow
@forking
def test_after_many_kills_the_next_run_completes(tmp_path: Path, strikes: Strikes) -> None:
    """kill -9 at many moments: nothing of the text is left in the end, and nothing else is lost."""
    root, source, dice = tmp_path / "home", tmp_path / "source", random.Random(7)
    fill(root, source, WORD)
    with memoranda.open(root) as memory:
        before = memory.sessions.scoped(Scope.everyone()).statistics()
    codes = []
    for _ in range(strikes(100)):
        process = Forked(partial(_forget, root))
        assert process.heard() == b"begun"
        time.sleep(dice.uniform(0.0, 0.4))
        process.kill()
        codes.append(process.wait())
    assert -signal.SIGKILL in codes
    with memoranda.open(root) as memory:
        report = memory.forget(WORD)
        after = memory.sessions.scoped(Scope.everyone()).statistics()
        assert memory.entries() == ("Likes pears.",)
        assert memory.curated.journal.entries_after("memory") == ["Likes pears."]
        assert memory.sessions.scoped(Scope.everyone()).checksums.damaged_messages() == []
    assert {place.area for place in report.left} <= {"provider"}
    assert occurrences(root, WORD) == {}
    assert {name: after[name] for name in ("sessions", "messages")} == {
        name: before[name] for name in ("sessions", "messages")
    }
    assert import_transcripts(root, source) == 0


def test_a_backup_that_was_being_unpacked_does_not_stop_the_next_run(tmp_path: Path) -> None:
    """A killed run leaves databases of which a part was written."""
    with memoranda.open(tmp_path) as memory:
        memory.sessions.create_session("s", "cli", title=WORD)
        memory.sessions.empty_log()
        (tmp_path / ".forgetting").mkdir()
        content = (tmp_path / "state.db").read_bytes()
        (tmp_path / ".forgetting" / "state.db").write_bytes(content[: len(content) // 2] + WORD.encode())
        assert memory.forget(WORD).complete
    assert occurrences(tmp_path, WORD) == {}


@pytest.mark.slow
def test_a_running_agent_does_not_bring_it_back(tmp_path: Path) -> None:
    """A process that has the store, the index and providers open continues, and what it writes has no trace of it."""
    root, source = tmp_path / "home", tmp_path / "source"
    fill(root, source, WORD)
    agent = subprocess.Popen(
        [sys.executable, "-c", _AGENT, str(root), WORD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    try:
        assert agent.stdout.readline() == "ready\n"
        agent.stdin.write("go\n")
        agent.stdin.flush()
        session_id = agent.stdout.readline().strip()
        with memoranda.open(root) as memory:
            report = memory.forget(WORD)
        assert any(session_id in note for note in report.notes), "its prompt has the entry"
        agent.stdin.write("go\n" * 3)
        agent.stdin.close()
        assert len(agent.stdout.read().split()) == 3
        assert agent.wait(timeout=GIVE_UP) == 0
    finally:
        agent.kill()
        agent.wait()
        agent.stdout.close()
    assert occurrences(root, WORD) == {}
    with memoranda.open(root) as memory:
        assert len(memory.sessions.get_messages(session_id)) == 8
