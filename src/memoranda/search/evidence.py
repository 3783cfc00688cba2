"""Turns hits into evidence: the messages that match best and those around them, within a limit of JSON characters.

Every answer has a hard limit on its size as JSON. The most important text is added first: the best match of a session,
its other good matches, the neighbours next to the best one, the first and the last message, then short messages further
away. Matches are cut around their words if they are long. Everything else is shown whole or with a useful part of its
text, or it is omitted, which the counts say.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from math import floor
from typing import Any, NamedTuple

from memoranda.memory.record.conversations import Conversation, Conversations, Window
from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.message_rows import text_of
from memoranda.search.excerpts import excerpt
from memoranda.search.query import Query
from memoranda.search.repeated_questions import answer_in, is_asking
from memoranda.search.speakers import SPEAKER, speaker_weights
from memoranda.support.shorten import json_size, shorten_end
from memoranda.support.tool import JsonObject

CONVERSATION_ROLES = ("user", "assistant")
WINDOW = 5
BOOKEND = 3
_MAX_ANCHOR_CHARS = 1_200
_MAX_MATCH_CHARS = 600
_MAX_NEAREST_CHARS = 500
_MAX_NEIGHBOUR_CHARS = 240
_MAX_BOOKEND_CHARS = 110
_MAX_BOOKEND_SIZE = 250
# A message that is not shown whole has at least so much of its text.
_MIN_TEXT = 100
# How many further messages of a session are shown, and how well they must match in comparison with its best one.
_MAX_OTHERS = 4
_MIN_SHARE_OF_BEST = 0.3
_MAX_ARGUMENT_CHARS = 300
_MAX_CALLS = 5
_ROLES = frozenset({"user", "assistant", "tool", "system"})
# The most that one character takes in JSON, and the fields that come with the text of a message: the name of the text,
# a comma, and what says that it is cut.
_MAX_ESCAPE_CHARS = 6
_CONTENT_FIELDS_CHARS = 60
# The fields of a message without tools: id, role, time; and the most that they take, without the digits of the id.
_PLAIN_FIELDS = 3
_PLAIN_FIELDS_CHARS = 76
# What a message among others gets at least: its fields and some words.
_MIN_MESSAGE_CHARS = 150
_MAX_NAME_CHARS = 100
# Room for the counts and the empty bookends of a result.
_COUNTS_CHARS = 120
_MAX_NUMBER = 1e20
# A longer message says something besides its question.
_MAX_QUESTION = 300


class FittedMessage(NamedTuple):
    """A message as a model reads it, and the maximum of characters that it takes as JSON in a list."""

    entry: JsonObject
    size: int


def fit_message(
    message: FeedMessage, max_chars: int, room: int, *, start: int = 0, anchor: bool = False, min_chars: int = 1
) -> FittedMessage | None:
    """One message as a model reads it: at most `max_chars` characters of its text, from `start` on.

    Its JSON takes at most `room` characters; None when neither the rest of the text nor `min_chars` of it fit.
    """
    text = text_of(message.content)
    shown: JsonObject = {"id": message.id, "role": message.role[:_MAX_NAME_CHARS], "when": show_time(message.timestamp)}
    if message.tool_name:
        shown["tool_name"] = message.tool_name[:_MAX_NAME_CHARS]
    if anchor:
        shown["anchor"] = True
    if message.damaged:
        shown["damaged"] = True
    if start:
        shown["from_char"] = start
    if message.tool_calls:
        shown["tool_calls"] = shorten_calls(message.tool_calls)
        if json_size(shown["tool_calls"]) > room // 2:
            shown["tool_calls"] = [f"{len(shown['tool_calls'])} calls"]
    # Measuring the JSON of every message would take a twentieth of a search.
    is_plain = message.role in _ROLES and len(shown) == _PLAIN_FIELDS
    fields_size = _PLAIN_FIELDS_CHARS + len(str(message.id)) if is_plain else json_size(shown)
    other_fields = fields_size + _CONTENT_FIELDS_CHARS
    max_chars = min(max_chars, len(text) - start) if start < len(text) else 0
    while True:
        content = text[start : start + max_chars]
        size = other_fields + json_size(content)
        if size <= room:
            break
        if max_chars < min(min_chars, len(text) - start) or not max_chars:
            return None
        # Some characters take several in JSON, so the loop approaches the right length step by step.
        max_chars = max(0, min(max_chars - 1, max_chars * room // size, max_chars - (size - room) // _MAX_ESCAPE_CHARS))
    if max_chars < min(min_chars, len(text) - start) and "tool_calls" not in shown:
        return None
    shown["content"] = content
    if start or len(text) > start + max_chars:
        shown |= {"truncated": True, "chars": len(text)}
    return FittedMessage(shown, size)


def shorten_calls(calls: Any) -> list[str]:
    """Each tool call as name(arguments), without ids and types, which tell a reader nothing."""
    shown = []
    every = calls if isinstance(calls, list) else [calls]
    for call in every[:_MAX_CALLS]:
        function = call.get("function", call) if isinstance(call, dict) else {}
        name = function.get("name", "tool") if isinstance(function, dict) else "tool"
        arguments = function.get("arguments", function.get("input", "")) if isinstance(function, dict) else call
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        shown.append(f"{str(name)[:_MAX_NAME_CHARS]}({shorten_end(text, _MAX_ARGUMENT_CHARS)})")
    return shown if len(every) <= _MAX_CALLS else [*shown, f"… and {len(every) - _MAX_CALLS} more"]


def add_neighbours(
    messages: Sequence[FeedMessage], position: int, shown: list[JsonObject], max_chars: int, room: int
) -> tuple[int, int, int]:
    """Adds the neighbours of the message in `shown`, the nearest first and from both sides in turn, while they fit.

    They share the room: what one does not need is for the others. Returns how many are omitted before and after, and
    how much room is left.
    """
    before, after = list(messages[:position]), list(messages[position + 1 :])
    while shown and (before or after):
        take_after = bool(after) and (not before or len(after) >= len(before))
        message = after[0] if take_after else before[-1]
        # Each gets its part of the room; with little room, the first ones get enough.
        share = min(room, max(_MIN_MESSAGE_CHARS, room // (len(before) + len(after))))
        fitting = fit_message(message, max_chars, share)
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
    """A message that a search found, its index in the window around it, and that window."""

    message: FeedMessage
    position: int
    window: Window


class ChosenMessages(NamedTuple):
    """The message of a hit that answers best, and the others of its session that match well, best first."""

    anchor: MatchedMessage
    others: tuple[FeedMessage, ...] = ()


class WeighedMessages(NamedTuple):
    """The best messages of a session: their scores, their order, and whether a named speaker changed them."""

    scores: dict[int, float]
    order: list[int]
    by_speaker: bool


def weigh_messages(
    ranked: Sequence[tuple[int, float]], messages: Mapping[int, FeedMessage], query: Query
) -> WeighedMessages:
    """Weigh the messages that a search ranked; those of a speaker that the query names count more than others."""
    texts = {name: text_of(messages[name].content) for name, _ in ranked if name in messages}
    spoken = any(map(SPEAKER.match, texts.values()))
    weights = speaker_weights(texts, (term.token for term in query.terms)) if spoken else {}
    scores = {name: score * weights.get(name, 1.0) for name, score in ranked if name in messages}
    return WeighedMessages(scores, sorted(scores, key=lambda name: -scores[name]), bool(weights))


class Evidence:
    """Chooses the messages of hits and collects those around them, from one scope of the store."""

    def __init__(self, store: Conversations, in_context: Collection[int] = ()) -> None:
        self._store = store
        self._in_context = in_context

    def find(self, message_id: int) -> MatchedMessage | None:
        """A message and the window around it; None if it is out of scope or deleted."""
        window = self._store.window_around(message_id, WINDOW, roles=CONVERSATION_ROLES, without=self._in_context)
        if window is None:
            return None
        position = next(index for index, message in enumerate(window.messages) if message.id == message_id)
        return MatchedMessage(window.messages[position], position, window)

    def find_answer(self, message_id: int) -> MatchedMessage | None:
        """Like `find`, but for a question of the user that got an answer: finds the answer."""
        matched = self.find(message_id)
        return matched and _answer_to(matched)

    def choose(
        self,
        message_id: int,
        ranked: Sequence[tuple[int, float]],
        query: Query,
        *,
        fixed: bool = False,
        answers: bool = True,
    ) -> ChosenMessages | None:
        """The messages to show of a hit; None if it was deleted.

        `ranked` are the best messages of the session with their scores. Unless `fixed`, a message of the speaker that
        the query names replaces `message_id`; with `answers`, the answer replaces a question.
        """
        matched = self.find(message_id)
        if matched is None:
            return None
        conversation = matched.window.conversation
        messages = self._store.messages_by_id(conversation, [name for name, _ in ranked]) if len(ranked) > 1 else {}
        scores, order, by_speaker = weigh_messages(ranked, messages, query)
        if by_speaker and not fixed and order[0] != message_id:
            matched = self.find(order[0]) or matched
        anchor = _answer_to(matched) if answers else matched
        minimum = _MIN_SHARE_OF_BEST * max(scores.values(), default=0.0)
        others = [messages[name] for name in order if name != anchor.message.id and scores[name] >= minimum]
        return ChosenMessages(anchor, tuple(others[:_MAX_OTHERS]))

    def show(
        self, chosen: ChosenMessages, match_at: int, query: Query, budget: int, *, bookends: bool = True
    ) -> JsonObject:
        """The chosen messages with the window and bookends, together within `budget`; the match is at `match_at`.

        The chosen messages come first, as whole as possible. Then the nearest neighbours, one message of either end,
        and short messages further away. What would be cut to a few words is omitted.
        """
        anchor, position, window = chosen.anchor
        room = budget - _COUNTS_CHARS
        first = _fit_match(anchor, match_at, max(_MIN_TEXT, min(_MAX_ANCHOR_CHARS, budget // 2)), room, anchor=True)
        if first is None:
            before, after = window.before + position, window.after + len(window.messages) - position - 1
            return {"messages": [], "messages_before": before, "messages_after": after}
        shown = [first.entry]
        room -= first.size
        others = _fit_others(chosen.others, query, room)
        room -= sum(other.size for other in others.values())
        is_longer = bookends and (window.before or window.after)
        for_bookends = min(room, 2 * _MAX_BOOKEND_SIZE) if is_longer else 0
        before, after, room = _add_window(window, position, shown, others, room - for_bookends)
        before, after = window.before + before, window.after + after
        result: JsonObject = {"messages": shown, "messages_before": before, "messages_after": after}
        if others:
            result["other_matches"] = [others[name].entry for name in sorted(others)]
        room = room + for_bookends if bookends and (before or after) else 0
        return self._bookends(window.conversation, shown, others, room) | result

    def _bookends(
        self, conversation: Conversation, shown: list[JsonObject], others: Collection[int], room: int
    ) -> JsonObject:
        """The first and the last messages of a conversation, without those that are shown anyway."""
        first, last = list[FeedMessage](), list[FeedMessage]()
        if room >= _PLAIN_FIELDS_CHARS:
            outside = (shown[0]["id"], shown[-1]["id"])
            first, last = self._store.ends_of(
                conversation, BOOKEND, outside=outside, roles=CONVERSATION_ROLES, without=self._in_context
            )
        opening, closing = list[JsonObject](), list[JsonObject]()
        # From outside inwards: with little room, the very first and the very last message are shown.
        pairs = zip_longest(((opening, message) for message in first), ((closing, message) for message in last[::-1]))
        ends = [end for pair in pairs for end in pair if end is not None and end[1].id not in others]
        for number, (entries, message) in enumerate(ends):
            share = room // 2 if not number and len(ends) > 1 else room
            fitting = fit_message(message, _MAX_BOOKEND_CHARS, share, min_chars=_MIN_TEXT)
            if fitting is None or (entries and "truncated" in fitting.entry):
                continue
            room -= fitting.size
            entries.append(fitting.entry)
        return {"bookend_start": opening, "bookend_end": closing[::-1]}


def _answer_to(matched: MatchedMessage) -> MatchedMessage:
    """For a question of the user that got an answer: the answer."""
    text = text_of(matched.message.content)
    if matched.message.role != "user" or len(text) > _MAX_QUESTION or not is_asking(text):
        return matched
    answer = answer_in(matched.window.messages[matched.position + 1 :], text)
    # The window around a question is one around its answer too.
    return MatchedMessage(answer, matched.window.messages.index(answer), matched.window) if answer else matched


def _fit_match(
    message: FeedMessage, match_at: int, max_chars: int, room: int, *, anchor: bool = False
) -> FittedMessage | None:
    """A message that matches, from a little before the match on if it is too long."""
    start = max(0, match_at - max_chars // 4) if len(text_of(message.content)) > max_chars else 0
    return fit_message(message, max_chars, room, start=start, anchor=anchor, min_chars=_MIN_TEXT)


def _fit_others(messages: Sequence[FeedMessage], query: Query, room: int) -> dict[int, FittedMessage]:
    """Further messages that match, by their ids, while they fit."""
    found: dict[int, FittedMessage] = {}
    for message in messages:
        text = text_of(message.content)
        match_at = (excerpt(text, query).at or 0) if len(text) > _MAX_MATCH_CHARS else 0
        fitting = _fit_match(message, match_at, _MAX_MATCH_CHARS, room)
        if fitting is not None:
            room -= fitting.size
            found[message.id] = fitting
    return found


def _add_window(
    window: Window, position: int, shown: list[JsonObject], others: dict[int, FittedMessage], room: int
) -> tuple[int, int, int]:
    """Adds the neighbours of the message in `shown`, the nearest first, while they fit; takes some from `others`.

    Either side ends at the first message that would have to be cut, unless it is next to the match. Returns how many
    are omitted before and after, and how much room is left.
    """
    before, after = list(window.messages[:position]), list(window.messages[position + 1 :])
    sides = [after, before]
    for distance in range(WINDOW):
        for side in list(sides):
            message = (side[0] if side is after else side[-1]) if side else None
            fitting = None if message is None else others.pop(message.id, None)
            if fitting is None and message is not None:
                max_chars = _MAX_NEIGHBOUR_CHARS if distance else _MAX_NEAREST_CHARS
                fitting = fit_message(message, max_chars, room, min_chars=_MIN_TEXT)
                if fitting is not None and distance and "truncated" in fitting.entry:
                    fitting = None
                room -= 0 if fitting is None else fitting.size
            if fitting is None:
                sides.remove(side)
                continue
            side.pop(0 if side is after else -1)
            shown.insert(len(shown) if side is after else 0, fitting.entry)
    return len(before), len(after), room


def show_time(seconds: float | None) -> str | None:
    """A timestamp in the format of every answer: UTC, to the second."""
    if seconds is None:
        return None
    try:
        return f"{datetime.fromtimestamp(floor(seconds), UTC).isoformat()[:19]}Z"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s since 1970" if abs(seconds) < _MAX_NUMBER else f"{seconds:g} s since 1970"
