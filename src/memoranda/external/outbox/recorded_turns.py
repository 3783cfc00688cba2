"""Finds the turns in the record that a provider receives: those that were completed while it was in use.

While providers are configured, every message of a turn carries a mark: the number of the user message that began the
turn, and on the last message that the turn is done, and for which providers. A mark is part of the message's own
commit, so no crash can separate an answer from the fact that it must be delivered. The next process that reads the
record from its stored position finds it, and moves that position in the commit that queues the turns. An unfinished
turn has no such mark on its last message.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memoranda.external.message_text import plain_text
from memoranda.memory.record.message_rows import DONE, TURN, as_chat
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import START, Position

Message = dict[str, Any]

PRIMARY = "primary"
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
    context: str = PRIMARY
    """The `agent_context` of the session in which it was completed."""


class TurnSource(Protocol):
    """Where completed turns are found. A position is the last message that was read."""

    def head(self) -> Position:
        """The position of the newest message."""

    def after(self, position: Position) -> tuple[Position, list[FinishedTurn]]:
        """The position of the newest message, and the turns that were completed after `position`, in order."""


class RecordedTurns:
    """The turns of one user's record that are for one provider; `record` returns the store, if there is one.

    `in_use` are all providers of the session, for which it marks turns; `context` is its `agent_context`.
    """

    def __init__(
        self,
        record: Callable[[], SessionStore | None],
        provider: str,
        in_use: Sequence[str] = (),
        context: str = PRIMARY,
    ) -> None:
        self._record = record
        self._context = "" if context == PRIMARY else "/" + context.replace(" ", "_")
        self._provider = provider
        self._in_use = ",".join(in_use or (provider,))
        self._store_id = ""
        self._own_ids: frozenset[str] = frozenset()

    def mark(self, turn: int | None, *, done: bool) -> Message:
        """Fields for a message that is about to be recorded; `turn` is the number of the turn's first message."""
        store = self._record() if done else None
        return {TURN: _BEGINS if turn is None else turn} | ({DONE: self._done_mark(store)} if store is not None else {})

    def _done_mark(self, store: SessionStore) -> str:
        """The mark of a completed turn. It names the store, so marks of imported messages are not ours.

        It also names the context of a session that is not primary: another session may deliver its turns.
        """
        return f"{self._in_use} {self._id_of(store)}{self._context}"

    def _is_ours(self, mark: object, store_ids: Collection[str]) -> bool:
        """Whether a mark says that a turn of this user was completed while the provider was in use."""
        names, _, marked_store = str(mark).rpartition(" ")
        return marked_store.partition("/")[0] in store_ids and self._provider in (names, *names.split(","))

    def _ids_of(self, store: SessionStore) -> Collection[str]:
        """The store, and those of the fleet from which the user has moved here, perhaps with turns not yet queued."""
        if not self._own_ids:
            self._own_ids = store.feed.former_store_ids() | {self._id_of(store)}
        return self._own_ids

    def _id_of(self, store: SessionStore) -> str:
        if not self._store_id:
            self._store_id = store.scoped(Scope.everyone()).feed.store_id()
        return self._store_id

    def head(self) -> Position:
        """The position of the newest message."""
        store = self._record()
        return store.feed.head().message if store else START

    def after(self, position: Position) -> tuple[Position, list[FinishedTurn]]:
        """The position of the newest message, and the turns that were completed after `position`, in order."""
        store = self._record()
        if store is None:
            return position, []
        store_ids = self._ids_of(store)
        # Outside the view: on a server it waits for turns that are being committed.
        head = store.feed.head().message
        if head <= position:
            return head, []
        with store.conversations.one_view():
            head = store.feed.head().message
            if head <= position:
                return head, []
            completed = store.messages.get_messages_with(DONE, position)
            ends = [end for end in completed if self._is_ours(end.get(DONE), store_ids)]
            first_ids = [end[TURN] for end in ends if isinstance(end.get(TURN), int)]
            marked = store.messages.get_messages_with(TURN, first_id=min(first_ids)) if first_ids else []
            # A conversation that was compressed in the middle of a turn continues in another session.
            chains = {end["session_id"]: store.lineage.get_compression_lineage(end["session_id"]) for end in ends}
        turns = (_build_turn(end, marked, chains[end["session_id"]]) for end in ends)
        return head, [turn for turn in turns if turn is not None]


def completed_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages of a session in the form of chat APIs, without unfinished turns; messages in no turn stay."""
    first_ids = {message["id"] for message in messages if _turn_mark(message) == _BEGINS}
    turn_of: dict[int, int] = {}
    done: set[int] = set()
    latest = _BEGINS
    for message in messages:
        mark = _turn_mark(message)
        if mark is None:
            continue
        latest = message["id"] if mark == _BEGINS else latest
        # Imported and copied messages have other numbers than their marks say.
        turn_of[message["id"]] = turn = mark if mark in first_ids else latest
        if DONE in message:
            done.add(turn)
    return [as_chat(message) for message in messages if message["id"] not in turn_of or turn_of[message["id"]] in done]


def _build_turn(end: Message, marked: Sequence[Message], chain: Sequence[str]) -> FinishedTurn | None:
    """The turn that a message completes; None when its first message is missing."""
    begin, session_id = _turn_mark(end), end["session_id"]
    messages = [
        message
        for message in marked
        if message["session_id"] in chain
        and message["id"] <= end["id"]
        and (message["id"] == begin if _turn_mark(message) == _BEGINS else _turn_mark(message) == begin)
    ]
    if not messages or messages[0]["id"] != begin or messages[0]["role"] != "user":
        return None
    question, answer = plain_text(messages[0]["content"]), plain_text(end["content"])
    chat = [as_chat(message) for message in messages]
    context = str(end.get(DONE)).rpartition(" ")[2].partition("/")[2] or PRIMARY
    return FinishedTurn(session_id, f"turn:{session_id}:{begin}", question, answer, chat, context)


def _turn_mark(message: Mapping[str, Any]) -> int | None:
    mark = message.get(TURN)
    return mark if isinstance(mark, int) and not isinstance(mark, bool) else None
