"""Which messages stay as they are, and which are summarised: head, middle and tail.

A context is cut only where no tool call is parted from its result. The latest request of the user stays word for word
wherever it stands; so do the first messages and the last ones, as far as the room for them goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from memoranda.compression.settings import CompressionSettings
from memoranda.llm.tokens import estimate_message
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.rotation import LiveMessage

_HEAD_SHARE = 0.25
# The last messages that are protected may take this much more than their room.
_TAIL_SLACK = 1.5


@dataclass(frozen=True, slots=True)
class CompressionPlan:
    """A context, cut into what is kept and what is summarised.

    `request` is the user's latest request when it stands in the middle; `previous` are summaries made before, which
    the new one takes up.
    """

    head: tuple[LiveMessage, ...]
    middle: tuple[LiveMessage, ...]
    tail: tuple[LiveMessage, ...]
    previous: tuple[LiveMessage, ...] = ()
    request: LiveMessage | None = None

    @property
    def kept(self) -> tuple[LiveMessage, ...]:
        """What stays word for word."""
        return (*self.head, *((self.request,) if self.request else ()), *self.tail)

    @property
    def summarised(self) -> tuple[LiveMessage, ...]:
        """What the summary alone stands for."""
        return tuple(each for each in self.middle if each is not self.request)


def make_plan(live: Sequence[LiveMessage], settings: CompressionSettings, window: int) -> CompressionPlan | None:
    """The plan for a context; None when there is nothing in it that could be summarised."""
    cuts = cut_positions([each.message for each in live])
    sizes = [estimate_message(each.message) for each in live]
    target = settings.target(window)
    summaries = [place for place, each in enumerate(live) if each.is_summary]
    head = _head_end(cuts, sizes, min(settings.protect_first, *summaries[:1], len(live)), int(target * _HEAD_SHARE))
    asked = latest_request(live)
    room = target - settings.summary_room(window) - sum(sizes[:head])
    if asked is not None and asked >= head:
        room -= sizes[asked]
    # Every earlier summary is taken up in the new one, so the tail begins behind the last of them.
    earliest = max(head, summaries[-1] + 1 if summaries else 0)
    tail = _tail_begin(cuts, sizes, earliest, max(0, room), settings.protect_last)
    middle = tuple(each for each in live[head:tail] if not each.is_summary)
    request = live[asked] if asked is not None and head <= asked < tail else None
    plan = CompressionPlan(
        tuple(live[:head]), middle, tuple(live[tail:]), tuple(live[place] for place in summaries), request
    )  # fmt: skip
    return plan if plan.summarised else None


def cut_positions(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """The places where a conversation can be cut: before the message with that number, 0 and its end included."""
    asked: dict[str, int] = {}
    # How many calls are open before each message: one more from here on, one fewer from there on.
    opened = [0] * (len(messages) + 2)
    for place, message in enumerate(messages):
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping) and isinstance(call.get("id"), str):
                asked[call["id"]] = place
        answers = message.get("tool_call_id")
        first = asked.get(answers) if isinstance(answers, str) else None
        if first is None and message.get("role") == "tool":
            # A result that says not whose it is belongs to what is before it.
            first = place - 1
        if first is not None and 0 <= first < place:
            opened[first + 1] += 1
            opened[place + 1] -= 1
    return [place for place, inside in enumerate(accumulate(opened[:-1])) if not inside]


def latest_request(live: Sequence[LiveMessage]) -> int | None:
    """The place of the last message that the user wrote."""
    for place in reversed(range(len(live))):
        each = live[place]
        if each.message.get("role") == "user" and not each.is_summary and has_words(each.message):
            return place
    return None


def has_words(message: Mapping[str, Any]) -> bool:
    """Whether there is anything in a message: words, or parts such as an image."""
    content = message.get("content")
    return bool(text_of(content).strip()) or (isinstance(content, list) and bool(content))


def _head_end(cuts: Sequence[int], sizes: Sequence[int], most: int, room: int) -> int:
    fitting = [place for place in cuts if place <= most and sum(sizes[:place]) <= room]
    return fitting[-1] if fitting else 0


def _tail_begin(cuts: Sequence[int], sizes: Sequence[int], earliest: int, room: int, protected: int) -> int:
    """Where the tail begins: at least the last piece that cannot be cut, and more as far as it fits."""
    end = len(sizes)
    begin, size = end, 0
    for place in reversed([each for each in cuts if earliest <= each < end]):
        size += sum(sizes[place:begin])
        fits = size <= room or (end - place <= protected and size <= room * _TAIL_SLACK)
        if not fits and begin < end:
            break
        begin = place
    return begin
