"""What both clients do alike, over real HTTP: answers, tools, usage, failures, deadlines."""

import json
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from memoranda.errors import (
    ContextTooLongError,
    ModelAuthError,
    ModelError,
    ModelOverloadedError,
    ModelQuotaError,
    ModelReplyError,
    ModelUnreachableError,
)
from memoranda.models.model import Reply, ToolCall, Usage
from memoranda.models.settings import ModelSettings
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Cut, Garbage, Refuse, Slow, Step, Trouble
from tests.models.conftest import KEY, Connect, client, tool, user
from tests.timing import GIVE_UP, HANG, wait_until

pytestmark = pytest.mark.slow

LONG = "The deadlock was caused by two transactions that lock in opposite order. 数据库死锁 🔒"
CALLS = (
    ToolCall("call_1", "memory", '{"content": "User prefers tea. 茶", "target": "user"}'),
    ToolCall("call_2", "session_search", '{"query": "deadlock"}'),
)
USED = Usage(1_200, 80, cache_read_tokens=900, cache_write_tokens=200, reasoning_tokens=30)
_both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def ask(model: Any, *, streamed: bool = False, **options: Any) -> tuple[Reply, list[str]]:
    heard: list[str] = []
    listen = heard.append if streamed else None
    return model.reply("You help.", [user("Hello")], [tool()], on_text=listen, **options), heard


@_both_ways
def test_an_answer_is_returned_completely(connect: Connect, streamed: bool) -> None:
    """Text, model and finish reason are those of the service; streamed, the pieces are the text."""
    with ScriptedServer([Reply(LONG, model="served-model")]) as server:
        reply, heard = ask(connect(server), streamed=streamed)
    assert (reply.text, reply.model, reply.finish_reason) == (LONG, "served-model", "stop")
    assert "".join(heard) == (LONG if streamed else "")
    assert len(heard) > 5 or not streamed
    assert server.received[0].streamed is streamed


@_both_ways
def test_several_tool_calls_are_returned_with_their_arguments(connect: Connect, streamed: bool) -> None:
    """They are in order, with the fragments of the arguments joined."""
    with ScriptedServer([Reply("Let me look.", CALLS, finish_reason="tool_calls")]) as server:
        reply, _ = ask(connect(server), streamed=streamed)
    assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [
        (call.id, call.name, json.loads(call.arguments)) for call in CALLS
    ]
    assert (reply.text, reply.finish_reason) == ("Let me look.", "tool_calls")


@_both_ways
def test_usage_counts_what_the_cache_served(connect: Connect, streamed: bool) -> None:
    """The input is everything that was sent, the cached part included."""
    with ScriptedServer([Reply("Hi", usage=USED)]) as server:
        assert ask(connect(server), streamed=streamed)[0].usage == USED


@_both_ways
def test_an_answer_that_was_cut_by_its_limit_says_so(connect: Connect, streamed: bool) -> None:
    """The limit is sent, and the finish reason is length."""
    with ScriptedServer([Reply("Half of", finish_reason="length")]) as server:
        reply, _ = ask(connect(server), streamed=streamed, max_tokens=7)
    assert reply.finish_reason == "length"
    assert server.received[0].json["max_tokens"] == 7


