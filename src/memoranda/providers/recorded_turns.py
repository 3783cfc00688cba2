"""Which turns of the record an external memory hears of: those that were completed while it was in use.

While a provider is configured, every message of a turn carries a mark: the user message that the turn began with, and
on the last one that the turn is done, and for whom. A mark is part of the message's own commit, so no crash comes
between an answer and the fact that it is to be delivered. Whoever looks next finds it: the record is asked what was
completed behind a certain place, and that place is moved in the same commit in which the turns are queued. A turn that
was left unfinished has no such mark, in this process or any other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memoranda.db.position import START, Position
from memoranda.providers.text import plain_text
from memoranda.sessions.message_rows import DONE, TURN, as_chat
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import SessionStore

Message = dict[str, Any]

# The mark of a turn's first message, whose own number is not known before it is recorded.
_BEGINS = 0


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """A completed turn, as it was recorded."""

    session_id: str
    key: str
    question: str
    answer: str
    messages: list[Message]


class TurnSource(Protocol):
    """Where completed turns are found. A place is the number of the last message that was looked at."""

    def head(self) -> Position:
        """The place where the record ends now."""

    def after(self, place: Position) -> tuple[Position, list[FinishedTurn]]:
        """The place where the record ends, and what was completed behind another place, in order."""


class RecordedTurns:
    """The turns of one user's record that are for one provider; `record` gives the store, None while there is none."""

    def __init__(self, record: Callable[[], SessionStore | None], provider: str) -> None:
        self._record = record
        self._provider = provider
        self._mark = ""

    def mark(self, turn: int | None, *, done: bool) -> Message:
        """Fields for a message that is about to be recorded; `turn` is the number of the turn's first message."""
        store = self._record() if done else None
        return {TURN: _BEGINS if turn is None else turn} | ({DONE: self._for_us(store)} if store is not None else {})

    def _for_us(self, store: SessionStore) -> str:
        """What the last message of a completed turn says; marks that came in from another record say something else."""
        if not self._mark:
            self._mark = f"{self._provider} {store.scoped(Scope.everyone()).store_id()}"
        return self._mark

    def head(self) -> Position:
        """The place where the record ends now."""
        store = self._record()
        return store.head().message if store else START

    def after(self, place: Position) -> tuple[Position, list[FinishedTurn]]:
        """The place where the record ends, and what was completed behind another place, in order."""
        store = self._record()
        if store is None:
            return place, []
        done = self._for_us(store)
        with store.one_view():
            head = store.head().message
            if head <= place:
                return head, []
            ends = [end for end in store.get_messages_with(DONE, place) if end.get(DONE) == done]
            begins = [end[TURN] for end in ends if isinstance(end.get(TURN), int)]
            marked = store.get_messages_with(TURN, first_id=min(begins)) if begins else []
            # A conversation that was compressed in the middle of a turn goes on in another session.
            chains = {end["session_id"]: store.get_compression_lineage(end["session_id"]) for end in ends}
        turns = (_turn(end, marked, chains[end["session_id"]]) for end in ends)
        return head, [turn for turn in turns if turn is not None]


def completed_messages(messages: Sequence[Message]) -> list[Message]:
    """A session as chat APIs take it, without turns that were left unfinished; what is in no turn stays."""
    begun = {message["id"] for message in messages if _mark(message) == _BEGINS}
    turn_of: dict[int, int] = {}
    done: set[int] = set()
    latest = _BEGINS
    for message in messages:
        mark = _mark(message)
        if mark is None:
            continue
        latest = message["id"] if mark == _BEGINS else latest
        # Messages that were imported or repeated have other numbers than their marks know.
        turn_of[message["id"]] = turn = mark if mark in begun else latest
        if DONE in message:
            done.add(turn)
    return [as_chat(message) for message in messages if message["id"] not in turn_of or turn_of[message["id"]] in done]


def _turn(end: Message, marked: Sequence[Message], chain: Sequence[str]) -> FinishedTurn | None:
    """The turn that a message completes; None when its beginning is not there (any more)."""
    begin, session_id = _mark(end), end["session_id"]
    messages = [
        message
        for message in marked
        if message["session_id"] in chain
        and message["id"] <= end["id"]
        and (message["id"] == begin if _mark(message) == _BEGINS else _mark(message) == begin)
    ]
    if not messages or messages[0]["id"] != begin or messages[0]["role"] != "user":
        return None
    question, answer = plain_text(messages[0]["content"]), plain_text(end["content"])
    chat = [as_chat(message) for message in messages]
    return FinishedTurn(session_id, f"turn:{session_id}:{begin}", question, answer, chat)


def _mark(message: Mapping[str, Any]) -> int | None:
    mark = message.get(TURN)
    return mark if isinstance(mark, int) and not isinstance(mark, bool) else None
