"""Turns hits into evidence: the messages that match best and those around them, within a limit of JSON characters.

Every answer has a hard limit on its size as JSON, and uses the room that it has. Messages are ordered by importance:
the best match of a session, its other good matches, the messages next to the best one, the first and the last message,
then messages further away. As many as have room for a useful part of their text are shown; what is left goes to those
that are longer than that. The rest is omitted, which the counts say.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import NamedTuple

from memoranda.memory.record.conversations import Conversations, Window
from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.message_rows import text_of
from memoranda.search.excerpts import best_match, without_markdown
from memoranda.search.query import Query
from memoranda.search.repeated_questions import is_asking, reply_in
from memoranda.search.request import show_time
from memoranda.search.speakers import SPEAKER, speaker_weights
from memoranda.support.shorten import json_size, shorten_calls, shorten_end, shorten_for_json
from memoranda.support.tool import JsonObject

CONVERSATION_ROLES = ("user", "assistant")
WINDOW = 5
BOOKEND = 3
# The least room of a message, as JSON; a shorter one takes less, and a longer one more if nothing else needs it.
_ANCHOR_ROOM = 1_300
_MATCH_ROOM = 700
_NEAREST_ROOM = 300
_ROOM = 250
# A message that is not shown whole has at least so much of its text.
_MIN_TEXT = 100
# How many further messages of a session are shown, and how well they must match in comparison with its best one.
_MAX_OTHERS = 4
_MIN_SHARE_OF_BEST = 0.3
# What comes with the text of a message: the name of the text, a comma, and what says that it is cut.
_CONTENT_FIELDS_CHARS = 60
# About what all fields of a message without tools take: id, role, time and those around the text.
_FIELDS_CHARS = 140
_MAX_NAME_CHARS = 100
# Room for the counts and the empty bookends of a result.
_COUNTS_CHARS = 120
# A longer message says something besides its question.
_MAX_QUESTION = 300
_TITLE_CHARS = 80
# Three short words, or five characters of an unspaced script.
_MIN_TITLE_BYTES = 15


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
    other_fields = json_size(shown) + _CONTENT_FIELDS_CHARS
    shown["content"], size = shorten_for_json(text[start : start + max_chars], room - other_fields)
    end = start + len(shown["content"])
    size += other_fields
    if size > room or (end < min(start + min_chars, len(text)) and "tool_calls" not in shown):
        return None
    return FittedMessage(shown | ({"truncated": True, "chars": len(text)} if start or end < len(text) else {}), size)


class ShownPart(NamedTuple):
    """A message that may be shown, the least room that it gets unless it is shorter, and where to begin reading it."""

    message: FeedMessage
    least: int = _ROOM
    match_at: int = 0
    anchor: bool = False

    @property
    def size(self) -> int:
        """About how much room it takes if it is shown whole."""
        return len(text_of(self.message.content)) + _FIELDS_CHARS

    def fit(self, room: int) -> FittedMessage | None:
        """The message within `room`, from a little before the match on if it is too long."""
        left_out = max(0, self.size - room)
        start = max(0, min(self.match_at - room // 4, left_out))
        return fit_message(self.message, room, room, start=start, anchor=self.anchor, min_chars=_MIN_TEXT)


def share_room(parts: Sequence[ShownPart], room: int) -> dict[int, FittedMessage]:
    """As many messages as have room, by their ids; `parts` are in order of importance.

    The room is shared in proportion to what each gets at least, and what a short message does not need is for longer
    ones.
    """
    kept: list[ShownPart] = []
    free = room
    for part in parts:
        free -= min(part.size, part.least)
        if free < 0 and kept:
            break
        kept.append(part)
    fitted: dict[int, FittedMessage] = {}
    weight = sum(part.least for part in kept)
    for part in sorted(kept, key=lambda part: part.size / part.least):
        fitting = part.fit(room * part.least // weight)
        weight -= part.least
        if fitting is not None:
            fitted[part.message.id] = fitting
            room -= fitting.size
    return fitted


def from_the_middle(messages: Sequence[FeedMessage], position: int) -> list[FeedMessage]:
    """The messages around one of them, the nearest first and from both sides in turn."""
    pairs = zip_longest(messages[position + 1 :], reversed(messages[:position]))
    return [message for pair in pairs for message in pair if message is not None]


def shown_run(messages: Sequence[FeedMessage], position: int, fitted: Mapping[int, FittedMessage]) -> range:
    """Which messages around one of them are shown, as far as none between them is missing."""
    start = end = position
    while start and messages[start - 1].id in fitted:
        start -= 1
    while end + 1 < len(messages) and messages[end + 1].id in fitted:
        end += 1
    return range(start, end + 1)


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
        """The chosen messages with the window and bookends, together within `budget`; the match is at `match_at`."""
        (anchor, position, window), others = chosen
        room = budget - _COUNTS_CHARS
        before, after = window.messages[:position], window.messages[position + 1 :]
        first, last = self._ends(window) if bookends else ([], [])
        # In a short conversation the window reaches its ends.
        opening = [*first, *before][:BOOKEND] if bookends else []
        closing = [*after, *last][-BOOKEND:] if bookends else []
        nearest = from_the_middle(window.messages, position)
        parts = [
            ShownPart(anchor, max(_ROOM, min(_ANCHOR_ROOM, room // 2)), match_at, anchor=True),
            *(_other_part(message, query, max(_ROOM, min(_MATCH_ROOM, room // 4))) for message in others),
            *(ShownPart(message, _NEAREST_ROOM) for message in nearest[:1]),
            *map(ShownPart, [*opening[:1], *closing[-1:]]),
            *(ShownPart(message, _NEAREST_ROOM) for message in nearest[1:2]),
            *map(ShownPart, [*nearest[2:], *opening[1:], *closing[-2::-1]]),
        ]
        by_id = {part.message.id: part for part in reversed(parts)}
        fitted = share_room([part for part in parts if by_id[part.message.id] is part], room)
        if anchor.id not in fitted:
            counts = {"messages_before": window.before + len(before), "messages_after": window.after + len(after)}
            return {"messages": []} | counts
        run = shown_run(window.messages, position, fitted)
        shown = [fitted.pop(window.messages[place].id).entry for place in run]
        further = [fitted.pop(message.id).entry for message in others if message.id in fitted]
        result: JsonObject = {
            "bookend_start": [fitted[message.id].entry for message in opening if message.id in fitted],
            "bookend_end": [fitted[message.id].entry for message in closing if message.id in fitted],
            "messages": shown,
            "messages_before": window.before + run.start,
            "messages_after": window.after + len(window.messages) - run.stop,
        }
        return result | ({"other_matches": sorted(further, key=itemgetter("id"))} if further else {})

    def _ends(self, window: Window) -> tuple[list[FeedMessage], list[FeedMessage]]:
        """The first and the last messages of a conversation, as far as they are outside the window."""
        if not window.before and not window.after:
            return [], []
        outside = (window.messages[0].id, window.messages[-1].id)
        return self._store.ends_of(
            window.conversation, BOOKEND, outside=outside, roles=CONVERSATION_ROLES, without=self._in_context
        )


def _answer_to(matched: MatchedMessage) -> MatchedMessage:
    """For a question of the user that got an answer: the answer."""
    text = text_of(matched.message.content)
    if matched.message.role != "user" or len(text) > _MAX_QUESTION or not is_asking(text):
        return matched
    answer = reply_in(matched.window.messages[matched.position + 1 :])
    # The window around a question is one around its answer too.
    return MatchedMessage(answer, matched.window.messages.index(answer), matched.window) if answer else matched


def title_by_question(matched: MatchedMessage) -> str:
    """What a match is about, for a session without a title: the user's words before it, shortened to one line.

    An answer such as "yes" says nothing, so the words before that are taken; if there are none, those of the match.
    """
    spoken = [message for message in matched.window.messages[matched.position :: -1] if message.role == "user"]
    line = ""
    for message in (*spoken, matched.message):
        line = " ".join(without_markdown(text_of(message.content)[: 4 * _TITLE_CHARS]).split())
        if len(line.encode("utf-8", "replace")) >= _MIN_TITLE_BYTES:
            break
    return shorten_end(line, _TITLE_CHARS)


def _other_part(message: FeedMessage, query: Query, least: int) -> ShownPart:
    """A further message that matches."""
    part = ShownPart(message, least)
    return part._replace(match_at=best_match(text_of(message.content), query)) if part.size > least else part
