"""Homes that use the double of Honcho, and short ways to call a provider."""

import json
from pathlib import Path
from typing import Any

from memoranda.external.vendors.honcho.vendor import HonchoProvider
from tests.external.vendors.honcho.double import KEY, HonchoDouble, Workspace

ASSISTANT = "memoranda__for__default"
SESSION = "default__session__s1"


class Home:
    """Starts providers in one home, and shuts them down."""

    def __init__(self, double: HonchoDouble, path: Path) -> None:
        self._double = double
        self.path = path
        self._started: list[HonchoProvider] = []

    def start(
        self, user_id: str = "", session_id: str = "s1", context: str = "primary", **settings: Any
    ) -> HonchoProvider:
        provider = HonchoProvider(self.path, {"baseUrl": self._double.url, "api_key": KEY, "timeout": 5, **settings})
        provider.initialize(session_id, hermes_home=str(self.path), user_id=user_id, agent_context=context)
        self._started.append(provider)
        return provider

    @property
    def workspace(self) -> Workspace:
        return self._double.workspaces["memoranda"]

    def close(self) -> None:
        for provider in self._started:
            provider.shutdown()


def send_turn(provider: HonchoProvider, text: str, key: str = "k1", session_id: str = "s1", **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id=session_id, idempotency_key=key, **facts)


def call_tool(provider: HonchoProvider, tool: str, **args: Any) -> dict[str, Any]:
    answer = json.loads(provider.handle_tool_call(tool, args))
    assert isinstance(answer, dict)
    return answer
