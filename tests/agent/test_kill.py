"""An agent that is killed in the middle of anything has recorded every step it had taken, and can continue."""

import random
import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from memoranda.agent.loop import Agent
from memoranda.api.memory import open_memory
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.support.tool import JsonObject, Tool
from memoranda.testing.scripted.model import ScriptedModel
from tests.agent.rooms import Room
from tests.forked import Forked, Say, forking
from tests.timing import HANG

pytestmark = pytest.mark.slow

WHOLE = ["user", "assistant", "tool", "tool", "tool", "assistant"]


def _answer(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
    if messages[-1]["role"] == "tool":
        return Reply("Done.")
    return Reply("Wait.", tuple(ToolCall(f"{len(messages)}-{number}", "note", "{}") for number in range(3)))


def _talk(home: Path, hangs_in: int, say: Say) -> None:
    """Take one turn after the other, and say a line for each step; hang in a call of the tool, by its number."""
    calls = count(1)

    def note(arguments: object) -> JsonObject:
        say(b"called\n")
        if next(calls) == hangs_in:
            time.sleep(HANG)
        return {"success": True}

    room = Room(open_memory(home).session(source="test", session_id="s1"))
    agent = Agent(room, ScriptedModel(_answer), tools=[Tool("note", "Notes.", {"type": "object"}, note)])
    for number in count():
        agent.turn(f"Turn {number}")
        say(b"answered\n")


def _run_and_kill(home: Path, after: float, hangs_in: int) -> list[bytes]:
    """What the agent said that it had done before it was killed."""
    agent = Forked(partial(_talk, home, hangs_in))
    said = b""
    # The first turn takes longest, because it opens the store.
    while b"answered" not in said or said.count(b"called") < hangs_in:
        heard = agent.heard()
        assert heard, f"The agent has ended after {said!r}."
        said += heard
    time.sleep(after)
    return (said + agent.kill()).splitlines()


@forking
def test_a_killed_agent_has_recorded_what_it_did_and_goes_on(tmp_path: Path) -> None:
    """Turns are whole, and the last one is as far as it came; the next turn is one that a service would accept."""
    chance = random.Random(7)
    cut = set()
    for number in range(12):
        home = tmp_path / str(number)
        # The first ones are killed in each call of the second turn: a busy machine may kill the others at one point.
        done = _run_and_kill(home, chance.random() * 0.15, 4 + number if number < 3 else 0)
        with open_memory(home) as memory:
            roles = [each["role"] for each in memory.sessions.get_messages("s1")]
            turns, last = divmod(len(roles), len(WHOLE))
            cut.add(last)
            assert roles == WHOLE * turns + WHOLE[:last]
            # What was announced after the fact is in the record; a call is in it before it is carried out.
            assert turns >= done.count(b"answered")
            assert roles.count("tool") >= done.count(b"called") - 1
            room = Room(memory.session(source="test", session_id="s1"))
            model = ScriptedModel([Reply("Here I am.")])
            assert Agent(room, model).turn("Are you there?") == "Here I am."
            sent = [message["role"] for message in model.requests[0].messages]
            assert sent.count("tool") == 3 * sum("tool_calls" in message for message in model.requests[0].messages)
    assert len(cut) > 2, "The kills all came at the same point."
