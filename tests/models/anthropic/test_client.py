"""What is particular to Anthropic: blocks, cache breakpoints, signed thinking."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import ModelReplyError
from memoranda.models.anthropic.request import CONTINUE, NO_TEXT, add_cache_breakpoints, to_anthropic_messages
from memoranda.models.anthropic.thinking import keep_thinking, order_blocks
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.support.tool import JsonObject
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest, Refuse, Step
from tests.models.conftest import client, tool, user

pytestmark = pytest.mark.slow


def assistant(text: str = "", *calls: str, **fields: Any) -> Message:
    made = tuple(ToolCall(name, "memory", '{"content": "x"}') for name in calls)
    return Reply(text, made).message() | fields


def result(name: str, content: Any = "done") -> Message:
    return {"role": "tool", "tool_call_id": name, "content": content}


def text(said: str) -> JsonObject:
    return {"type": "text", "text": said}


def test_calls_and_results_become_blocks_and_roles_alternate() -> None:
    """Results are in the user's message, several together, followed by the user's next text."""
    sent = to_anthropic_messages(
        [user("Hi"), assistant("Looking.", "a", "b"), result("a"), result("b", [text("ok")]), user("Go on")], "m"
    )
    uses = [{"type": "tool_use", "id": name, "name": "memory", "input": {"content": "x"}} for name in "ab"]
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": [text("done")]},
        {"type": "tool_result", "tool_use_id": "b", "content": [text("ok")]},
    ]
    assert sent == [
        {"role": "user", "content": [text("Hi")]},
        {"role": "assistant", "content": [text("Looking."), *uses]},
        {"role": "user", "content": [*results, text("Go on")]},
    ]


def test_what_the_service_would_refuse_is_put_right() -> None:
    """Nothing empty, a user at both ends, no strange ids, arguments that are objects, images in their own form."""
    broken = {"id": "functions.f:0", "function": {"name": "f", "arguments": "{oops"}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    sent = to_anthropic_messages(
        [
            assistant(" "),
            assistant("First."),
            user(""),
            {"role": "assistant", "content": "", "tool_calls": [broken]},
            result("functions.f:0", None),
            {"role": "user", "content": [image, {"type": "text", "text": "What is this?"}]},
            assistant("A dot."),
        ],
        "m",
    )
    assert [entry["role"] for entry in sent] == ["user", "assistant"] * 3 + ["user"]
    assert sent[0]["content"] == sent[-1]["content"] == [text(CONTINUE)]
    assert sent[2]["content"] == [text(NO_TEXT)]
    assert sent[3]["content"][0]["id"] == sent[4]["content"][0]["tool_use_id"] == "functions_f_0"
    assert sent[3]["content"][0]["input"] == {"unreadable_arguments": "{oops"}
    assert sent[4]["content"][1] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    }


def test_a_repeated_call_id_is_numbered_in_call_and_result() -> None:
    """This is true across turns, within a message, and for ids that would become equal; the record does not change."""
    first = [user("Hi"), assistant("", "call_1"), result("call_1", "one"), assistant("Yes."), user("And?")]
    second = [assistant("", "call_1", "call.1", "call_1"), result("call_1"), result("call_1"), result("call.1")]
    said = [*first, *second, assistant("", "call_1_2"), result("call_1_2")]
    given = json.dumps(said)
    sent = to_anthropic_messages(said, "m")
    names = [block["id"] for entry in sent for block in entry["content"] if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for entry in sent for block in entry["content"] if block["type"] == "tool_result"]
    assert names == ["call_1", "call_1_2", "call_1_3", "call_1_4", "call_1_2_2"]
    assert answered == ["call_1", "call_1_2", "call_1_4", "call_1_3", "call_1_2_2"]
    assert json.dumps(said) == given
    # A missing result is not invented, and takes no other call's id.
    lost = [user("Hi"), assistant("", "a"), user("Go on"), assistant("", "a"), result("a")]
    assert to_anthropic_messages(lost, "m")[-1]["content"][0]["tool_use_id"] == "a_2"


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Turns as a loop records them, tool calls included, whose names may come again and again."""
    words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    said: list[Message] = []
    for turn in range(draw(st.integers(1, 6))):
        said.append(user(draw(words)))
        for step in range(draw(st.integers(0, 3))):
            own = [f"t{turn}s{step}n{number}" for number in range(3)]
            names = draw(st.lists(st.sampled_from([*own, "c", "c_2", "c.2", "c_2_2"]), min_size=1, max_size=3))
            said.append(assistant(draw(words), *names))
            said += [result(name, draw(words)) for name in names]
        said.append(assistant(draw(words) + "."))
    return said


