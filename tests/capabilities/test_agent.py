"""The agent: one turn with its tools, conversations that are resumed, branched and undone, and delegated work."""

import json
from pathlib import Path

import pytest

import memoranda
from memoranda.cli import background_tasks
from memoranda.cli.background_tasks import log_resources
from memoranda.models.model import Reply, ToolCall
from memoranda.support.home import Home
from memoranda.testing.scripted.model import ScriptedModel
from tests.capabilities.conversations import take_turn
from tests.capabilities.recorder import calls, recorder_home
from tests.timing import wait_until


def _calling(tool: str, **arguments: object) -> Reply:
    return Reply("", tool_calls=(ToolCall(f"call-{tool}", tool, json.dumps(arguments)),))


def test_a_turn_calls_tools_until_there_is_an_answer(tmp_path: Path) -> None:
    """Its own tools and yours; every step is recorded before the next one, and a broken call gets an answer."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session(source="cli")

        @memoranda.tool
        def weather(city: str) -> dict[str, str]:
            """The weather of a city."""
            return {"weather": f"dry in {city}"}

        steps = [
            _calling("weather", city="Oslo"),
            _calling("memory", action="add", target="user", content="Lives in Oslo."),
            _calling("session_search", query="Oslo"),
            _calling("todo", todos=[{"id": "pack", "content": "Pack a bag."}]),
            _calling("unknown_tool"),
            Reply("It is dry."),
        ]
        with ScriptedModel(steps) as model:
            assert memory.agent(model, session=session, tools=[weather]).turn("How is it in Oslo?") == "It is dry."
        offered = {tool.name for tool in model.requests[0].tools}
        assert {"memory", "session_search", "todo", "delegate_task", "weather"} <= offered
        roles = [message["role"] for message in session.conversation()]
        assert roles == ["user", *["assistant", "tool"] * 5, "assistant"]
        assert "dry in Oslo" in str(session.conversation()[2]["content"])
        assert "unknown_tool" in str(session.conversation()[-2]["content"])
        assert memory.entries("user") == ("Lives in Oslo.",) and session.todos.load()[0]["id"] == "pack"


def test_a_platform_has_only_the_tools_that_its_list_names(tmp_path: Path) -> None:
    """A list for a platform is complete; another platform has everything."""
    Home.at(tmp_path).config_file.write_text("tools:\n  telegram: [session_search]\n")
    with memoranda.open(tmp_path) as memory:
        model = ScriptedModel([])
        offered = {
            platform: {tool.name for tool in memory.agent(model, session=memory.session(source=platform)).tools}
            for platform in ("telegram", "cli")
        }
    assert offered["telegram"] == {"session_search"}
    assert offered["cli"] > {"memory", "session_search", "todo", "delegate_task"}


@pytest.mark.slow
def test_a_conversation_is_resumed_branched_reset_and_undone(tmp_path: Path) -> None:
    """By another process, with its turn number, and the provider learns of every boundary and why."""
    home = recorder_home(tmp_path)
    with memoranda.open(home) as memory:
        session = memory.session(source="cli")
        take_turn(session, "One.")
        session.end()
    with memoranda.open(home) as memory:
        session = memory.session(source="cli", session_id=session.id)
        take_turn(session, "Two.")
        undone = session.undo()
        assert undone is not None and undone.text == "Two."
        assert [message["content"] for message in session.conversation()] == ["One.", "Yes."]
        branch = session.branch("Other way")
        take_turn(branch, "Instead.")
        branch.end()
        fresh = session.reset()
        new = fresh.reset(reason="new_session")
        resumed = new.switch(session.id)
        assert [message["content"] for message in resumed.conversation()] == ["One.", "Yes."]
        resumed.end()
    assert [call[1] for call in calls(home, "on_turn_start")] == [1, 2, 2]
    assert [call[3:] for call in calls(home, "on_session_switch") if call[1] in (fresh.id, new.id)] == [
        [True, "reset"],
        [True, "new_session"],
    ]
    assert [False, "resume"] in [call[3:] for call in calls(home, "on_session_switch") if call[1] == session.id]
    assert [False, "branch"] in [call[3:] for call in calls(home, "on_session_switch") if call[1] == branch.id]


def test_delegated_work_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    """The parent gets the result, the provider the task and the result, and lists do not show the delegation."""
    home = recorder_home(tmp_path)
    with memoranda.open(home) as memory:
        session = memory.session(source="cli")
        steps = [_calling("delegate_task", task="Count the tests."), Reply("There are 12."), Reply("Twelve.")]
        with ScriptedModel(steps) as model:
            assert memory.agent(model, session=session).turn("How many tests?") == "Twelve."
        (child,) = [row for row in memory.sessions.get_descendants(session.id) if row["id"] != session.id]
        assert child["relation"] == "delegation"
        assert [row["id"] for row in memory.sessions.list_sessions_rich()] == [session.id]
        session.end()
    assert [call[1:] for call in calls(home, "on_delegation")] == [["Count the tests.", "There are 12."]]
    assert [call[1] for call in calls(home, "sync_turn")] == ["How many tests?"]


def test_a_long_running_process_logs_what_it_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory, threads, open files and garbage collections, in a file of the home."""
    monkeypatch.setattr(background_tasks, "START_DELAY_SECONDS", 0.0)
    file = tmp_path / "logs" / "mcp.log"
    with log_resources(tmp_path, "mcp"):
        wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
    for word in ("memory", "threads", "open files", "garbage collections"):
        assert word in file.read_text()
