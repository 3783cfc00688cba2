"""An agent that is killed in the middle of anything has recorded every step it had taken, and can go on."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoranda.agent.loop import Agent
from memoranda.app import open_memory
from memoranda.llm.model import Reply
from memoranda.testing.scripted_model import ScriptedModel
from tests.agent.rooms import Room

pytestmark = pytest.mark.slow

PROGRAM = """
import itertools, sys
from memoranda.agent.loop import Agent
from memoranda.app import open_memory
from memoranda.llm.model import Reply, ToolCall
from memoranda.testing.scripted_model import ScriptedModel
from memoranda.tools import Tool
from tests.agent.rooms import Room

def answer(system, messages, tools):
    if messages[-1]["role"] == "tool":
        return Reply("Done.")
    return Reply("Wait.", tuple(ToolCall(f"{len(messages)}-{n}", "note", "{}") for n in range(3)))

def note(arguments):
    print("called", flush=True)
    return {"success": True}

memory = open_memory(sys.argv[1])
room = Room(memory.session(source="test", session_id="s1"))
agent = Agent(room, ScriptedModel(answer), tools=[Tool("note", "Notes.", {"type": "object"}, note)])
for number in itertools.count():
    print("said", flush=True)
    agent.turn(f"Turn {number}")
    print("answered", flush=True)
"""
WHOLE = ["user", "assistant", "tool", "tool", "tool", "assistant"]


def _run_and_kill(home: Path, after: float) -> list[str]:
    """What the agent said that it had done, up to the moment it was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(home)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdout is not None
        done: list[str] = []
        # The first turn takes longest, because it opens the store.
        while "answered" not in done:
            done.append(process.stdout.readline().strip())
        time.sleep(after)
        process.kill()
        return [*done, *process.stdout.read().splitlines()]


def test_a_killed_agent_has_recorded_what_it_did_and_goes_on(tmp_path: Path) -> None:
    """Turns are whole, and the last one is as far as it came; the next turn is one that a service would accept."""
    chance = random.Random(7)
    cut = set()
    for number in range(12):
        home = tmp_path / str(number)
        done = _run_and_kill(home, chance.random() * 0.15)
        with open_memory(home) as memory:
            roles = [each["role"] for each in memory.sessions.get_messages("s1")]
            turns, last = divmod(len(roles), len(WHOLE))
            cut.add(last)
            assert roles == WHOLE * turns + WHOLE[:last]
            # What was announced after the fact is in the record; a call is in it before it is carried out.
            assert turns >= done.count("answered")
            assert roles.count("tool") >= done.count("called") - 1
            room = Room(memory.session(source="test", session_id="s1"))
            model = ScriptedModel([Reply("Here I am.")])
            assert Agent(room, model).turn("Are you there?") == "Here I am."
            sent = [message["role"] for message in model.requests[0].messages]
            assert sent.count("tool") == 3 * sum("tool_calls" in message for message in model.requests[0].messages)
    assert len(cut) > 2, "The kills all came at the same point."