@given(conversations(), st.data())
def test_what_was_sent_once_is_sent_again_byte_for_byte(said: list[Message], data: st.DataObject) -> None:
    """A longer conversation begins with the blocks of the shorter one, and breakpoints change nothing else."""
    requests = [place for place, message in enumerate(said, start=1) if message["role"] != "assistant"]
    ends = sorted(data.draw(st.lists(st.sampled_from(requests), min_size=2, max_size=4)))
    before: list[str] = []
    for end in ends:
        body = {"system": [text("s")], "messages": to_anthropic_messages(said[:end], "m")}
        marked = add_cache_breakpoints(body)
        blocks = [
            json.dumps([entry["role"], {key: value for key, value in block.items() if key != "cache_control"}])
            for entry in marked["messages"]
            for block in entry["content"]
        ]
        plain = [json.dumps([entry["role"], block]) for entry in body["messages"] for block in entry["content"]]
        assert blocks == plain
        assert blocks[: len(before)] == before
        before = blocks
        assert 1 <= json.dumps(marked).count('"cache_control"') <= 4


@given(conversations())
def test_every_call_has_a_unique_id_and_a_result_with_that_id(said: list[Message]) -> None:
    """The result follows the call, whatever ids were recorded."""
    sent = to_anthropic_messages(said, "m")
    calls = [[block["id"] for block in entry["content"] if block["type"] == "tool_use"] for entry in sent]
    results = [[block["tool_use_id"] for block in entry["content"] if block["type"] == "tool_result"] for entry in sent]
    assert [sorted(names) for names in calls[:-1]] == [sorted(names) for names in results[1:]]
    every = [name for names in calls for name in names]
    assert len(set(every)) == len(every)


def marks(body: JsonObject) -> list[str]:
    """The texts that carry a breakpoint."""
    blocks = [*body["system"], *(block for entry in body["messages"] for block in entry["content"])]
    return [
        block.get("text") or block.get("id") or block["tool_use_id"] for block in blocks if "cache_control" in block
    ]


def test_breakpoints_are_where_the_next_request_continues() -> None:
    """They are at the system prompt, the ends of the two previous turns, and the end of this request."""
    said = [
        user("one"), assistant("first"),
        user("two"), assistant("", "a"), result("a"), assistant("second"),
        user("three"), assistant("thinking aloud", "b"), result("b"),
    ]  # fmt: skip
    body = {"system": [text("system")], "messages": to_anthropic_messages(said, "m")}
    assert marks(add_cache_breakpoints(body)) == ["system", "first", "second", "b"]
    assert marks(add_cache_breakpoints(body | {"messages": to_anthropic_messages(said[:1], "m")})) == ["system", "one"]
    assert marks(add_cache_breakpoints(body | {"messages": to_anthropic_messages(said[:3], "m")})) == [
        "system",
        "first",
        "two",
    ]


def test_thinking_carries_no_breakpoint() -> None:
    """The service refuses it there, so the block before it is marked."""
    thought = {"type": "thinking", "thinking": "", "signature": "s"}
    said = [{"role": "user", "content": [text("one")]}, {"role": "assistant", "content": [text("first"), thought]}]
    body = add_cache_breakpoints(
        {"system": [text("s")], "messages": [*said, {"role": "user", "content": [text("two")]}]}
    )
    assert marks(body) == ["s", "first", "two"]
    assert body["messages"][1]["content"][1] == thought


def test_without_a_system_prompt_the_tools_carry_the_breakpoint() -> None:
    """They are the first thing in the request."""
    body = add_cache_breakpoints(
        {"tools": [tool("a").anthropic_schema(), tool("b").anthropic_schema()], "messages": []}
    )
    assert [("cache_control" in each) for each in body["tools"]] == [False, True]


STEPS = 12


def test_recall_of_one_turn_costs_only_that_turn() -> None:
    """Everything before that turn is read from the cache, by the service's rule, however many tools the turn used."""
    said: list[Message] = []
    with ScriptedServer(lambda _: Reply("word " * 40)) as server:
        model = client("anthropic", server)
        for turn in range(4):
            asked = f"Question {turn} " + "about this " * 30
            since: list[Message] = []
            for number in range(STEPS):
                # The user's message carries the recall in each request of its turn, and in none after it.
                model.reply("You help. " * 50, [*said, user(f"{asked}\n\nrecalled"), *since], [tool()])
                name = f"t{turn}s{number}"
                since += [assistant("", name), result(name, "found " * 30)]
            said += [user(asked), *since, assistant("word " * 40)]
    shares = [usage.cache_read_tokens / usage.input_tokens for usage in server.usages]
    # A turn begins by reading all but the turn before it, whose user message is no longer the same; its first request
    # writes that turn, so that each further step reads all but its own.
    for turn in range(2, 4):
        first = server.usages[turn * STEPS]
        assert first.cache_read_tokens >= server.usages[(turn - 1) * STEPS].input_tokens * 0.9
        assert min(shares[turn * STEPS + 1 : (turn + 1) * STEPS]) > 0.95


