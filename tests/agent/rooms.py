"""A real session as the loop sees it, with compression that a test decides on."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from memoranda.agent.session_views import AgentTurn, Compression
from memoranda.api.session import Session
from memoranda.models.model import Reply, ToolCall, Usage
from memoranda.support.tool import JsonObject, Tool

NOT_DUE = Compression(done=False, why="not due")


class Room:
    """A session whose `compress` answers what the test laid ready; `forced` says how it was asked."""

    def __init__(self, session: Session, *, compressions: list[Compression | Exception] | None = None) -> None:
        self.session = session
        self.usages: list[Usage] = []
        self.forced: list[bool] = []
        self._compressions = compressions or []

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def prompt(self) -> str:
        return self.session.prompt

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.session.tools

    def turn(self, text: Any, *, wait: float | None = None) -> AbstractContextManager[AgentTurn]:
        return self.session.turn(text)

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        return self.session.call(name, arguments)

    def note_usage(self, usage: Usage, *, model: str, provider: str) -> None:
        self.usages.append(usage)

    def compress(self, *, force: bool = False, focus: str = "") -> Compression:
        self.forced.append(force)
        if not force or not self._compressions:
            return NOT_DUE
        answer = self._compressions.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def calling(name: str, arguments: str = "{}", *, call_id: str = "c1", text: str = "") -> Reply:
    """A reply that calls one tool."""
    return Reply(text=text, tool_calls=(ToolCall(call_id, name, arguments),))
