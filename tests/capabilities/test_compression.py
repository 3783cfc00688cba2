"""Compression: a context that is full is shortened, and the conversation continues in a new session."""

from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.models.model import Reply
from memoranda.testing.scripted.model import ScriptedModel
from tests.capabilities.conversations import fill_context, take_turn
from tests.capabilities.recorder import calls, recorder_home

SUMMARY = (
    "## Goal\n- ship the walrus\n## Constraints\n-\n## Decisions\n-\n## State\n- begun\n## Files\n-\n## Open points\n-"
)


@pytest.mark.slow
def test_an_agent_compresses_a_full_context_by_itself(tmp_path: Path) -> None:
    """At three quarters of the window: the first and last messages stay, the middle becomes one running summary."""

    def answer(system: str, messages: Any, tools: Any) -> Reply:
        return Reply(SUMMARY if "summary" in system.lower() and not tools else "Yes.")

    with memoranda.open(tmp_path) as memory:
        session = memory.session(source="cli")
        agent = memory.agent(ScriptedModel(answer, window=32_000), session=session)
        first = session.id
        agent.turn("The very first question.")
        session.rename("My Session")
        number = 0
        while session.id == first and number < 40:
            number += 1
            agent.turn(f"Question {number}: {'word ' * 2_000}")
        assert 5 < number < 40
        context = [str(message["content"]) for message in session.conversation()]
        assert context[0] == "The very first question." and context[-1] == "Yes."
        assert sum("ship the walrus" in text for text in context) == 1
        assert f"Question {number}:" in "".join(context) and "Question 4:" not in "".join(context)
        row, old = memory.sessions.get_session(session.id), memory.sessions.get_session(first)
        assert row is not None and old is not None
        assert (row["parent_session_id"], row["title"]) == (first, "My Session #2")
        assert (old["end_reason"], old["title"]) == ("compression", "My Session")
        assert memory.sessions.get_compression_tip(first) == session.id
        # Nothing is gone: what left the context is found.
        assert memory.sessions.search_messages('"Question 4"')
        second = session.id
        while session.id == second and number < 80:
            number += 1
            agent.turn(f"Question {number}: {'word ' * 2_000}")
        assert session.title == "My Session #3"
        texts = [str(message["content"]) for message in session.conversation()]
        assert sum("ship the walrus" in text for text in texts) == 1


class Engine:
    """A context engine that keeps why sessions start."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def on_session_start(self, session_id: str, *, boundary_reason: str, **facts: Any) -> None:
        self.reasons.append(boundary_reason)


def test_everything_that_follows_a_conversation_learns_of_the_boundary(tmp_path: Path) -> None:
    """The provider contributes to the summary, is told the end and then the new id; the context engine the reason."""
    home = recorder_home(tmp_path)
    engine = Engine()
    with memoranda.open(home) as memory:
        session = memory.session(source="cli", context_engine=engine)
        first = session.id
        fill_context(session)
        # Without a model, the summary is an extract; the provider's text is in it all the same.
        assert session.compress(force=True).done
        assert "The recorder wants Otto in the summary." in str(session.conversation())
        take_turn(session, "After it.")
        session.end()
    hooks = calls(home, "on_pre_compress", "on_session_end", "on_session_switch")
    assert [call[0] for call in hooks[:3]] == ["on_pre_compress", "on_session_end", "on_session_switch"]
    assert hooks[2] == ["on_session_switch", session.id, first, False, "compression"]
    assert engine.reasons == ["start", "compression"]
    assert calls(home, "sync_turn")[-1] == ["sync_turn", "After it.", "Yes."]
