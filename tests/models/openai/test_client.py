"""What is particular to OpenAI-compatible services."""

import itertools
import json
from typing import Any

import pytest

from memoranda.models.model import Reply
from memoranda.models.openai import OpenAIChat, OpenAIStream, parse_reply, parse_usage
from memoranda.models.settings import ModelSettings
from memoranda.support.tool import JsonObject
from memoranda.testing.scripted.server import ScriptedServer
from tests.models.conftest import client, tool, user

pytestmark = pytest.mark.slow


def body(*messages: dict[str, Any], base_url: str = "http://localhost:1/v1", max_tokens: int = 0) -> JsonObject:
    model = OpenAIChat(ModelSettings(name="m", base_url=base_url), "")
    return model._body("Be kind.", messages, [tool()], max_tokens)


def test_the_record_is_sent_without_what_only_the_record_knows() -> None:
    """System prompt first, tools in their form, and of a message the fields that chat APIs know."""
    call = {"id": "c1", "type": "function", "function": {"name": "memory", "arguments": "{}"}}
    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call],
        "finish_reason": "tool_calls",
        "reasoning": "hm",
    }
    answered = {"role": "tool", "content": "{}", "tool_call_id": "c1", "tool_name": "memory"}
    assert body(user("Hi"), asked, answered) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [call], "content": None},
            {"role": "tool", "content": "{}", "tool_call_id": "c1"},
        ],
        "tools": [tool().openai_schema()],
    }


@pytest.mark.parametrize(
    ("base_url", "field"), [("", "max_completion_tokens"), ("http://localhost:11434/v1", "max_tokens")]
)
def test_the_limit_has_the_name_that_the_service_knows(base_url: str, field: str) -> None:
    """OpenAI's own new one, everybody else's old one."""
    assert body(user("Hi"), base_url=base_url, max_tokens=9)[field] == 9


def test_caches_that_need_a_request_are_requested() -> None:
    """OpenAI gets a key that is the same for a session, Claude on OpenRouter a mark, others nothing."""
    key = body(user("Hi"), base_url="")["prompt_cache_key"]
    assert key == body(user("Hi"), user("More"), base_url="")["prompt_cache_key"]
    routed = OpenAIChat(ModelSettings("openrouter", "anthropic/claude-opus-5", "http://localhost:1/v1"), "k")
    assert routed._body("s", [user("Hi")], [], 0)["cache_control"] == {"type": "ephemeral"}
    assert body(user("Hi")).keys() == {"model", "messages", "tools"}


def test_opaque_reasoning_goes_back_to_where_it_came_from() -> None:
    """To compatible services that sent it; not to OpenAI, which refuses the field, nor blocks of another vendor."""
    details = [{"type": "reasoning.encrypted", "data": "xyz"}, {"type": "thinking", "thinking": "", "signature": "s"}]
    message = {"role": "assistant", "content": "Hi", "reasoning_details": details}
    assert body(message)["messages"][1]["reasoning_details"] == details[:1]
    assert "reasoning_details" not in body(message, base_url="")["messages"][1]


@pytest.mark.parametrize("streamed", [False, True])
def test_visible_reasoning_is_separate_from_the_text(streamed: bool) -> None:
    """It is not part of the answer, and is not streamed."""
    heard: list[str] = []
    details = [{"type": "reasoning.text", "text": "let me think", "index": 0}]
    with ScriptedServer([Reply("Four.", reasoning="2 and 2", reasoning_details=details)]) as server:
        model = client("openai", server)
        reply = model.reply("", [user("2+2?")], on_text=heard.append if streamed else None)
    assert (reply.text, reply.reasoning, reply.reasoning_details) == ("Four.", "2 and 2", details)
    assert "".join(heard) == ("Four." if streamed else "")


def test_reasoning_in_fragments_becomes_one_block() -> None:
    """As it would have been without streaming."""
    growing = OpenAIStream(lambda _: None)
    for piece in ("let ", "me ", "think"):
        growing.add(_delta({"reasoning_details": [{"type": "reasoning.text", "text": piece, "index": 0}]}))
    growing.add(_delta({"reasoning_details": [{"type": "reasoning.text", "signature": "s", "index": 0}]}))
    growing.add(_delta({"content": "ok"}, "stop"))
    assert growing.reply().reasoning_details == [
        {"type": "reasoning.text", "text": "let me think", "index": 0, "signature": "s"}
    ]


@pytest.mark.parametrize(
    "fragments",
    [
        [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
         {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}],
        [{"index": 0, "id": "a", "function": {"name": "f"}}, {"index": 1, "id": "b", "function": {"name": "g"}},
         {"index": 0, "function": {"arguments": "{"}}, {"index": 1, "function": {"arguments": "{}"}},
         {"index": 0, "id": "a", "function": {"arguments": "}"}}],
        [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {}}},
         {"index": 1, "id": "b", "function": {"name": "g", "arguments": {}}}],
    ],
    ids=["all numbered 0", "interleaved", "objects"],
)  # fmt: skip
def test_tool_calls_are_put_together_however_a_service_cuts_them(fragments: list[JsonObject]) -> None:
    """By index, by id, or whole."""
    growing = OpenAIStream(lambda _: None)
    for fragment in fragments:
        growing.add(_delta({"tool_calls": [fragment]}))
    growing.add(_delta({}, "stop"))
    reply = growing.reply()
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [("a", "f", "{}"), ("b", "g", "{}")]
    assert reply.finish_reason == "tool_calls"


def test_calls_without_an_id_get_one_each() -> None:
    """A result must be able to name its call."""
    fragments = [{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "g", "arguments": "{}"}}]
    growing = OpenAIStream(lambda _: None)
    growing.add(_delta({"tool_calls": fragments}, "tool_calls"))
    ids = [call.id for call in growing.reply().tool_calls]
    assert len(set(ids)) == 2
    assert all(ids)


def test_a_refusal_is_text_with_a_finish_reason() -> None:
    """The text is the refusal, and the finish reason marks it."""
    reply = parse_reply({"choices": [{"message": {"content": None, "refusal": "I won't."}, "finish_reason": "stop"}]})
    assert (reply.text, reply.finish_reason) == ("I won't.", "refusal")


def test_cached_tokens_are_read_under_either_name() -> None:
    """OpenAI's, and DeepSeek's."""
    assert parse_usage({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}).cache_read_tokens == 4
    assert parse_usage({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}}).cache_read_tokens == 5
    assert parse_usage("nothing") == parse_usage(None)


def test_a_growing_conversation_is_sent_with_a_stable_beginning() -> None:
    """Byte for byte, so that the service's prefix cache serves it."""
    said: list[dict[str, Any]] = []
    with ScriptedServer(lambda _: Reply("Yes.")) as server:
        model = client("openai", server)
        for number in range(5):
            said.append(user(f"Question {number}"))
            said.append(model.reply("You help.", said, [tool()]).message())
    bodies = [json.dumps(received.json["messages"])[:-1] for received in server.received]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(bodies))
    assert server.usages[-1].cache_read_tokens > server.usages[-1].input_tokens * 0.7


def _delta(delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
