"""The messages that a model gets, in the form that chat APIs accept, and the answer that a person sees of it.

APIs refuse a tool call without its result, a result without its call, and some refuse two user messages in a row. The
record keeps what really happened; `to_api_messages` returns a copy in which every call is followed by its result. What
it adds depends only on the messages up to the next one, so a longer conversation begins with the same bytes as the
shorter one did, and stays cached.

`AnswerStream` passes an answer on while the model writes it, without recalled memory that the model repeats.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memoranda.agent.compression.prompts import HEADER
from memoranda.models.model import Message, OnText
from memoranda.safety.fence_tags import StreamingContextScrubber
from memoranda.support.tool import tool_refusal

INTERRUPTED_CALL = json.dumps(tool_refusal("interrupted", "The turn was interrupted before this call had a result."))
INTERRUPTED_ANSWER = "[The turn was interrupted here, before an answer was given.]"
PARTIAL_ANSWER = "[The user interrupted the answer here.]"
FAILED_ANSWER = "[The model failed here, so the answer is not complete.]"
_SUMMARY_START = HEADER.partition("{")[0]


def partial_answer(text: str, note: str = PARTIAL_ANSWER) -> Message:
    """An answer that breaks off as it is recorded, with a note so that no reader takes it for a whole answer."""
    return {
        "role": "assistant",
        "content": f"{text.rstrip()}\n\n{note}",
        "finish_reason": "interrupted",
    }


def to_api_messages(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages with one result for every call, no result without a call, and an answer after every question."""
    result: list[Message] = []
    for message in _pair_calls([dict(message) for message in messages]):
        if _is_question(message) and result and (result[-1]["role"] == "tool" or _is_question(result[-1])):
            result.append({"role": "assistant", "content": INTERRUPTED_ANSWER})
        result.append(message)
    return result


def _pair_calls(messages: Sequence[Message]) -> Iterator[Message]:
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        unanswered = _call_ids(message)
        if message["role"] == "tool" or (
            message["role"] == "assistant" and not message.get("content") and not unanswered
        ):
            continue
        # Another program may have recorded something else as calls.
        yield message if unanswered else {name: value for name, value in message.items() if name != "tool_calls"}
        while unanswered and index < len(messages) and messages[index]["role"] == "tool":
            if messages[index].get("tool_call_id") in unanswered:
                unanswered.remove(messages[index]["tool_call_id"])
                yield messages[index]
            index += 1
        for call_id in unanswered:
            yield {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED_CALL}


def _call_ids(message: Message) -> list[str]:
    """The ids of the calls in a message; empty unless every call has a usable id."""
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    ids = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    named = [call_id for call_id in ids if isinstance(call_id, str) and call_id]
    return named if isinstance(calls, list) and len(named) == len(calls) else []


def _is_question(message: Message) -> bool:
    """Whether a message is the user's; a summary of compressed messages has the same role but needs no answer."""
    return message["role"] == "user" and not str(message.get("content")).startswith(_SUMMARY_START)


class AnswerStream:
    """Shows one answer while the model writes it: `written` is what the model wrote so far, `shown` what was shown."""

    def __init__(self, show: OnText) -> None:
        self._show = show
        self._scrubber = StreamingContextScrubber()
        self.written = self.shown = ""

    def feed(self, chunk: str) -> None:
        self.written += chunk
        self._show_text(self._scrubber.feed(chunk))

    def finish(self) -> None:
        """Show the text that was held back because it might have become a fence."""
        self._show_text(self._scrubber.flush())

    def _show_text(self, text: str) -> None:
        if text:
            self.shown += text
            self._show(text)


def visible_text(text: str) -> str:
    """A whole answer as `AnswerStream` would have shown it."""
    scrubber = StreamingContextScrubber()
    return scrubber.feed(text) + scrubber.flush()
