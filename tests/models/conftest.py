"""Both real clients on a scripted server over real HTTP, with short waits between tries."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from memoranda.models import model_call
from memoranda.models.anthropic.client import AnthropicMessages
from memoranda.models.openai import OpenAIChat
from memoranda.models.sdk_model import SdkModel
from memoranda.models.settings import ModelSettings
from memoranda.support.tool import Tool
from memoranda.testing.scripted.server import ScriptedServer

KEY = "sk-test-0123456789"

Connect = Callable[..., SdkModel]


@pytest.fixture(scope="session", autouse=True)
def _load_sdks(model_sdks: None) -> None:
    """Load them before the first test."""


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_call, "_FIRST_WAIT", 0.01)


@pytest.fixture(params=["openai", "anthropic"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(api: str) -> Iterator[Connect]:
    """A client of either kind for a server, with settings by name."""
    with ExitStack() as stack:

        def connected(server: ScriptedServer, **settings: Any) -> SdkModel:
            model = client(api, server, **settings)
            stack.callback(model.close)
            return model

        yield connected


def client(api: str, server: ScriptedServer, **settings: Any) -> SdkModel:
    base: dict[str, Any] = {"name": "any-model", "deadline_seconds": 20.0} | settings
    if api == "anthropic":
        return AnthropicMessages(ModelSettings(base_url=server.url, **base), KEY)
    return OpenAIChat(ModelSettings(base_url=server.openai_url, **base), KEY)


def tool(name: str = "memory") -> Tool:
    schema = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}
    return Tool(name, f"The tool {name}.", schema, lambda _: {"success": True})


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}
