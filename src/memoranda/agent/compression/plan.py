"""Decides which messages a compression keeps and which it summarises, and shortens old tool output.

The plan divides a context into head, middle and tail. It never separates a tool call from its result. It keeps the
user's latest request verbatim wherever it is, and the first and last messages as far as they fit.

Tool output and tool arguments are shortened without a model; the record keeps the full text.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from memoranda.agent.compression.settings import CompressionSettings
from memoranda.memory.record.message_rows import IMAGE_TAKEN_OUT, TAKEN_OUT, text_of
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.model import Message
from memoranda.models.tokens import estimate_message
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end, shorten_middle

_HEAD_SHARE = 0.25
# Protected last messages may exceed their room by this factor.
_TAIL_SLACK = 1.5


@dataclass(frozen=True, slots=True)
class CompressionPlan:
    """A context, divided into what is kept and what is summarised.

    `request` is the user's latest request if it is in the middle; `previous` are the earlier summaries, which the new
    one continues.
    """

    head: tuple[LiveMessage, ...]
    middle: tuple[LiveMessage, ...]
    tail: tuple[LiveMessage, ...]
    previous: tuple[LiveMessage, ...] = ()
    request: LiveMessage | None = None

    @property
    def kept(self) -> tuple[LiveMessage, ...]:
        """The messages that stay verbatim."""
        return (*self.head, *((self.request,) if self.request else ()), *self.tail)

    @property
    def summarised(self) -> tuple[LiveMessage, ...]:
        """The messages that only the summary represents."""
        return tuple(message for message in self.middle if message is not self.request)


def make_plan(live: Sequence[LiveMessage], settings: CompressionSettings, window: int) -> CompressionPlan | None:
    """The plan for a context; None if nothing in it can be summarised."""
    cuts = cut_positions([message.message for message in live])
    sizes = [estimate_message(message.message) for message in live]
    target = settings.target(window)
    summaries = [index for index, message in enumerate(live) if message.is_summary]
    head = _head_end(cuts, sizes, min(settings.protect_first, *summaries[:1], len(live)), int(target * _HEAD_SHARE))
    latest = latest_request(live)
    room = target - settings.summary_room(window) - sum(sizes[:head])
    if latest is not None and latest >= head:
        room -= sizes[latest]
    # The new summary continues every earlier one, so the tail starts after the last of them.
    earliest = max(head, summaries[-1] + 1 if summaries else 0)
    tail = _tail_start(cuts, sizes, earliest, max(0, room), settings.protect_last)
    middle = tuple(message for message in live[head:tail] if not message.is_summary)
    request = live[latest] if latest is not None and head <= latest < tail else None
    previous = tuple(live[index] for index in summaries)
    plan = CompressionPlan(tuple(live[:head]), middle, tuple(live[tail:]), previous, request)
    return plan if plan.summarised else None


def cut_positions(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """The indexes before which a conversation can be divided, and the index of its end."""
    calling_message: dict[str, int] = {}
    # Changes in the number of unanswered calls before each message.
    opened = [0] * (len(messages) + 2)
    for index, message in enumerate(messages):
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping) and isinstance(call.get("id"), str):
                calling_message[call["id"]] = index
        call_id = message.get("tool_call_id")
        first = calling_message.get(call_id) if isinstance(call_id, str) else None
        if first is None and message.get("role") == "tool":
            # A result without a call id belongs to the message before it.
            first = index - 1
        if first is not None and 0 <= first < index:
            opened[first + 1] += 1
            opened[index + 1] -= 1
    return [index for index, unanswered in enumerate(accumulate(opened[:-1])) if not unanswered]


def latest_request(live: Sequence[LiveMessage]) -> int | None:
    """The index of the user's last message."""
    for index in reversed(range(len(live))):
        message = live[index]
        if message.message.get("role") == "user" and not message.is_summary and has_content(message.message):
            return index
    return None


def has_content(message: Mapping[str, Any]) -> bool:
    """Whether a message has text, or parts such as an image."""
    content = message.get("content")
    return bool(text_of(content).strip()) or (isinstance(content, list) and bool(content))


def _head_end(cuts: Sequence[int], sizes: Sequence[int], max_messages: int, room: int) -> int:
    fitting = [index for index in cuts if index <= max_messages and sum(sizes[:index]) <= room]
    return fitting[-1] if fitting else 0


