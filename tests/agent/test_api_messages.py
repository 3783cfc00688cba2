"""Whatever interrupts leave of a conversation, chat APIs accept its copy, and the prefix stays the same."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from memoranda.agent.compression.summary import RunningSummary, render_summary
from memoranda.agent.model_messages import INTERRUPTED_ANSWER, INTERRUPTED_CALL, to_api_messages
from memoranda.models.model import Message
from tests.agent.accepted_messages import assert_accepted


def _call(call_id: str) -> Message:
    return {"id": call_id, "type": "function", "function": {"name": "memory", "arguments": "{}"}}


def _calls(*ids: str) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": [_call(each) for each in ids]}


def _result(call_id: str, content: str = "{}") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


_ids = st.sampled_from(["a", "b", "c"])
_messages = st.lists(
    st.one_of(
        st.builds(lambda text: {"role": "user", "content": text}, st.text(min_size=1, max_size=5)),
        st.builds(lambda text: {"role": "assistant", "content": text}, st.text(max_size=5)),
        st.builds(lambda ids: _calls(*ids), st.lists(_ids, min_size=1, max_size=3, unique=True)),
        st.builds(_result, _ids),
    ),
    max_size=14,
)


def test_a_whole_conversation_stays_as_it_is() -> None:
    """Nothing is added where nothing is missing."""
    whole: list[Message] = [
        {"role": "user", "content": "Hello"},
        _calls("a", "b"),
        _result("a"),
        _result("b"),
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks"},
    ]
    assert to_api_messages(whole) == whole


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    """The model learns that the call was interrupted, and which."""
    broken: list[Message] = [{"role": "user", "content": "Hi"}, _calls("a", "b"), _result("a")]
    assert to_api_messages(broken) == [
        *broken,
        {"role": "tool", "tool_call_id": "b", "content": INTERRUPTED_CALL},
    ]


def test_a_result_without_a_call_is_left_out() -> None:
    """APIs refuse it, and it says nothing without its call."""
    assert to_api_messages([{"role": "user", "content": "Hi"}, _result("x")]) == [{"role": "user", "content": "Hi"}]


def test_a_question_that_was_never_answered_is_closed_before_the_next() -> None:
    """The model does not take the interrupted question for an open one."""
    asked: list[Message] = [{"role": "user", "content": "First"}, {"role": "user", "content": "Second"}]
    assert to_api_messages(asked) == [asked[0], {"role": "assistant", "content": INTERRUPTED_ANSWER}, asked[1]]


def test_a_summary_is_no_question_that_was_left_hanging() -> None:
    """It stands between messages of the user after compression, and nothing was interrupted there."""
    summary = render_summary(RunningSummary(first_id=3, last_id=9), "s1")
    said: list[Message] = [{"role": "user", "content": text} for text in ("First", summary, "Now")]
    assert to_api_messages(said) == said


def test_calls_that_are_none_are_taken_out() -> None:
    """Another program may have recorded anything there."""
    odd: Message = {"role": "assistant", "content": "Hm", "tool_calls": "call memory please"}
    assert to_api_messages([odd]) == [{"role": "assistant", "content": "Hm"}]
    assert to_api_messages([{"role": "assistant", "content": None, "tool_calls": [{"function": {}}]}]) == []


@given(_messages)
def test_every_call_has_one_result_right_behind_it_and_every_result_a_call(messages: list[Message]) -> None:
    """This is what chat APIs insist on; the record itself is not touched."""
    before = copy.deepcopy(messages)
    assert_accepted(to_api_messages(messages))
    assert messages == before


@given(_messages, st.integers(0, 14))
def test_a_longer_conversation_begins_like_the_shorter_one(messages: list[Message], place: int) -> None:
    """What a provider has cached stays good: only results may still come in behind the calls of a step."""
    rest = messages[place:]
    if not rest or rest[0]["role"] != "tool":
        shorter = to_api_messages(messages[:place])
        assert to_api_messages(messages)[: len(shorter)] == shorter
