"""A conversation has one turn at a time, whatever thread or process it is in."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memoranda.agent.model_messages import INTERRUPTED_ANSWER
from memoranda.api.memory import Memory, open_memory
from memoranda.api.session import Session
from memoranda.errors import SessionBusyError, SessionError
from memoranda.models.model import Reply, ToolCall
from memoranda.testing.scripted.model import ScriptedModel
from tests.timing import GIVE_UP, without_waiting

_ID = "s1"
_ANSWER_ONE = """
import sys
from tests.api.test_turn_lock import save_fact
save_fact(*sys.argv[1:])
"""
_HANG_IN_A_TURN = """
import sys, time, memoranda
memory = memoranda.open(sys.argv[1])
turn = memory.session(session_id="s1").turn("Are you there?")
print("begun", flush=True)
time.sleep(200)
"""


def _save_then_confirm(system: str, messages: Sequence[Any], tools: Any) -> Reply:
    """Save the user's words, then answer with what the tool said about it."""
    last = messages[-1]
    if last["role"] == "user":
        # What other turns saved since the prompt was built is noted after the words of this one.
        fact = re.findall(r"Fact \d\.", last["content"])[0]
        arguments = json.dumps({"action": "add", "target": "memory", "content": fact})
        return Reply("", tool_calls=(ToolCall(f"call {fact}", "memory", arguments),))
    return Reply(f"receipt: {last['content']}")


def save_fact(home: str, fact: str) -> None:
    """Run one turn of the session that all tests here share."""
    with open_memory(home) as memory:
        print(_run_turn(memory, fact))


def _run_turn(memory: Memory, fact: str) -> str:
    session = memory.session(session_id=_ID)
    return memory.agent(ScriptedModel(_save_then_confirm), session=session).turn(fact, wait=GIVE_UP)


def _check_four_true_turns(memory: Memory, answers: list[str]) -> None:
    assert len(answers) == 4 and all('"success": true' in answer for answer in answers), answers
    roles = [message["role"] for message in memory.sessions.get_messages_as_conversation(_ID)]
    assert roles == ["user", "assistant", "tool", "assistant"] * 4
    assert sorted(memory.entries("memory")) == [f"Fact {number}." for number in range(4)]


def test_four_threads_on_one_session_give_four_true_answers(tmp_path: Path) -> None:
    """Each turn is recorded as a whole, and each answer confirms what was really saved."""
    with open_memory(tmp_path) as memory:
        start = threading.Barrier(4)

        def run(number: int) -> str:
            start.wait()
            return _run_turn(memory, f"Fact {number}.")

        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(run, range(4)))
        _check_four_true_turns(memory, answers)


@pytest.mark.slow
def test_four_processes_on_one_session_give_four_true_answers(tmp_path: Path) -> None:
    """The same is true between processes."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _ANSWER_ONE, str(tmp_path), f"Fact {number}."], stdout=subprocess.PIPE, text=True
        )
        for number in range(4)
    ]
    answers = [process.communicate(timeout=GIVE_UP)[0] for process in processes]
    with open_memory(tmp_path) as memory:
        _check_four_true_turns(memory, answers)


@pytest.mark.slow
def test_a_process_that_hangs_in_a_turn_makes_the_session_busy_until_it_is_killed(tmp_path: Path) -> None:
    """While it lives others get a clear error; after kill -9 nothing needs to expire."""
    with open_memory(tmp_path) as memory:
        session = memory.session(session_id=_ID)
        with subprocess.Popen(
            [sys.executable, "-c", _HANG_IN_A_TURN, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "begun\n"
            with pytest.raises(SessionBusyError, match="'s1' is in progress"):
                session.turn("And now?", wait=0.05)
            process.kill()
        with session.turn("And now?", wait=GIVE_UP) as turn:
            turn.done("Yes.")
        said = [message["content"] for message in session.conversation()]
        assert said == ["Are you there?", INTERRUPTED_ANSWER, "And now?", "Yes."]


def test_a_turn_inside_another_is_a_clear_error_at_once(tmp_path: Path) -> None:
    """Nothing of it is recorded, and the first turn can still be finished; so is undoing an open turn."""
    with open_memory(tmp_path) as memory, memory.session() as session:
        with session.turn("a") as turn:
            with without_waiting(), pytest.raises(SessionBusyError, match=r"done\(\)"):
                session.turn("b", wait=2 * GIVE_UP)
            with pytest.raises(SessionBusyError):
                session.undo()
            turn.done("A.")
            with session.turn("b") as second:
                second.done("B.")
        assert [message["content"] for message in session.conversation()] == ["a", "A.", "b", "B."]


@pytest.mark.parametrize("leave", ["with", "close", "drop", "end"])
def test_a_turn_that_was_left_without_an_answer_blocks_no_other(tmp_path: Path, leave: str) -> None:
    """Its message stays recorded."""
    with open_memory(tmp_path) as memory, memory.session() as session:
        turn: Any = session.turn("a")
        if leave == "with":
            with turn:
                pass
        elif leave == "drop":
            turn = None
        elif leave == "close":
            turn.close()
        else:
            session.end()
        with session.turn("b", wait=0) as second:
            second.done("B.")
        assert [message["content"] for message in session.conversation()] == ["a", INTERRUPTED_ANSWER, "b", "B."]


def test_another_object_waits_as_long_as_it_is_configured_to(tmp_path: Path) -> None:
    """Sessions of other conversations do not wait at all."""
    (tmp_path / "config.yaml").write_text("sessions:\n  turn_wait: 0.01\n")
    with open_memory(tmp_path) as memory:
        first, second = memory.session(session_id=_ID), memory.session(session_id=_ID)
        with first.turn("a"):
            with pytest.raises(SessionBusyError, match=r"within 0\.01 s"):
                second.turn("b")
            with memory.session().turn("c") as other:
                other.done("C.")
        with second.turn("b") as turn:
            turn.done("B.")


def test_a_conversation_is_locked_in_all_its_sessions(tmp_path: Path) -> None:
    """A turn that compresses the conversation still holds the session in which it continues."""
    with open_memory(tmp_path) as memory:
        session = memory.session(session_id=_ID)
        for number in range(8):
            with session.turn(f"Crate {number} goes to row {number}. " * 20) as turn:
                turn.done("I see.")
        with session.turn("And crate 8?") as turn:
            assert session.compress(force=True).done and session.id != _ID
            for other in (memory.session(session_id=session.id), memory.session(session_id=_ID)):
                with pytest.raises(SessionBusyError):
                    other.turn("b", wait=0)
            turn.done("Row 8.")


def test_a_session_that_another_object_recorded_first_has_one_prompt(tmp_path: Path) -> None:
    """The prompt of the first turn is stored, and every later turn uses its bytes."""
    with open_memory(tmp_path) as memory:
        first = memory.session(session_id=_ID, instructions="Be brief.")
        second = memory.session(session_id=_ID)
        with first.turn("a") as turn:
            turn.done("A.")
        with second.turn("b") as turn:
            assert second.prompt == first.prompt
            turn.done("B.")


def test_a_turn_that_cannot_be_recorded_leaves_no_lock(tmp_path: Path) -> None:
    """The next one begins at once."""
    with open_memory(tmp_path) as memory:
        session: Session = memory.session(session_id=_ID)
        with pytest.raises(SessionError):
            session.turn(object())
        with memory.session(session_id=_ID).turn("b", wait=0) as turn:
            turn.done("B.")
