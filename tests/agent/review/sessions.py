"""A session for the tests of review: real curated memory and real skills on a real disk."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.memory.curated.settings import CuratedSettings, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.tool import SkillTools
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.support.origin import Origin
from memoranda.support.tool import JsonObject, Tool


class Talk:
    """A conversation that can be reviewed."""

    def __init__(
        self, home: Path, *said: str, session_id: str = "s1", user: str | None = None, approval: Any = "off"
    ) -> None:
        self.id = session_id
        self.user = user
        self.prompt = "You are a test.\n\nMEMORY: the user's dog is called Rex."
        self.home = home
        self.store = MemoryStore(home / "memories", CuratedSettings(write_approval=approval))
        self.store.load_from_disk()
        self.messages: list[Message] = []
        self.own: list[str] = []
        self.called: list[str] = []
        self.say(*said)

    def say(self, *said: str) -> "Talk":
        """The user says something, and gets an answer."""
        for text in said:
            self.own.append(text)
            self.messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
        return self

    def hear(self, text: str) -> "Talk":
        """The assistant says something, and a tool does."""
        call = {"id": "t1", "type": "function", "function": {"name": "web", "arguments": "{}"}}
        self.messages += [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": text},
            {"role": "assistant", "content": text},
        ]
        self.own.append("Go on.")
        return self

    @property
    def tools(self) -> tuple[Tool, ...]:
        outside = Tool("session_search", "Search.", {"type": "object"}, self._outside)
        return (*MemoryTool(self.store, Origin("agent", self.id)).definitions(), outside, *self._skills("agent"))

    def conversation(self) -> list[Message]:
        return [dict(message) for message in self.messages]

    def user_texts(self) -> Sequence[str]:
        return list(self.own)

    def entries(self, target: Target) -> Sequence[str]:
        return self.store.entries(target)

    def review_tools(self) -> Sequence[Tool]:
        return (*MemoryTool(self.store, Origin("review", self.id)).definitions(), *self._skills("review"))

    def _skills(self, actor: str) -> tuple[Tool, ...]:
        return SkillTools(SkillStore(self.home / "skills"), Origin(actor, self.id)).definitions()

    def _outside(self, arguments: Mapping[str, Any]) -> JsonObject:
        self.called.append("session_search")
        return {"success": True}


def call(tool: str, number: str = "c1", /, **arguments: Any) -> ToolCall:
    return ToolCall(number, tool, json.dumps(arguments))


def add(content: str, target: str = "memory", number: str = "c1") -> ToolCall:
    return call("memory", number, target=target, action="add", content=content)


def using(*calls: ToolCall) -> Reply:
    """An answer that calls tools."""
    return Reply("", calls, finish_reason="tool_calls")


NOTHING = Reply("Nothing to save.")
DONE = Reply("Saved.")
