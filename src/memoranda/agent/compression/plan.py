"""Decides which messages a compression keeps and which it summarises: head, middle and tail.

The plan never separates a tool call from its result. It keeps the user's latest request verbatim wherever it is, and
the first and last messages as far as they fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from memoranda.agent.compression.settings import CompressionSettings
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.tokens import estimate_message

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
