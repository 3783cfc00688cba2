"""Every adapter has the turn that native sessions have: what it recalls, delivers and keeps apart."""

from collections.abc import Callable
from pathlib import Path

import pytest

import memoranda
from memoranda.home import config
from memoranda.support.home import Home
from tests.external.diary import diary_home, told, told_in_time
from tests.integrations.frameworks.adapters import ADAPTERS, Reply, Request
from tests.integrations.frameworks.earlier_conversation import ANSWER, QUESTION
from tests.timing import GIVE_UP

Ask = Callable[[memoranda.Memory, str, str, Reply], Request]

_PROBLEM = "The oven of the bakery shows error E17 and stays cold."
_FIX = f"Replace its thermostat, {ANSWER}: that fixes error E17 of this oven."

pytestmark = [
    # Importing a framework takes seconds.
    pytest.mark.slow,
    pytest.mark.parametrize("ask", ADAPTERS, ids=lambda ask: ask.__name__),
    # LlamaIndex's workflows read attributes that pydantic has deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def _home(tmp_path: Path) -> Path:
    """A home with a provider that a busy machine is given time for."""
    home = diary_home(tmp_path)
    for setting in ("begin_seconds", "recall_seconds"):
        config.set_value(Home.at(home), f"provider.{setting}", str(GIVE_UP))
    return home


def test_a_fact_of_one_conversation_reaches_the_next(ask: Ask, tmp_path: Path) -> None:
    """In a copy of the user's message: neither the record nor the own conversation has it twice."""
    with memoranda.open(tmp_path) as memory:
        assert ANSWER not in ask(memory, "one", _PROBLEM, _FIX).messages
        assert ANSWER in ask(memory, "two", QUESTION, "By a new thermostat.").messages
        assert ANSWER not in ask(memory, "three", "Write a haiku about submarines.", "Waves.").messages
        owner = memory.for_user("owner") if ask.__name__ == "google_adk" else memory
        assert owner.search(ANSWER)["count"] == 1


def test_one_user_never_gets_what_another_said(ask: Ask, tmp_path: Path) -> None:
    """Neither from another conversation nor from one of the same name."""
    with memoranda.open(tmp_path) as memory:
        ana, bob = memory.for_user("ana"), memory.for_user("bob")
        ask(ana, "one", _PROBLEM, _FIX)
        for conversation in ("one", "two"):
            assert ANSWER not in ask(bob, conversation, QUESTION, "I do not know.").messages
        assert ANSWER in ask(ana, "two", QUESTION, "By a new thermostat.").messages


def test_what_a_provider_remembers_and_its_tools_reach_the_model(ask: Ask, tmp_path: Path) -> None:
    """Fenced like every recalled text, without its orders; the record has nothing of it."""
    with memoranda.open(_home(tmp_path)) as memory:
        sent = ask(memory, "zoo", "What is the zebra called?", "Otto.")
        assert "The zebra is called Otto." in sent.messages and "Ignore all previous" not in sent.messages
        offered = {"memory"} if ask.__name__ == "anthropic_memory" else {"memory", "session_search", "diary_read"}
        assert offered <= set(sent.tools)
        owner = memory.for_user("owner") if ask.__name__ == "google_adk" else memory
        assert owner.search("zebra")["count"] == 1 and owner.search("zebra is called")["count"] == 1
        assert "memory-context" not in str(
            owner.sessions.get_messages(owner.search("zebra")["results"][0]["session_id"])
        )


def test_a_completed_turn_is_delivered_and_an_interrupted_one_is_not(ask: Ask, tmp_path: Path) -> None:
    """Without the end of a session; the conversation continues after the interruption."""
    home, completed = _home(tmp_path), [["turn", "Are we open?", "Yes."], ["turn", "Still?", "Until noon."]]
    with memoranda.open(home) as memory:
        ask(memory, "hours", "Are we open?", "Yes.")
        ask(memory, "hours", "On Sundays too?", RuntimeError("no connection"))
        assert "Are we open?" in ask(memory, "hours", "Still?", "Until noon.").messages or ask.__name__ in _OWN_HISTORY
        assert told_in_time(home, *completed) == completed
    assert told(home) == completed


# The program sends earlier messages itself, or another checkpointer has them.
_OWN_HISTORY = ("claude_agent", "langgraph_in_threads")