REFUSALS: list[tuple[Refuse, type[ModelError]]] = [
    (Refuse(401, "Incorrect API key provided", "invalid_api_key"), ModelAuthError),
    (Refuse(403, "Your key may not use this model"), ModelAuthError),
    (Refuse(402, "Payment required"), ModelQuotaError),
    (Refuse(429, "You exceeded your current quota, please check your plan", "insufficient_quota"), ModelQuotaError),
    (Refuse(400, "Your credit balance is too low to access the API"), ModelQuotaError),
    (Refuse(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"), ContextTooLongError),
    (Refuse(400, "prompt is too long: 210000 tokens > 200000 maximum"), ContextTooLongError),
    (Refuse(400, "the request exceeds the available context size", "exceed_context_size_error"), ContextTooLongError),
    (Refuse(400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), ContextTooLongError),
    (Refuse(413, "Request exceeds the maximum size"), ContextTooLongError),
    (Refuse(404, "The model `any-model` does not exist"), ModelReplyError),
    (Refuse(400, "max_tokens is too large: this model supports at most 4096 completion tokens"), ModelReplyError),
]


@_both_ways
@pytest.mark.parametrize(("step", "kind"), REFUSALS, ids=[f"{step.status} {step.message[:20]}" for step, _ in REFUSALS])
def test_refusals_are_distinguished_and_not_retried(
    connect: Connect, step: Refuse, kind: type[ModelError], streamed: bool
) -> None:
    """Each kind has its own error, which quotes the service."""
    with ScriptedServer([step]) as server, pytest.raises(kind) as caught:
        ask(connect(server), streamed=streamed)
    assert type(caught.value) is kind
    assert step.message in str(caught.value)
    assert len(server.received) == 1


@_both_ways
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_what_passes_is_tried_again(connect: Connect, status: int, streamed: bool) -> None:
    """A service that is overloaded for a short time is asked again with the same request."""
    with ScriptedServer([Refuse(status, "busy"), Refuse(status, "busy"), Reply("Here")]) as server:
        assert ask(connect(server), streamed=streamed)[0].text == "Here"
    assert len({received.text for received in server.received}) == 1


def test_an_overload_that_stays_is_reported_after_the_last_try(connect: Connect) -> None:
    """As many tries as the settings say, and then the error."""
    with (
        ScriptedServer([Refuse(529, "Overloaded")] * 3) as server,
        pytest.raises(ModelOverloadedError, match="Overloaded"),
    ):
        ask(connect(server, tries=3))


def test_the_wait_that_a_service_asks_for_is_kept(connect: Connect) -> None:
    """No earlier than it says."""
    with ScriptedServer([Refuse(429, "slow down", headers={"retry-after": "0.3"}), Reply("ok")]) as server:
        ask(connect(server))
    first, second = server.received
    assert second.at - first.at >= 0.3


def test_a_wait_beyond_the_deadline_is_not_begun(connect: Connect) -> None:
    """The error comes at once, since waiting could not help."""
    began = time.monotonic()
    with (
        ScriptedServer([Refuse(429, "slow down", headers={"retry-after": "900"})]) as server,
        pytest.raises(ModelOverloadedError),
    ):
        ask(connect(server), deadline=HANG)
    assert time.monotonic() - began < GIVE_UP


@_both_ways
@pytest.mark.parametrize(
    "slow",
    [Slow(Reply("late"), before=HANG), Slow(Reply(LONG * 60), between=0.05)],
    ids=["silent", "dripping"],
)
def test_the_deadline_is_kept(connect: Connect, slow: Slow, streamed: bool) -> None:
    """This is true even if a service keeps sending a little."""
    with ScriptedServer([Reply("warm"), slow]) as server:
        model = connect(server)
        ask(model)
        began = time.monotonic()
        with pytest.raises(ModelUnreachableError, match=r"within 0\.5 seconds"):
            ask(model, streamed=streamed, deadline=0.5)
        took = time.monotonic() - began
    assert took < GIVE_UP


def test_the_deadline_covers_all_tries(connect: Connect) -> None:
    """Retries do not extend it."""
    steps: list[Step] = [Slow(Refuse(503, "busy"), before=0.25)]
    began = time.monotonic()
    with ScriptedServer(lambda _: steps[0]) as server, pytest.raises(ModelError):
        ask(connect(server, tries=2_000), deadline=1)
    assert time.monotonic() - began < GIVE_UP


@_both_ways
def test_a_connection_that_breaks_is_tried_again(connect: Connect, streamed: bool) -> None:
    """As long as no text of the answer was streamed."""
    with ScriptedServer([Cut(Reply(LONG), after=1), Reply("whole")]) as server:
        reply, heard = ask(connect(server), streamed=streamed)
    assert reply.text == "whole"
    assert "".join(heard) in ("", "whole")


@pytest.mark.parametrize("clean", [False, True], ids=["dropped", "ended"])
def test_an_answer_that_breaks_off_is_an_error_and_not_an_answer(connect: Connect, clean: bool) -> None:
    """What was heard cannot be unsaid, so it is not begun again; and half an answer is never taken for a whole one."""
    heard: list[str] = []
    with (
        ScriptedServer([Cut(Reply(LONG, CALLS), after=6, clean=clean)]) as server,
        pytest.raises(ModelUnreachableError),
    ):
        connect(server).reply("", [user("Hi")], on_text=heard.append)
    assert LONG.startswith("".join(heard))
    assert heard


def test_an_error_within_a_stream_is_distinguished(connect: Connect) -> None:
    """Before the first text the call is retried; after it the error is raised."""
    with ScriptedServer([Trouble(Reply(LONG), after=1), Reply("fine")]) as server:
        assert ask(connect(server), streamed=True)[0].text == "fine"
    with ScriptedServer([Trouble(Reply(LONG), after=6)]) as server, pytest.raises(ModelOverloadedError):
        ask(connect(server), streamed=True)


GARBAGE = [
    Garbage("{not json"),
    Garbage("<html>Bad gateway</html>", content_type="text/html"),
    Garbage("[]"),
    Garbage('"hello"'),
    Garbage("null"),
    Garbage("{}"),
    Garbage('{"choices": [], "content": null}'),
    Garbage('{"choices": [{"message": {"content": 7}}], "content": "text", "type": "message"}'),
    Garbage('{"choices": "x", "content": [3], "type": "message_start", "message": []}'),
]


@_both_ways
@pytest.mark.parametrize("step", GARBAGE, ids=lambda step: step.text[:30])
def test_garbage_is_an_error_of_ours(connect: Connect, step: Garbage, streamed: bool) -> None:
    """Whatever a service sends, the caller sees a ModelError."""
    with ScriptedServer(lambda _: step) as server, pytest.raises((ModelReplyError, ModelUnreachableError)):
        ask(connect(server, tries=2), streamed=streamed)


def test_a_service_that_is_not_there_is_a_model_error(connect: Connect) -> None:
    """A refused connection is unreachable, after all tries."""
    with ScriptedServer([]) as server:
        pass
    with pytest.raises(ModelUnreachableError):
        ask(connect(server, tries=2))


def test_the_key_is_sent_and_never_shown(api: str) -> None:
    """Not even when the service repeats it in its error."""
    with ScriptedServer([], key="another") as server, pytest.raises(ModelAuthError) as caught:
        ask(client(api, server))
    sent = server.received[0].headers
    assert KEY in (sent.get("x-api-key"), sent.get("authorization", "").removeprefix("Bearer "))
    assert KEY not in str(caught.value)
    assert "[key]" in str(caught.value)


def test_an_interrupt_stops_listening_at_once(connect: Connect) -> None:
    """What the listener raises reaches the caller, and the call is given up."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with ScriptedServer([Slow(Reply(LONG), between=0.01)]) as server:
        model = connect(server)
        with pytest.raises(KeyboardInterrupt):
            model.reply("", [user("Hi")], on_text=interrupt)
        for thread in threading.enumerate():
            if thread.name.startswith("model call"):
                thread.join(GIVE_UP)
                assert not thread.is_alive()


WAITING = """
import sys
from memoranda.models.settings import ModelSettings
from memoranda.models.openai import OpenAIChat
from memoranda.models.anthropic.client import AnthropicMessages
kind = OpenAIChat if sys.argv[1] == "openai" else AnthropicMessages
print("ready", flush=True)
try:
    kind(ModelSettings(name="m", base_url=sys.argv[2]), "k").reply("", [{"role": "user", "content": "Hi"}])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_a_program_that_waits_can_be_interrupted(api: str) -> None:
    """Ctrl-C is heard at once, and the program ends although the service never answers."""
    with ScriptedServer([Slow(Reply("late"), before=HANG)]) as server:
        url = server.url if api == "anthropic" else server.openai_url
        command = [sys.executable, "-c", WAITING, api, url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            wait_until(lambda: server.received or process.poll() is not None)
            assert process.poll() is None
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=GIVE_UP)[0].splitlines() == ["ready", "interrupted"]
            assert time.monotonic() - began < GIVE_UP


def test_many_threads_share_one_client(connect: Connect) -> None:
    """Each gets the answer to its own question."""
    with ScriptedServer(lambda received: Reply(received.conversation[1][-1]["content"] + "!")) as server:
        model = connect(server)
        answers: dict[int, str] = {}

        def one(number: int) -> None:
            answers[number] = model.reply("", [user(f"question {number}")], on_text=lambda _: None).text

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {number: f"question {number}!" for number in range(8)}


def test_a_client_says_who_and_how_large_it_is(api: str) -> None:
    """Name, provider and window come from the settings, or from the name."""
    with ScriptedServer([]) as server:
        assert client(api, server).provider == api
        assert client(api, server, name="claude-sonnet-5-5").window == 1_000_000
        assert client(api, server, name="x", window=5_000).window == 5_000
    assert ModelSettings().deadline_seconds == 300