class Signing:
    """A service that signs its thinking and refuses it where anything before it has changed, as the real one does."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.returned: list[int] = []

    def __call__(self, received: ReceivedRequest) -> Step:
        body = received.json
        seen = 0
        for place, entry in enumerate(body["messages"]):
            for number, block in enumerate(entry["content"]):
                if block["type"] == "thinking":
                    seen += 1
                    if block["signature"] != self.sign(body, place, number):
                        return Refuse(400, f"messages.{place}: Invalid `signature` in `thinking` block")
        self.returned.append(seen)
        thought = {"type": "thinking", "thinking": "", "signature": self.sign(body, len(body["messages"]), 0)}
        reply = self.replies.pop(0)
        return Reply(reply.text, reply.tool_calls, finish_reason=reply.finish_reason, reasoning_details=[thought])

    @staticmethod
    def sign(body: JsonObject, place: int, number: int) -> str:
        before = [body["model"], body["system"], body.get("tools"), body["messages"][:place], number]
        plain = json.dumps(before, sort_keys=True).replace(', "cache_control": {"type": "ephemeral"}', "")
        plain = plain.replace('"cache_control": {"type": "ephemeral"}, ', "")
        return hashlib.sha256(plain.encode()).hexdigest()


def step(name: str) -> Reply:
    return Reply("", (ToolCall(name, "memory", '{"content": "x"}'),), finish_reason="tool_calls")


@pytest.mark.parametrize("streamed", [False, True])
def test_thinking_goes_back_while_nothing_before_it_has_changed(streamed: bool) -> None:
    """Within a turn, and from turn to turn, also through the record's JSON."""
    signing = Signing(step("a"), step("b"), Reply("Done."), Reply("And again."))
    said: list[Message] = [user("Do it")]
    listen = (lambda _: None) if streamed else None
    with ScriptedServer(signing) as server:
        model = client("anthropic", server)
        for name in ("a", "b", ""):
            message = model.reply("You help.", said, [tool()], on_text=listen).message()
            said.append(json.loads(json.dumps(message)))
            said += [result(name)] if name else [user("More")]
        model.reply("You help.", said, [tool()], on_text=listen)
    assert signing.returned == [0, 1, 2, 3]


@pytest.mark.parametrize("change", ["recall", "system", "tools", "model", "compression"])
def test_thinking_stays_here_when_something_before_it_has_changed(change: str) -> None:
    """The service would refuse the request, so it is sent without, at the first try."""
    signing = Signing(step("a"), Reply("Done."), Reply("And again."))
    fenced = user("Do it\n\n<memory-context>recalled</memory-context>")
    with ScriptedServer(signing) as server:
        model = client("anthropic", server)
        first = model.reply("You help.", [fenced], [tool()]).message()
        second = model.reply("You help.", [fenced, first, result("a")], [tool()]).message()
        before = [user("Do it") if change == "recall" else fenced, first, result("a"), second]
        said = [user("[Summary]"), second] if change == "compression" else before
        name = {"name": "other-model"} if change == "model" else {}
        offered = [tool(), tool("new")] if change == "tools" else [tool()]
        system = "You help a lot." if change == "system" else "You help."
        client("anthropic", server, **name).reply(system, [*said, user("More")], offered)
    assert signing.returned == [0, 1, 0]
    assert len(server.received) == 3


def test_refused_thinking_is_omitted() -> None:
    """The conversation continues; any other refusal is reported."""
    refusal = Refuse(400, "messages.1.content.0: `thinking` blocks cannot be modified")
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    with ScriptedServer(
        [Reply("", step("a").tool_calls, reasoning_details=thought), refusal, Reply("Done.")]
    ) as server:
        model = client("anthropic", server)
        first = model.reply("You help.", [user("Do it")], [tool()])
        assert first.reasoning == "hm"
        assert model.reply("You help.", [user("Do it"), first.message(), result("a")], [tool()]).text == "Done."
    assert '"thinking"' in server.received[1].text
    assert '"thinking"' not in server.received[2].text
    with ScriptedServer([Refuse(400, "tools.0: Input should be valid")]) as server, pytest.raises(ModelReplyError):
        client("anthropic", server).reply("", [user("Hi")])


def test_thinking_between_other_blocks_keeps_its_place() -> None:
    """The blocks go back in the order in which they came."""
    content = [
        {"type": "thinking", "thinking": "a", "signature": "1"}, text("One. "),
        {"type": "redacted_thinking", "data": "zzz"}, text("Two."),
        {"type": "tool_use", "id": "x", "name": "memory", "input": {}},
        {"type": "thinking", "thinking": "b", "signature": "2"},
        {"type": "tool_use", "id": "y", "name": "memory", "input": {}},
    ]  # fmt: skip
    notes = keep_thinking(content)
    assert notes is not None
    uses = [block for block in content if block["type"] == "tool_use"]
    assert order_blocks(notes, [text("One. Two.")], uses) == content
    assert order_blocks(notes, [text("Changed.")], uses) == [text("Changed."), *uses]
    assert keep_thinking([text("only text")]) is None
