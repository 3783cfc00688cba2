"""The scripted server: what it records, what it refuses, and running it as a program."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from memoranda.errors import ContextTooLongError
from memoranda.models.model import Reply, ToolCall
from memoranda.testing.scripted.model import ScriptError
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Cut, Garbage, ReceivedRequest, Refuse, Slow, Trouble, read_step
from tests.models.conftest import client, tool, user
from tests.timing import GIVE_UP

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]


def post(url: str, body: Any, **headers: str) -> Any:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": "application/json", **headers})) as response:
        return json.load(response)


def test_requests_are_kept_word_for_word(tmp_path: Path) -> None:
    """In memory and in the log, with path and headers."""
    body = '{"model": "m",  "messages": [{"role": "user", "content": "h\\u00e9llo 你好"}]}'
    with ScriptedServer([Reply("Hi")], log=tmp_path / "log.jsonl") as server:
        answer = post(f"{server.url}/v1/chat/completions", body, **{"x-test": "1"})
    assert answer["choices"][0]["message"]["content"] == "Hi"
    assert server.received[0].text == body
    logged = json.loads((tmp_path / "log.jsonl").read_text())
    assert (logged["body"], logged["path"], logged["headers"]["x-test"]) == (body, "/v1/chat/completions", "1")


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_script_sees_the_same_conversation_through_either_api(api: str) -> None:
    """System prompt, messages and tools in chat form."""
    seen: list[ReceivedRequest] = []

    def script(received: ReceivedRequest) -> Reply:
        seen.append(received)
        return Reply("ok")

    asked = Reply("Wait.", (ToolCall("c1", "memory", '{"content": "x"}'),)).message()
    said = [user("Hi"), asked, {"role": "tool", "tool_call_id": "c1", "content": "done"}, user("And?")]
    with ScriptedServer(script) as server:
        client(api, server).reply("Be kind.", said, [tool("a"), tool("b")])
    system, messages, tools = seen[0].conversation
    assert (system, [each.name for each in tools]) == ("Be kind.", ["a", "b"])
    assert [(each["role"], each["content"]) for each in messages] == [
        ("user", "Hi"), ("assistant", "Wait."), ("tool", "done"), ("user", "And?"),
    ]  # fmt: skip
    assert messages[1]["tool_calls"] == asked["tool_calls"]
    assert messages[2]["tool_call_id"] == "c1"


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_what_is_longer_than_the_window_is_refused_as_the_service_would(api: str) -> None:
    """The client tells it from other refusals."""
    with ScriptedServer([], window=100) as server, pytest.raises(ContextTooLongError):
        client(api, server).reply("", [user("word " * 500)])


def test_a_path_may_have_a_query() -> None:
    """Claude Code calls `/v1/messages?beta=true`."""
    with ScriptedServer([Reply("Hi")]) as server:
        answer = post(f"{server.url}/v1/messages?beta=true", {"messages": [{"role": "user", "content": "Hi"}]})
    assert answer["content"][0]["text"] == "Hi"


def test_steps_that_are_left_are_an_error() -> None:
    """As with the scripted model."""
    with pytest.raises(ScriptError), ScriptedServer([Reply("never")]):
        pass


def test_requests_that_no_client_sends_are_refused() -> None:
    """Another path, no JSON, or one more than the script has."""
    with ScriptedServer([]) as server:
        for path, body, status in (
            ("/v2", {"a": 1}, 404),
            ("/v1/messages", "nonsense", 400),
            ("/v1/messages", {"a": 1}, 418),
        ):
            with pytest.raises(HTTPError) as caught:
                post(server.url + path, body)
            assert caught.value.code == status
            caught.value.close()


def test_steps_can_be_written_in_a_file() -> None:
    """Each kind of step has its words."""
    reply = Reply("Hi", (ToolCall("call_0", "memory", '{"a": 1}'),), finish_reason="tool_calls")
    assert read_step({"text": "Hi", "tool_calls": [{"name": "memory", "arguments": {"a": 1}}]}) == reply
    assert read_step({"status": 429, "message": "no"}) == Refuse(429, "no")
    assert read_step({"text": "Hi", "cut_after": 3, "clean": True}) == Cut(Reply("Hi"), 3, True)
    assert read_step({"text": "Hi", "trouble_after": 2}) == Trouble(Reply("Hi"), 2)
    assert read_step({"garbage": "{", "before": 1}) == Slow(Garbage("{"), 1.0)


def echo(received: ReceivedRequest) -> Reply:
    """Answers with the user's last message."""
    return Reply(f"You said: {received.conversation[1][-1]['content']}")


@contextmanager
def program(*arguments: str) -> Iterator[str]:
    """Runs the server in a separate process and yields its address."""
    command = [sys.executable, "-m", "memoranda.testing.scripted", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(GIVE_UP) == 0


def test_it_runs_as_a_program_with_a_script_and_a_log(tmp_path: Path) -> None:
    """Its first line is its address, and it ends on SIGTERM."""
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    script.write_text(json.dumps([{"text": "One"}, {"status": 418}]))
    body = {"model": "m", "messages": [user("Hi")]}
    with program("--script", str(script), "--log", str(log)) as url:
        assert post(f"{url}/v1/messages", body | {"max_tokens": 5})["content"] == [{"type": "text", "text": "One"}]
    assert len(log.read_text().splitlines()) == 1


def test_it_serves_a_function_as_a_program() -> None:
    """So that any client can be tried without a key."""
    with program("--script", "tests.testing.scripted.test_server:echo") as url:
        answer = post(f"{url}/v1/chat/completions", {"model": "m", "messages": [user("help")]})
    assert answer["choices"][0]["message"]["content"] == "You said: help"
    assert answer["usage"]["prompt_tokens"] > 0
