"""What Honcho recalls for a turn: card, summary and conclusions now, and the answer of its model for the next turn.

`Cadence` says when recall asks Honcho again: every turn, every few turns, or rarely while the answers are empty.
"""

import logging
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.vendors.honcho.client import REASONING_LEVELS, HonchoClient, HonchoNames, Row
from memoranda.external.vendors.texts import RecalledItem
from memoranda.support.shorten import shorten_end

_log = logging.getLogger(__name__)

_MAX_BACKOFF = 8
# A message of this many characters deserves one level, or two levels, more of reasoning.
_LONG_QUERY_CHARS = (120, 400)

_QUESTION = (
    "What do you know about this person that helps to answer their latest message? Only facts that bear on it, in a few"
    " sentences; answer with nothing if there are none.\n\nLatest message: {query}"
)
_NEXT_PASS = (
    "{question}\n\nAn earlier answer was: {answer}\n\n"
    "Correct what is wrong in it, add what is missing, and answer again."
)
_MAX_MESSAGES = 3
_SUMMARY_TOKENS = 1_000
_MIN_WORD_CHARS = 4
# Messages that say nothing by themselves start no request.
_TRIVIAL = frozenset({
    "yes", "no", "ok", "okay", "sure", "thanks", "thank", "you", "continue", "go", "on", "next", "done", "good",
    "great", "nice", "yep", "nope", "hi", "hello",
})  # fmt: skip


class HonchoRecall:
    """Recall of one provider; remembers the turns of each session for the cadences."""

    def __init__(self, client: HonchoClient, names: HonchoNames, settings: Mapping[str, Any]) -> None:
        self._client = client
        self._names = names
        self._settings = settings
        self._lock = threading.Lock()
        self._turns: dict[str, int] = {}
        self._context_cadence = Cadence(settings["contextCadence"])
        self._dialectic_cadence = Cadence(max(settings["dialecticCadence"], 1))
        self._context: dict[str, list[RecalledItem]] = {}

    def search(self, query: str, limit: int, timeout: float, session_id: str) -> list[RecalledItem]:
        """Card and summary, the conclusions nearest to the query, and messages of other sessions."""
        turn = self._next_turn(session_id)
        if _is_trivial(query) or (turn > 0 and self._settings["injectionFrequency"] == "first-turn"):
            return []
        if not self._context_cadence.take(session_id, turn):
            return self._context.get(session_id, [])
        try:
            self._context[session_id] = self._search(query, limit, time.monotonic() + timeout, session_id)
        except ProviderError:
            self._context_cadence.failed(session_id)
            raise
        return self._context[session_id]

    def ask(self, query: str, timeout: float, session_id: str) -> list[RecalledItem]:
        """The answer of Honcho's model to what the query is about, for the next turn; empty when none is due."""
        turn = self._turns.get(session_id, 0)
        if not self._settings["dialecticCadence"] or _is_trivial(query):
            return []
        if not self._dialectic_cadence.take(session_id, turn):
            return []
        try:
            answer = self._ask_passes(query, time.monotonic() + timeout)
        except ProviderError:
            self._dialectic_cadence.failed(session_id)
            raise
        self._dialectic_cadence.answered(session_id, empty=not answer)
        text = shorten_end(answer, self._settings["dialecticMaxChars"])
        return [RecalledItem(text, time.time(), kind="answer")] if text else []

    def reset(self) -> None:
        """Start again: the session was switched, rewound or deleted."""
        with self._lock:
            self._turns.clear()
        self._context.clear()
        self._context_cadence.reset()
        self._dialectic_cadence.reset()

    def _next_turn(self, session_id: str) -> int:
        with self._lock:
            turn = self._turns.get(session_id, 0)
            self._turns[session_id] = turn + 1
        return turn

    def _search(self, query: str, limit: int, deadline: float, session_id: str) -> list[RecalledItem]:
        """All that is found in time: the context needs no embedding of the query, and is usually there first."""
        session, names = self._names.session(session_id), self._names
        context = self._client.get_session_context(
            session, names.observer, names.user, tokens=_SUMMARY_TOKENS, timeout=_seconds_until(deadline)
        )
        items = _context_items(context)
        try:
            conclusions = self._client.query_conclusions(
                query, names.observer, names.user, limit, timeout=_seconds_until(deadline)
            )
            items += [_item(row, "conclusion") for row in conclusions]
            messages = self._client.search_messages(
                query, names.both, _MAX_MESSAGES, except_session=session, timeout=_seconds_until(deadline)
            )
        except ProviderError as error:
            if not items:
                raise
            _log.info("Honcho recalls only a part: %s", error)
            return items
        related = (row for row in messages if _shares_word(query, str(row.get("content"))))
        return [*items, *(_item(row, _author(row, names)) for row in related)]

    def _ask_passes(self, query: str, deadline: float) -> str:
        """The last answer that is not empty; each pass after the first corrects the one before."""
        options, names = self._settings, self._names
        base = reasoning_level(
            query,
            options["dialecticReasoningLevel"],
            options["reasoningLevelCap"],
            heuristic=options["reasoningHeuristic"],
        )
        question = _QUESTION.format(query=query)
        answer = ""
        for level in pass_levels(options["dialecticDepth"], base):
            asked = _NEXT_PASS.format(question=question, answer=answer) if answer else question
            try:
                found = self._client.chat(asked, names.observer, names.user, level, _seconds_until(deadline))
            except ProviderError:
                if not answer:
                    raise
                return answer
            answer = found or answer
        return answer


