"""The examples of the README do what it says."""

import json
from pathlib import Path
from typing import Any

import pytest

import memoranda
from tests.docs.pages import ROOT, fences


def test_the_loop_of_the_readme_calls_tools_and_records_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the model remembers is saved, and the conversation has all four messages."""
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path / "home"))
    names: dict[str, Any] = {}
    exec("\n".join(fences(ROOT / "README.md", "python")), names)
    arguments = {"target": "memory", "action": "add", "content": "The oven is broken."}
    function = {"name": "memory", "arguments": json.dumps(arguments)}
    replies = [
        {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"content": "I will keep that in mind."},
    ]
    with memoranda.open(tmp_path / "home") as memory, memory.session() as session:
        answer = names["answer"](session, "Our oven is broken.", lambda system, messages, tools: replies.pop(0))
        assert answer == "I will keep that in mind."
        assert [message["role"] for message in session.conversation()] == ["user", "assistant", "tool", "assistant"]
        assert memory.entries("memory") == ("The oven is broken.",)
