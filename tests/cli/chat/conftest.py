"""A scripted service that answers every chat, and the settings with which a chat reaches it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.models.model import Reply, ToolCall
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest, Refuse, Slow, Step
from tests.cli.chat.person import Person
from tests.timing import HANG

MARKDOWN = """# Steps

Use **bold words** and `code` here, so that the paragraph is long enough to be wrapped at forty columns.

- the first item of the list is long enough to be wrapped as well
- the second one

```python
print("a line of code that is longer than forty columns and stays as it is")
```

| name | count |
|------|------:|
| 喜欢 | 12 |

我们昨天讨论了数据库迁移的问题，最后决定使用逻辑复制来完成这次迁移工作。
"""


def answer(received: ReceivedRequest) -> Step:
    """The answer of the service, which depends on the last message."""
    last = received.conversation[1][-1]
    said = str(last["content"])
    if last["role"] == "tool":
        return Reply("It is noted.")
    if "remember" in said:
        save = json.dumps({"target": "memory", "action": "add", "content": "Ana uses tabs."})
        return Reply("One moment.", (ToolCall(f"call_{received.number}", "memory", save),))
    if "story" in said:
        return Slow(Reply("Once upon a time " + "and then " * 200 + "the end."), between=0.02)
    if "think" in said:
        return Slow(Reply("A thought."), before=HANG)
    if "markdown" in said:
        return Slow(Reply(MARKDOWN), between=0.001)
    if "refuse" in said:
        return Refuse(401, "Incorrect API key provided", "invalid_api_key")
    if "escape" in said:
        return Reply("A title: \x1b]0;owned\x07 and \x1b[31mred.")
    return Reply(f"You said: {said}.")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as server:
        monkeypatch.setenv("MEMORANDA_MODEL_PROVIDER", "openai")
        monkeypatch.setenv("MEMORANDA_MODEL_NAME", "scripted-1")
        monkeypatch.setenv("MEMORANDA_MODEL_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
        yield server


@pytest.fixture
def person(home: Path, service: ScriptedServer) -> Iterator[Person]:
    """A user in a new chat that waits for the first line."""
    with Person(home) as user:
        user.is_asked()
        yield user


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