def _tail_start(cuts: Sequence[int], sizes: Sequence[int], earliest: int, room: int, protected: int) -> int:
    """The index at which the tail starts: it contains the last indivisible part, and earlier ones that fit."""
    end = len(sizes)
    start, size = end, 0
    for cut in reversed([index for index in cuts if earliest <= index < end]):
        size += sum(sizes[cut:start])
        fits = size <= room or (end - cut <= protected and size <= room * _TAIL_SLACK)
        if not fits and start < end:
            break
        start = cut
    return start


LONG_OUTPUT = 800
_LONG_ARGUMENTS = 1_000
_LONG_VALUE = 200
# Services need the model's reasoning back only within a turn.
_REASONING_FIELDS = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
)


def prune_message(
    live: LiveMessage, session_id: str, max_chars: int = LONG_OUTPUT, *, thinking: bool = False
) -> Message | None:
    """The shortened message, with a note that says how to read all of it; None if there is nothing to shorten.

    Tool output of more than `max_chars` characters is shortened. With `thinking` the model's reasoning stays.
    """
    message = live.message
    changed: dict[str, Any] = {}
    if message.get("role") == "tool":
        text = text_of(message.get("content"))
        if len(text) > max_chars:
            tool = str(message.get("tool_name") or "a tool")
            changed["content"] = _shorten_output(text, max_chars // 3, tool, live.recorded_id, session_id)
    else:
        content = _without_images(message.get("content"), live.recorded_id)
        # The model works on an image that it has just been shown, so images stay with `thinking`.
        if content is not message.get("content") and not thinking:
            changed["content"] = content
    calls = _shorten_calls(message.get("tool_calls"))
    if calls is not None:
        changed["tool_calls"] = calls
    dropped = [] if thinking else [name for name in _REASONING_FIELDS if message.get(name)]
    if not changed and not dropped:
        return None
    return {name: value for name, value in message.items() if name not in dropped} | changed


def _shorten_output(text: str, end_chars: int, tool: str, message_id: int, session_id: str) -> str:
    """Keeps `end_chars` characters at either end."""
    where = f'session_search with session_id "{session_id}" and ' if session_id else "session_search with "
    source = f"All of it is message {message_id}: {where}around_message_id {message_id} shows it."
    tool, source = (words.replace("{", "{{").replace("}", "}}") for words in (tool, source))
    note = f"\n[… {{omitted:,}} of {{total:,}} characters of the output of {tool} {TAKEN_OUT}. {source} …]\n"
    return shorten_middle(text, 2 * end_chars + len(note), note, head_share=0.5)


def _without_images(content: Any, message_id: int) -> Any:
    """The content with a note in place of each image; the same object if there is none."""
    if not isinstance(content, list) or not any(map(_is_image, content)):
        return content
    note = {"type": "text", "text": f"[{IMAGE_TAKEN_OUT} {message_id}]"}
    return [note if _is_image(part) else part for part in content]


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and "image" in str(part.get("type", ""))


def _shorten_calls(calls: Any) -> list[Any] | None:
    """The tool calls with the long texts in their arguments shortened; None if nothing changed."""
    if not isinstance(calls, list):
        return None
    shortened = [_shorten_call(call) for call in calls]
    return shortened if any(new is not old for new, old in zip(shortened, calls, strict=True)) else None


def _shorten_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(arguments, str) or len(arguments) <= _LONG_ARGUMENTS:
        return call
    try:
        shorter: Any = _shorten_texts(json.loads(arguments))
    except (ValueError, RecursionError):
        # The model wrote invalid JSON, but the replacement must be valid.
        shorter = {"shortened": shorten_end(arguments, _LONG_VALUE)}
    return {**call, "function": {**function, "arguments": json.dumps(shorter, ensure_ascii=False)}}  # type: ignore[dict-item]


def _shorten_texts(value: Any) -> Any:
    if isinstance(value, str):
        return shorten_end(value, _LONG_VALUE, f"… [{len(value):,} characters]")
    if isinstance(value, list):
        return [_shorten_texts(item) for item in value]
    if isinstance(value, dict):
        return {name: _shorten_texts(item) for name, item in value.items()}
    return value
