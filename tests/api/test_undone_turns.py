"""What an interrupted or undone turn leaves behind, and what becomes of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memoranda.agent.events import PartialAnswerKept
from memoranda.agent.model_messages import PARTIAL_ANSWER, to_api_messages
from memoranda.api.memory import open_memory
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.models.model import Message, OnText, Reply, ToolCall
from memoranda.support.tool import Tool
from memoranda.testing.scripted.model import ScriptedModel

_SKILL = "---\nname: deploy\ndescription: How to deploy.\n---\n\nRun make deploy.\n"


class _InterruptedModel(ScriptedModel):
    """A model whose user presses Ctrl-C after some words."""

    def __init__(self, words: str) -> None:
        super().__init__([])
        self._words = words

    def reply(
        self, system: str, messages: Sequence[Message], tools: Sequence[Tool] = (), *, on_text: OnText | None = None,
        max_tokens: int | None = None, deadline: float | None = None,
    ) -> Reply:  # fmt: skip
        if on_text and self._words:
            on_text(self._words)
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "keep", "kept"), [("Once upon", True, True), ("Once upon", False, False), ("", True, False)]
)
def test_what_was_shown_of_an_interrupted_answer_is_recorded(
    tmp_path: Path, words: str, keep: bool, kept: bool
) -> None:
    """Marked, so that neither a model nor a review takes it for an answer; nothing if none was shown, or by choice."""
    (tmp_path / "config.yaml").write_text(f"agent:\n  keep_interrupted: {json.dumps(keep)}\n")
    events: list[Any] = []
    with open_memory(tmp_path) as memory, memory.session() as session:
        agent = memory.agent(_InterruptedModel(words), session=session, on_text=print, on_event=events.append)
        with pytest.raises(KeyboardInterrupt):
            agent.turn("Tell me a story")
        memory.agent(ScriptedModel([Reply("Hello.")]), session=session).turn("Hi", wait=0)
        recorded = memory.sessions.get_messages(session.id)
        sent = to_api_messages(session.for_review(None).conversation())
    partial = [(each["content"], each["finish_reason"]) for each in recorded[1:-2]]
    assert partial == ([(f"Once upon\n\n{PARTIAL_ANSWER}", "interrupted")] if kept else [])
    assert [event for event in events if isinstance(event, PartialAnswerKept)] == [PartialAnswerKept(words)] * kept
    assert [message["role"] for message in sent] == ["user", "assistant"] * 2
    assert "interrupted" in sent[1]["content"]


def _calls(*calls: ToolCall) -> list[Any]:
    return [Reply("", tool_calls=calls), Reply("Done.")]


def _save(call_id: str, text: str) -> ToolCall:
    return ToolCall(call_id, "memory", json.dumps({"action": "add", "target": "memory", "content": text}))


def test_an_undone_turn_names_what_it_saved_and_reverts_it_on_request(tmp_path: Path) -> None:
    """Only its own changes: not those of earlier turns, of a person, or of another session."""
    skill = ToolCall("c3", "skill_manage", json.dumps({"action": "create", "name": "deploy", "content": _SKILL}))
    script = [*_calls(_save("c1", "Earlier.")), *_calls(_save("c2", "From this turn."), skill)]
    with open_memory(tmp_path) as memory, memory.session() as session:
        agent = memory.agent(ScriptedModel(script), session=session)
        agent.turn("First")
        agent.turn("Second")
        memory.remember("By a person.")
        memory.session().call("memory", {"action": "add", "target": "memory", "content": "Elsewhere."})
        undone = session.undo()
        assert undone is not None
        assert [(change.part, change.text) for change in undone.saved] == [
            ("memory", "MEMORY.md: + From this turn."),
            ("skills", "skill deploy: create"),
        ]
        assert undone.saved[0].command == f"memoranda memory undo {undone.saved[0].number}"
        assert "From this turn." in memory.entries("memory")
        assert all(reverted.done for reverted in session.revert(undone.saved))
        assert memory.entries("memory") == ("Earlier.", "By a person.", "Elsewhere.")
        assert isinstance(memory.services.skills_for(None).view("deploy"), SkillRefusal)
        again = session.revert(undone.saved)
        assert [reverted.done for reverted in again] == [False, False]
