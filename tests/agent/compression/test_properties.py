"""In any conversation nothing is lost, no call is separated from its result, and the latest request does not change."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.agent.compression.compressor import CompressedContext, Compressor, NotCompressed
from memoranda.agent.compression.plan import latest_request
from memoranda.agent.compression.prompts import FOOTER, SECTIONS
from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.compression.summary import parse_sections, parse_summaries
from memoranda.errors import ModelOverloadedError
from memoranda.memory.record.rotation import KeptMessage, LiveMessage, Summary
from memoranda.models.model import ChatModel, Message, Reply
from memoranda.models.tokens import estimate_message
from memoranda.testing.scripted.model import ScriptedModel
from tests.agent.compression.conftest import calls, chatter, good_model, numbered, result, said
from tests.examples import examples

pytestmark = pytest.mark.slow

TEXT = st.one_of(
    st.text(max_size=40),
    st.integers(1, 4_000).map(lambda size: "lorem ipsum " * (size // 12 + 1)),
    st.sampled_from(["go on", "## Goal\n- x", "Always use tabs.", "- [ ] write the tests", "messages 1 to 999999",
                     "[Summary of this conversation so far.", "", "部署" * 200]),
)  # fmt: skip
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
PARTS = TEXT.map(lambda text: [{"type": "text", "text": text}, IMAGE])


@st.composite
def turn(draw: Any, number: int) -> list[Message]:
    """One turn: a request, perhaps calls and results, perhaps an answer; any of it may be missing."""
    made: list[Message] = []
    if draw(st.integers(0, 9)):
        made.append(said("user", draw(st.one_of(TEXT, PARTS))))
    for step in range(draw(st.integers(0, 3))):
        # Some models use the same ids again in every turn.
        prefix = "call" if draw(st.booleans()) else f"call_{number}"
        ids = [f"{prefix}_{step}_{each}" for each in range(draw(st.integers(1, 3)))]
        made.append(
            calls(*ids, arguments=draw(st.sampled_from(['{"a": 1}', "no json", '{"a": "' + "x" * 3000 + '"}'])))
        )
        answered = ids if draw(st.integers(0, 4)) else ids[:-1]
        made += [result(each, draw(TEXT)) for each in draw(st.permutations(answered))]
    if draw(st.integers(0, 3)):
        made.append(said("assistant", draw(TEXT)))
    if not draw(st.integers(0, 12)):
        made.append(result("unknown", "orphan"))
    return made


@st.composite
def conversation(draw: Any) -> list[Message]:
    turns = [draw(turn(number)) for number in range(draw(st.integers(0, 12)))]
    return [message for each in turns for message in each]


MODELS = st.sampled_from(["good", "garbage", "error", "none"])


def _model(kind: str) -> ChatModel | None:
    if kind == "good":
        return good_model()
    if kind == "none":
        return None
    broken = ModelOverloadedError("busy") if kind == "error" else Reply('{"summary": "tru')
    return ScriptedModel([broken] * 20)


def _pairs(live: list[LiveMessage]) -> list[tuple[int, int]]:
    """Ids of calls and of the results that answer them."""
    asked: dict[str, int] = {}
    found = []
    for each in live:
        for call in each.message.get("tool_calls") or ():
            asked[call["id"]] = each.id
        answers = each.message.get("tool_call_id")
        if answers in asked:
            found.append((asked[answers], each.id))
    return found


def _check(live: list[LiveMessage], done: CompressedContext, chosen: CompressionSettings, window: int) -> None:
    kept = [item.message_id for item in done.context if isinstance(item, KeptMessage)]
    by_id = {each.id: each for each in live}
    # In order, each once, and no call without its result.
    assert kept == sorted(set(kept))
    for call, answer in _pairs(live):
        assert (call in kept) == (answer in kept)
    # Every message is repeated, or in the range of the summary.
    for each in live:
        assert each.is_summary or each.id in kept or done.first_id <= each.recorded_id <= done.last_id
    # The latest request is there, word for word.
    asked = latest_request(live)
    if asked is not None:
        assert KeptMessage(live[asked].id) in done.context
    summaries = [item for item in done.context if isinstance(item, Summary)]
    assert len(summaries) == (1 if done.how != "pruned" or any(each.is_summary for each in live) else 0)
    size = sum(
        estimate_message({"content": item.text}) if isinstance(item, Summary)
        else estimate_message(item.replacement or by_id[item.message_id].message)
        for item in done.context
    )  # fmt: skip
    assert size == done.tokens_after < done.tokens_before
    assert done.how == "pruned" or size <= chosen.target(window) or "tokens are left" in done.why
    assert done.last_seen == live[-1].id


@settings(max_examples=examples(80))
@given(messages=conversation(), kind=MODELS, window=st.sampled_from([2_000, 8_000, 128_000]), force=st.booleans(),
       first=st.integers(0, 4), last=st.integers(0, 8))  # fmt: skip
def test_nothing_is_lost_and_nothing_is_torn_apart(
    messages: list[Message], kind: str, window: int, force: bool, first: int, last: int
) -> None:
    """For any conversation, window and model, through three compressions in a row."""
    chosen = CompressionSettings(protect_first=first, protect_last=last)
    live = numbered(messages)
    for _ in range(3):
        done = Compressor(chosen).compress(live, model=_model(kind), window=window, session_id="s", force=force)
        if isinstance(done, NotCompressed):
            assert done.reason
            return
        _check(live, done, chosen, window)
        if done.how != "pruned":
            assert (done.how == "model") == (kind == "good") or done.how == "extract"
            assert (done.how == "extract") == bool(done.why.split("tokens are left")[0].strip(" 0123456789,;"))
            assert parse_sections(done.summary) is not None
            assert parse_summaries([done.summary]).first_id == done.first_id
            assert all(done.summary.count(f"## {name}\n") == 1 for name in SECTIONS)
        live = _continued(live, done)


def _continued(live: list[LiveMessage], done: CompressedContext) -> list[LiveMessage]:
    """The context of the continuation, with one more turn."""
    by_id = {each.id: each for each in live}
    number = live[-1].id + 100
    made = []
    for item in done.context:
        number += 1
        if isinstance(item, Summary):
            made.append(LiveMessage(number, said("user", item.text), is_summary=True))
        else:
            old = by_id[item.message_id]
            made.append(LiveMessage(number, item.replacement or old.message, old.recorded_id))
    more = [said("user", "And what about the other parser? " * 20), said("assistant", "It reads a file, too. " * 20)]
    return [*made, *(LiveMessage(number + 1 + place, message) for place, message in enumerate(more))]


HEADINGS = [f"## {name}\n" for name in SECTIONS]
PIECES = [
    *HEADINGS, "- the parser reads a file\n", "-\n", "```\n", "<think>", "</think>", "{", "\x00", "messages 1 to 9",
    "**Goal**\n", FOOTER,
]  # fmt: skip
FUZZ = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.permutations(HEADINGS).map("- x\n".join),
)


@settings(max_examples=examples(80))
@given(answer=FUZZ, reason=st.sampled_from(["stop", "length", "refusal", ""]))
def test_whatever_the_summariser_answers_there_is_one_good_summary(answer: str, reason: str) -> None:
    """Refused answers lead to an extract; what is taken can be read back and updated."""
    live = numbered(chatter(40))
    model = ScriptedModel([Reply(answer, finish_reason=reason)])
    done = Compressor().compress(live, model=model, window=4_000, session_id="s")
    assert isinstance(done, CompressedContext)
    _check(live, done, CompressionSettings(), 4_000)
    assert (done.how == "extract") == bool(done.why.split("tokens are left")[0].strip(" 0123456789,;"))
    running = parse_summaries([done.summary])
    assert list(running.sections) == list(SECTIONS)
    assert running.sections["Goal"]
    assert (running.first_id, running.last_id) == (done.first_id, done.last_id)
