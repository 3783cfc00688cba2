"""One process compresses a conversation at a time, and one that was killed delays no other."""

import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.api.memory import open_memory
from memoranda.models.model import Reply
from memoranda.testing.scripted.model import ScriptedModel

HANG = """
import sys, time
from memoranda.api.memory import open_memory
from memoranda.testing.scripted.model import ScriptedModel

def hang(system, messages, tools):
    print("asked", flush=True)
    time.sleep(200)

memory = open_memory(sys.argv[1])
session = memory.session(session_id="s1", source="cli")
session.use_model(ScriptedModel(hang))
session.compress(force=True)
"""


@pytest.mark.slow
def test_a_killed_process_holds_up_no_compression(tmp_path: Path) -> None:
    """While it lives no other compresses; once it is dead the next one need not wait until its lease expires."""
    with open_memory(tmp_path) as memory:
        session = memory.session(session_id="s1", source="cli")
        agent = memory.agent(ScriptedModel(lambda *_: Reply("I see.")), session=session)
        for number in range(12):
            agent.turn(f"Crate {number} goes to row {number}. " * 20)
        with subprocess.Popen(
            [sys.executable, "-c", HANG, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "asked\n"
            assert not session.compress(force=True).done
            assert session.id == "s1"
            process.kill()
        assert session.compress(force=True).done
        assert session.id != "s1"
