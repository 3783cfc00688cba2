"""Turns hits into evidence: the exact messages around each match, within a size that fits a model's context.

Every answer has a hard limit on its size as JSON. What matters most goes in first: the match, then its neighbours
outwards, then how the conversation began and ended. What does not fit is cut around the match or left out, and every
cut is said, with the way to go on.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from memoranda.recall.json_size import size_of
from memoranda.recall.times import show_time
from memoranda.sessions.conversations import Conversation, Conversations, Window
from memoranda.sessions.feed import FeedMessage
from memoranda.sessions.message_rows import text_of
from memoranda.support.shorten import shorten_end
from memoranda.tools import JsonObject

CONVERSATION_ROLES = ("user", "assistant")
_WINDOW = 5
_BOOKEND = 3
_ANCHOR = 1_200
_NEIGHBOUR = 500
_BOOKEND_TEXT = 200
_ARGUMENTS = 300
_CALLS = 5
_ROLES = frozenset({"user", "assistant", "tool", "system"})
# A character takes at most six in JSON; everything around a message's text takes at most so many.
_ESCAPED = 6
_AROUND = 190
_NAME = 100
# What the counts and the empty bookends of a result take.
_COUNTS = 120


class FittedMessage(NamedTuple):
    """A message as a model reads it, and how many characters it takes at most as JSON in a list."""

    entry: JsonObject
    size: int


def fit_message(
    message: FeedMessage, most: int, room: int, *, start: int = 0, anchor: bool = False
) -> FittedMessage | None:
    """One message as a model reads it: at most `most` characters of its text, from `start` on.

    Its JSON takes at most `room`: what does not fit is cut, and None means that not even a little of it fits.
    """
    text = text_of(message.content)
    shown: JsonObject = {"id": message.id, "role": message.role[:_NAME], "when": show_time(message.timestamp)}
    around = _AROUND + _ESCAPED * (len(shown["role"]) if shown["role"] not in _ROLES else 1)
    if message.tool_name:
        shown["tool_name"] = message.tool_name[:_NAME]
        around += size_of(shown["tool_name"]) + len('"tool_name": , ')
    if anchor:
        shown["anchor"] = True
    if start:
        shown["from_char"] = start
    if message.tool_calls:
        shown["tool_calls"] = shorten_calls(message.tool_calls)
        size = size_of(shown["tool_calls"])
        if size > room // 2:
            shown["tool_calls"] = [f"{len(shown['tool_calls'])} calls"]
            size = size_of(shown["tool_calls"])
        around += size + len('"tool_calls": , ')
    most = min(most, len(text) - start) if start < len(text) else 0
    while True:
        content = text[start : start + most]
        size = around + size_of(content)
        if size <= room:
            break
        if not most:
            return None
        # Some characters take several in JSON, so the cut is found step by step.
        most = max(0, min(most - 1, most * room // size, most - (size - room) // _ESCAPED))
    if text and not most and start < len(text) and "tool_calls" not in shown:
        return None
    shown["content"] = content
    if start or len(text) > start + most:
        shown |= {"truncated": True, "chars": len(text)}
    return FittedMessage(shown, size)


def shorten_calls(calls: Any) -> list[str]:
    """Each call as name(arguments): the bookkeeping around them tells a reader nothing."""
    shown = []
    every = calls if isinstance(calls, list) else [calls]
    for call in every[:_CALLS]:
        function = call.get("function", call) if isinstance(call, dict) else {}
        name = function.get("name", "tool") if isinstance(function, dict) else "tool"
        arguments = function.get("arguments", function.get("input", "")) if isinstance(function, dict) else call
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        shown.append(f"{str(name)[:_NAME]}({shorten_end(text, _ARGUMENTS)})")
    return shown if len(every) <= _CALLS else [*shown, f"… and {len(every) - _CALLS} more"]


def add_neighbours(
    messages: Sequence[FeedMessage], position: int, shown: list[JsonObject], most: int, room: int
) -> tuple[int, int, int]:
    """Add the neighbours of the message that is in `shown`, the nearest first and by turns, as long as they fit.

    How many are left out before and behind, and how much room is left.
    """
    before, after = list(messages[:position]), list(messages[position + 1 :])
    while shown and (before or after):
        take_after = bool(after) and (not before or len(after) >= len(before))
        message = after[0] if take_after else before[-1]
        fitting = fit_message(message, min(most, max(80, room // 3)), room)
        if fitting is None:
            break
        room -= fitting.size
        if take_after:
            after.pop(0)
            shown.append(fitting.entry)
        else:
            before.pop()
            shown.insert(0, fitting.entry)
    return len(before), len(after), room


class MatchedMessage(NamedTuple):
    """A message that was found, and its place in the window around it."""

    message: FeedMessage
    position: int
    window: Window


class Evidence:
    """Collects the messages around hits from one scope of the store."""

    def __init__(self, store: Conversations, in_context: Collection[int] = ()) -> None:
        self._store = store
        self._in_context = in_context

    def find(self, message_id: int) -> MatchedMessage | None:
        """A message that was found, and what stands around it; None when it cannot be seen."""
        window = self._store.window_around(message_id, _WINDOW, roles=CONVERSATION_ROLES, without=self._in_context)
        if window is None:
            return None
        position = next(place for place, message in enumerate(window.messages) if message.id == message_id)
        return MatchedMessage(window.messages[position], position, window)

    def around(self, matched: MatchedMessage, match_at: int, budget: int) -> JsonObject:
        """The window and bookends for a match, together within `budget`."""
        anchor, position, window = matched
        most = max(80, min(_ANCHOR, budget // 2))
        start = max(0, match_at - most // 4) if len(text_of(anchor.content)) > most else 0
        room = budget - _COUNTS
        first = fit_message(anchor, most, room, start=start, anchor=True)
        shown = [] if first is None else [first.entry]
        room -= 0 if first is None else first.size
        before, after, room = add_neighbours(window.messages, position, shown, _NEIGHBOUR, room)
        result: JsonObject = {
            "messages": shown,
            "messages_before": window.before + before,
            "messages_after": window.after + after,
        }
        return (self._bookends(window.place, shown, room) if shown else {}) | result

    def _bookends(self, place: Conversation, shown: list[JsonObject], room: int) -> JsonObject:
        ends: dict[str, list[JsonObject]] = {"bookend_start": [], "bookend_end": []}
        if room > _BOOKEND_TEXT:
            outside = (shown[0]["id"], shown[-1]["id"])
            first, last = self._store.ends_of(
                place, _BOOKEND, outside=outside, roles=CONVERSATION_ROLES, without=self._in_context
            )
            room = _fill(ends["bookend_start"], first, room, room // 2)
            _fill(ends["bookend_end"], last[::-1], room, 0)
            ends["bookend_end"].reverse()
        return dict(ends)


def _fill(entries: list[JsonObject], messages: Iterable[FeedMessage], room: int, keep: int) -> int:
    for message in messages:
        fitting = fit_message(message, _BOOKEND_TEXT, room - keep)
        if fitting is None:
            break
        room -= fitting.size
        entries.append(fitting.entry)
    return room
