"""Background review: after some turns an agent looks back and saves what is worth keeping; the user does not wait."""

import json
from pathlib import Path

import memoranda
from memoranda.models.model import Reply, ToolCall
from memoranda.support.home import Home
from memoranda.testing.scripted.model import ScriptedModel
from tests.capabilities.recorder import calls, recorder_home
from tests.cli.terminal import Terminal
from tests.timing import wait_until

SAVE = json.dumps({"action": "add", "target": "user", "content": "User lives in Oslo."})
INVENT = json.dumps({"action": "add", "target": "user", "content": "User owns seventeen llamas."})


def test_what_the_user_said_is_saved_after_the_turn(tmp_path: Path) -> None:
    """The count survives a restart; the review sees the same prompt, has only memory and skills, and no provider."""
    home = recorder_home(tmp_path)
    with Home.at(home).config_file.open("a") as file:
        file.write("  nudge_interval: 2\n")
    with memoranda.open(home) as memory:
        session = memory.session(source="cli")
        memory.agent(ScriptedModel([Reply("Hello.")]), session=session).turn("I live in Oslo.")
        session.end()
    saved: list[object] = []
    with memoranda.open(home) as memory:
        session = memory.session(source="cli", session_id=session.id)
        review = [
            Reply(
                "",
                tool_calls=(
                    ToolCall("c1", "memory", SAVE),
                    ToolCall("c2", "memory", INVENT),
                    ToolCall("c3", "recorder_find", "{}"),
                ),
            ),
            Reply("Done."),
        ]
        model = ScriptedModel([Reply("It is dry."), *review])
        agent = memory.agent(model, session=session, on_review=saved.append)
        assert agent.turn("How is the weather?") == "It is dry."
        wait_until(lambda: saved)
        model.check()
        session.end()
    answered, reviewed = model.requests[0], model.requests[1]
    assert reviewed.system == answered.system
    results = {message["tool_call_id"]: message["content"] for message in model.requests[2].messages[-3:]}
    assert "Otto" not in results["c3"] and '"success": false' in results["c3"]
    with memoranda.open(home) as memory:
        # What the conversation does not support is not saved.
        assert memory.entries("user") == ("User lives in Oslo.",)
    assert [call[1] for call in calls(home, "sync_turn")] == ["I live in Oslo.", "How is the weather?"]
    assert "review" in Terminal(home).ok("usage", "--by", "purpose")