def _context_items(context: Row) -> list[RecalledItem]:
    """Card and summary of a session's context."""
    card = [line for line in context.get("peer_card") or () if isinstance(line, str) and line.strip()]
    items = [RecalledItem("; ".join(card), kind="card")] if card else []
    summary = context.get("summary")
    if isinstance(summary, dict) and summary.get("content"):
        items.append(RecalledItem(str(summary["content"]), summary.get("created_at"), kind="summary"))
    return items


def _is_trivial(query: str) -> bool:
    """Whether a message is a command or only a word or two of assent."""
    words = "".join(character if character.isalnum() else " " for character in query.casefold()).split()
    return query.lstrip().startswith("/") or (len(words) <= 3 and all(word in _TRIVIAL for word in words))


def _shares_word(query: str, text: str) -> bool:
    """Whether a text contains a longer word of the query: Honcho's search also returns messages that have no relation.

    Languages without spaces are compared by pairs of characters.
    """
    text = text.casefold()
    for word in re.findall(r"\w+", query.casefold()):
        parts = {word} if word.isascii() else {word[at : at + 2] for at in range(max(len(word) - 1, 1))}
        if any(part in text for part in parts if len(part) >= _MIN_WORD_CHARS or not part.isascii()):
            return True
    return False


def _item(row: Row, kind: str) -> RecalledItem:
    return RecalledItem(str(row.get("content") or ""), row.get("created_at"), id=str(row.get("id") or ""), kind=kind)


def _author(row: Row, names: HonchoNames) -> str:
    """Who said a message, as the label of an item."""
    author = row.get("peer_id")
    return "user said" if author == names.user else "assistant said" if author == names.assistant else "message"


def _seconds_until(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.05)


class Cadence:
    """Counts the turns of each session between two refreshes. Thread-safe.

    `every` is the number of turns between refreshes. Answers that were empty widen it, up to eight times.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._lock = threading.Lock()
        self._next: dict[str, int] = {}
        self._empty: dict[str, int] = {}

    def take(self, session_id: str, turn: int) -> bool:
        """Whether a refresh is due in this turn; if so, the next one is due `every` turns later."""
        with self._lock:
            if turn < self._next.get(session_id, 0):
                return False
            pause = min(self._every + self._empty.get(session_id, 0), _MAX_BACKOFF * self._every)
            self._next[session_id] = turn + pause
            return True

    def answered(self, session_id: str, *, empty: bool) -> None:
        """Report whether the refresh brought something."""
        with self._lock:
            self._empty[session_id] = self._empty.get(session_id, 0) + 1 if empty else 0

    def failed(self, session_id: str) -> None:
        """Report that the refresh failed: the next turn tries again."""
        with self._lock:
            self._next.pop(session_id, None)

    def reset(self) -> None:
        """Forget all sessions, so that the next turn of each refreshes."""
        with self._lock:
            self._next.clear()
            self._empty.clear()


def reasoning_level(query: str, base: str, cap: str, *, heuristic: bool) -> str:
    """The level for a question: `base`, and with `heuristic` one or two more for a long one, but not above `cap`."""
    level = REASONING_LEVELS.index(base)
    if heuristic:
        raised = level + sum(len(query) >= chars for chars in _LONG_QUERY_CHARS)
        level = max(level, min(raised, REASONING_LEVELS.index(cap)))
    return REASONING_LEVELS[level]


def pass_levels(depth: int, base: str) -> list[str]:
    """The level of each pass of a dialectic of this depth; a first pass before others is cheap."""
    return {1: [base], 2: ["minimal", base], 3: ["minimal", base, "low"]}[depth]
