"""Turns hits into evidence: the snippet of each match and the messages around it, within a limit of JSON characters.

Every answer has a hard limit on its size as JSON. The most important text is added first: the match, then its
neighbours outwards, then how the conversation began and ended. What does not fit is cut around the match or omitted;
the answer says so, and how to read more.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from math import floor
from typing import Any, NamedTuple

from memoranda.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.index.tokenizer import TokenSpan, is_single_character, token_spans
from memoranda.recall.query import Query
from memoranda.recall.repeated_questions import answer_in, is_asking
from memoranda.sessions.conversations import Conversation, Conversations, Window
from memoranda.sessions.feed import FeedMessage
from memoranda.sessions.message_rows import text_of
from memoranda.support.shorten import json_size, shorten_end
from memoranda.tools import JsonObject

CONVERSATION_ROLES = ("user", "assistant")
_WINDOW = 5
_BOOKEND = 3
_MAX_ANCHOR_CHARS = 1_200
_MAX_NEIGHBOUR_CHARS = 500
_MAX_BOOKEND_CHARS = 200
_MAX_BOOKEND_SIZE = 320
_MAX_ARGUMENT_CHARS = 300
_MAX_CALLS = 5
_ROLES = frozenset({"user", "assistant", "tool", "system"})
# The most that one character takes in JSON, and the fields that come with the text of a message: the name of the text,
# a comma, and what says that it is cut.
_MAX_ESCAPE_CHARS = 6
_CONTENT_FIELDS_CHARS = 60
# The most that id, role and time take, without the digits of the id.
_PLAIN_FIELDS_CHARS = 76
# What a message among others gets at least: its fields and some words.
_MIN_MESSAGE_CHARS = 150
_MAX_NAME_CHARS = 100
# Room for the counts and the empty bookends of a result.
_COUNTS_CHARS = 120
OPEN, CLOSE, CUT = ">>>", "<<<", "…"
_MAX_TEXT = 200_000
_MAX_SNAP = 20
_FLAT = str.maketrans("\n\r\t\v\f", "     ")
_MAX_NUMBER = 1e20
# A longer message says something besides its question.
_MAX_QUESTION = 300


class FittedMessage(NamedTuple):
    """A message as a model reads it, and the maximum of characters that it takes as JSON in a list."""

    entry: JsonObject
    size: int


def fit_message(
    message: FeedMessage, max_chars: int, room: int, *, start: int = 0, anchor: bool = False
) -> FittedMessage | None:
    """One message as a model reads it: at most `max_chars` characters of its text, from `start` on.

    Its JSON takes at most `room` characters; None when not even a little of the text fits.
    """
    text = text_of(message.content)
    shown: JsonObject = {"id": message.id, "role": message.role[:_MAX_NAME_CHARS], "when": show_time(message.timestamp)}
    if message.tool_name:
        shown["tool_name"] = message.tool_name[:_MAX_NAME_CHARS]
    if anchor:
        shown["anchor"] = True
    if start:
        shown["from_char"] = start
    if message.tool_calls:
        shown["tool_calls"] = shorten_calls(message.tool_calls)
        if json_size(shown["tool_calls"]) > room // 2:
            shown["tool_calls"] = [f"{len(shown['tool_calls'])} calls"]
    # Measuring the JSON of every message would take a twentieth of a search.
    is_plain = message.role in _ROLES and not message.tool_name and not message.tool_calls and not anchor and not start
    fields_size = _PLAIN_FIELDS_CHARS + len(str(message.id)) if is_plain else json_size(shown)
    other_fields = fields_size + _CONTENT_FIELDS_CHARS
    max_chars = min(max_chars, len(text) - start) if start < len(text) else 0
    while True:
        content = text[start : start + max_chars]
        size = other_fields + json_size(content)
        if size <= room:
            break
        if not max_chars:
            return None
        # Some characters take several in JSON, so the loop approaches the right length step by step.
        max_chars = max(0, min(max_chars - 1, max_chars * room // size, max_chars - (size - room) // _MAX_ESCAPE_CHARS))
    if text and not max_chars and start < len(text) and "tool_calls" not in shown:
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
        fitting = fit_message(message, max_chars, _fair_share(room, len(before) + len(after)))
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


class Evidence:
    """Collects the messages around hits from one scope of the store."""

    def __init__(self, store: Conversations, in_context: Collection[int] = ()) -> None:
        self._store = store
        self._in_context = in_context

    def find(self, message_id: int) -> MatchedMessage | None:
        """A message and the window around it; None if it is out of scope or deleted."""
        window = self._store.window_around(message_id, _WINDOW, roles=CONVERSATION_ROLES, without=self._in_context)
        if window is None:
            return None
        position = next(index for index, message in enumerate(window.messages) if message.id == message_id)
        return MatchedMessage(window.messages[position], position, window)

    def find_answer(self, message_id: int) -> MatchedMessage | None:
        """Like `find`, but for a question of the user that got an answer: finds the answer."""
        matched = self.find(message_id)
        if matched is None or matched.message.role != "user":
            return matched
        text = text_of(matched.message.content)
        if len(text) > _MAX_QUESTION or not is_asking(text):
            return matched
        answer = answer_in(matched.window.messages[matched.position + 1 :], text)
        # The window around a question is one around its answer too.
        return MatchedMessage(answer, matched.window.messages.index(answer), matched.window) if answer else matched

    def show_window(self, matched: MatchedMessage, match_at: int, budget: int) -> JsonObject:
        """The window and bookends for a match at the character `match_at`, together within `budget`."""
        anchor, position, window = matched
        max_chars = max(80, min(_MAX_ANCHOR_CHARS, budget // 3))
        start = max(0, match_at - max_chars // 4) if len(text_of(anchor.content)) > max_chars else 0
        room = budget - _COUNTS_CHARS
        first = fit_message(anchor, max_chars, room, start=start, anchor=True)
        shown = [] if first is None else [first.entry]
        room -= 0 if first is None else first.size
        for_bookends = min(room, 2 * _BOOKEND * _MAX_BOOKEND_SIZE, max(room // 3, 2 * _MIN_MESSAGE_CHARS))
        for_bookends = for_bookends if window.before or window.after else 0
        before, after, room = add_neighbours(
            window.messages, position, shown, _MAX_NEIGHBOUR_CHARS, room - for_bookends
        )
        before, after = window.before + before, window.after + after
        result: JsonObject = {"messages": shown, "messages_before": before, "messages_after": after}
        if not shown:
            return result
        return self._bookends(window.conversation, shown, room + for_bookends if before or after else 0) | result

    def _bookends(self, conversation: Conversation, shown: list[JsonObject], room: int) -> JsonObject:
        """The first and the last messages of a conversation, outside of those that are shown."""
        first, last = list[FeedMessage](), list[FeedMessage]()
        if room >= _MIN_MESSAGE_CHARS:
            outside = (shown[0]["id"], shown[-1]["id"])
            first, last = self._store.ends_of(
                conversation, _BOOKEND, outside=outside, roles=CONVERSATION_ROLES, without=self._in_context
            )
        opening, closing = list[JsonObject](), list[JsonObject]()
        # From outside inwards: with little room, the very first and the very last message are shown.
        pairs = zip_longest(((opening, message) for message in first), ((closing, message) for message in last[::-1]))
        ends = [end for pair in pairs for end in pair if end is not None]
        for number, (entries, message) in enumerate(ends):
            fitting = fit_message(message, _MAX_BOOKEND_CHARS, _fair_share(room, len(ends) - number))
            if fitting is not None:
                room -= fitting.size
                entries.append(fitting.entry)
        return {"bookend_start": opening, "bookend_end": closing[::-1]}


def _fair_share(room: int, count: int) -> int:
    """The part of the room for one of so many messages; with little room, enough for the first ones."""
    return min(room, max(_MIN_MESSAGE_CHARS, room // count))


def show_time(seconds: float | None) -> str | None:
    """A timestamp in the format of every answer: UTC, to the second."""
    if seconds is None:
        return None
    try:
        return f"{datetime.fromtimestamp(floor(seconds), UTC).isoformat()[:19]}Z"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s since 1970" if abs(seconds) < _MAX_NUMBER else f"{seconds:g} s since 1970"


class _Match(NamedTuple):
    """Where in a text a token or sequence of the query matches."""

    start: int
    end: int
    term: str


def snippet(text: str, query: Query, width: int = 240) -> str:
    """At most `width` characters around the best cluster of matches, not counting marks; without matches, the start."""
    return excerpt(text, query, width).text


def excerpt(text: str, query: Query, width: int = 240) -> "Excerpt":
    """The snippet, and where its best matches begin."""
    text = text[:_MAX_TEXT]
    found = _find_matches(text, query)
    cluster = _best_cluster(found, width)
    start, end = _choose_window(text, cluster, width)
    pieces = [CUT] if start else []
    at = start
    for match_start, match_end in _merge_overlaps(found):
        left, right = max(match_start, start), min(match_end, end)
        if left < right:
            pieces += [text[at:left], OPEN, text[left:right], CLOSE]
            at = right
    pieces.append(text[at:end])
    if end < len(text):
        pieces.append(CUT)
    return Excerpt("".join(pieces).translate(_FLAT), cluster)


class Excerpt(NamedTuple):
    """A snippet, and where in the text its best cluster of matches begins; None if nothing matches."""

    text: str
    at: int | None


def match_spans(text: str, query: Query) -> list[tuple[int, int]]:
    """Where the matches are, in order."""
    return list(_merge_overlaps(_find_matches(text, query)))


class _Marks:
    """What to mark: whole phrases where they occur, else their tokens."""

    def __init__(self, query: Query) -> None:
        self.tokens: set[str] = set()
        self.prefixes: list[str] = []
        self.sequences: list[tuple[str, ...]] = []
        only_small = all(part.small for part in query.leaves)
        for part in query.leaves:
            if part.small and not only_small:
                continue
            self._add(part.pattern)
        self.loose = {term.token for term in query.terms}

    def _add(self, pattern: Pattern) -> None:
        match pattern:
            case Word(token):
                # A single character matches every token that begins with it.
                (self.prefixes.append if is_single_character(token) else self.tokens.add)(token)
            case Prefix(token):
                self.prefixes.append(token)
            case Phrase(tokens):
                self.sequences.append(tokens)
            case And(parts) | Or(parts):
                for part in parts:
                    self._add(part)
            case Without(keep, _):
                self._add(keep)


def _find_matches(text: str, query: Query) -> list[_Match]:
    """All matches of the query in the text, in order."""
    marks = _Marks(query)
    tokens, prefixes = marks.tokens, tuple(marks.prefixes)
    every = marks.sequences or prefixes
    spans = list(token_spans(text) if every else token_spans(text, lambda others: not tokens.isdisjoint(others)))
    matches = list(_find_sequences(spans, marks.sequences))
    if not matches and marks.sequences:
        tokens = tokens | marks.loose
    for span in spans:
        for token in span.tokens:
            if token in tokens:
                matches.append(_Match(span.start, span.end, token))
            elif prefixes and token.startswith(prefixes):
                matches.append(_Match(span.start, _match_end(span.start, span.end, token, prefixes), prefixes[0]))
    matches.sort()
    return matches


def _match_end(start: int, end: int, token: str, prefixes: tuple[str, ...]) -> int:
    """The end of the mark; in a pair of characters, only the one that the query names is marked."""
    single = is_single_character(token[0]) and any(len(prefix) == 1 and token.startswith(prefix) for prefix in prefixes)
    return start + 1 if single else end


def _find_sequences(spans: list[TokenSpan], sequences: list[tuple[str, ...]]) -> Iterator[_Match]:
    """Where the tokens of a phrase follow each other."""
    if not sequences:
        return
    flat = [(token, span) for span in spans for token in span.tokens]
    tokens = [token for token, _ in flat]
    for sequence in sequences:
        first, length = sequence[0], len(sequence)
        at = -1
        while True:
            try:
                at = tokens.index(first, at + 1)
            except ValueError:
                break
            if tuple(tokens[at : at + length]) == sequence:
                yield _Match(flat[at][1].start, flat[at + length - 1][1].end, " ".join(sequence))


def _best_cluster(matches: list[_Match], width: int) -> int | None:
    """The start of the window with the most different terms, then the most matches; the first of equals."""
    reach = width * 3 // 4
    best: tuple[int, int] = (0, 0)
    start: int | None = None
    counts: dict[str, int] = {}
    last = 0
    for match in matches:
        while last < len(matches) and matches[last].end <= match.start + reach:
            counts[matches[last].term] = counts.get(matches[last].term, 0) + 1
            last += 1
        worth = (len(counts), sum(counts.values()))
        if worth > best or start is None:
            best, start = max(worth, best), match.start
        # A match longer than the reach was never counted.
        if counts.get(match.term, 0) > 1:
            counts[match.term] -= 1
        else:
            counts.pop(match.term, None)
    return start


def _choose_window(text: str, cluster: int | None, width: int) -> tuple[int, int]:
    """The part to show: a quarter before the cluster, the rest after it; cut between words if one ends nearby."""
    if len(text) <= width:
        return 0, len(text)
    # Room for a cut mark on either side.
    room = max(1, width - 2)
    start = max(0, min((cluster or 0) - width // 4, len(text) - room))
    if start:
        space = text.find(" ", start, start + _MAX_SNAP)
        if 0 <= space < (cluster or 0):
            start = space + 1
    end = min(len(text), start + room)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, end - _MAX_SNAP), end)
        if space > (cluster or 0) + width // 4:
            end = space
    return start, end


def _merge_overlaps(matches: list[_Match]) -> Iterator[tuple[int, int]]:
    """Merges matches that touch or overlap into one mark."""
    at: tuple[int, int] | None = None
    for start, end, _ in matches:
        if at is not None and start <= at[1]:
            at = (at[0], max(at[1], end))
        else:
            if at is not None:
                yield at
            at = (start, end)
    if at is not None:
        yield at
