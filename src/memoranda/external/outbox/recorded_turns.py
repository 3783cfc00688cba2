"""Turns in the record that a provider receives: those that were completed while it was in use.

While providers are configured, every message of a turn carries a mark: the number of the user message that began the
turn, and on the last message that the turn is done, and for which providers. A mark is part of the message's own
commit, so no crash can separate an answer from the fact that it must be delivered. The next process that reads the
record from its stored position finds it. An unfinished turn has no such mark on its last message.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from memoranda.external.outbox.jobs import Found
from memoranda.memory.record.message_rows import DONE, TURN, as_chat, text_of
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import Position

Message = dict[str, Any]

PRIMARY = "primary"
# The mark of a turn's first message, whose own number is not known before it is recorded.
_BEGINS = 0
LATEST = -1
"""The mark of a step of the turn that the session's latest question began, for a program that has not its number."""
# The question of a turn is usually among so many messages before its answer.
_NEAR = 1_000


class TurnMarks:
    """Marks the messages of turns for the providers `in_use`; `record` returns the store, if there is one.

    `context` is the `agent_context` of the session.
    """

    def __init__(
        self, record: Callable[[], SessionStore | None], in_use: Sequence[str], context: str = PRIMARY
    ) -> None:
        self._record = record
        self._context = "" if context == PRIMARY else "/" + context.replace(" ", "_")
        self._in_use = ",".join(in_use)
        self._store_id = ""

    def mark(self, turn: int | None, *, done: bool) -> Message:
        """Fields for a message that is about to be recorded; `turn` is the number of the turn's first message."""
        store = self._record() if done else None
        return {TURN: _BEGINS if turn is None else turn} | ({DONE: self._done_mark(store)} if store is not None else {})

    def _done_mark(self, store: SessionStore) -> str:
        """The mark of a completed turn. It names the store, so marks of imported messages are not ours.

        It also names the context of a session that is not primary: another session may deliver its turns.
        """
        self._store_id = self._store_id or id_of(store)
        return f"{self._in_use} {self._store_id}{self._context}"


def id_of(store: SessionStore) -> str:
    """The id of a store, whatever its scope."""
    return store.scoped(Scope.everyone()).feed.store_id()


def ids_of(store: SessionStore) -> frozenset[str]:
    """The store, and those of the fleet from which the user has moved here, perhaps with turns not yet read."""
    return store.feed.former_store_ids() | {id_of(store)}


def completed_turns(store: SessionStore, store_ids: Collection[str], provider: str, position: Position) -> list[Found]:
    """The turns that were completed after a position while a provider was in use, in order."""
    ends = store.messages.get_messages_with(DONE, position)
    return [
        # The time of its answer, however late it is queued: some vendors know an earlier attempt only by its time.
        Found(turn_key(end["session_id"], begin), "turn", end["session_id"], begin, end["id"], created=end["timestamp"])
        for end in ends
        if is_for(provider, end.get(DONE), store_ids) and (begin := _begin_of(store, end))
    ]


def _begin_of(store: SessionStore, end: Message) -> int | None:
    """The number of the message that began the turn which a message ends."""
    mark, last, session = turn_mark(end), end["id"], end["session_id"]
    if mark != LATEST:
        return mark
    near = store.messages.get_messages_with(TURN, first_id=last - _NEAR, last_id=last)
    for messages in (near, store.messages.get_messages(session, include_inactive=True)):
        for each in reversed(messages):
            if each["id"] < last and each["session_id"] == session and turn_mark(each) == _BEGINS:
                return int(each["id"])
    return None


def turn_key(session_id: str, first_message: int | None) -> str:
    return f"turn:{session_id}:{first_message}"


def joined_key(session_id: str, first_message: int | None, last_message: int | None) -> str:
    """The idempotency key of turns that are one delivery; it differs if another turn is added."""
    return f"{turn_key(session_id, first_message)}-{last_message}"


def join_turns(found: Sequence[Found], together: int) -> list[Found]:
    """Turns of a session that follow each other as one delivery, at most so many; everything else as it is."""
    joined: list[Found] = []
    count = 0
    for each in found:
        last = joined[-1] if joined else each
        if each.kind == last.kind == "turn" and each.session_id == last.session_id and 0 < count < together:
            key = joined_key(last.session_id, last.first_message, each.last_message)
            joined[-1] = last._replace(key=key, last_message=each.last_message, created=each.created)
            count += 1
        else:
            joined.append(each)
            count = 1
    return joined


def read_joined(
    store: SessionStore, session_id: str, first: int, last: int
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The arguments and facts of all turns between two messages; None when none of them is left."""
    ends = store.messages.get_messages_with(DONE, first_id=first, last_id=last)
    own = [(_begin_of(store, end), end["id"]) for end in ends if end["session_id"] == session_id]
    turns = [turn for begin, end in own if begin and (turn := read_turn(store, session_id, begin, end))]
    if not turns:
        return None
    args = {name: "\n\n".join(str(turn[0][name]) for turn in turns) for name in turns[0][0]}
    return args, {**turns[-1][1], "messages": [message for turn in turns for message in turn[1]["messages"]]}


def is_for(provider: str, mark: object, store_ids: Collection[str]) -> bool:
    """Whether a mark says that a turn of this user was completed while the provider was in use."""
    names, _, marked_store = str(mark).rpartition(" ")
    return marked_store.partition("/")[0] in store_ids and provider in (names, *names.split(","))


def read_turn(
    store: SessionStore, session_id: str, first: int, last: int
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The arguments and facts of a completed turn; None when it was taken back, deleted or moved."""
    with store.conversations.one_view():
        # A conversation that was compressed in the middle of a turn continues in another session.
        chain = store.lineage.get_compression_lineage(session_id)
        steps = store.messages.get_messages_with(TURN, first_id=first, last_id=last)
        # A message whose text was redacted has lost its mark.
        ends = filter(None, (store.messages.get_message(number) for number in (first, last)))
        found = {message["id"]: message for message in ends}
    found |= {message["id"]: message for message in steps if turn_mark(message) in (first, LATEST)}
    messages = [found[number] for number in sorted(found) if found[number]["session_id"] in chain]
    if not messages or (messages[0]["id"], messages[-1]["id"]) != (first, last) or messages[0]["role"] != "user":
        return None
    question, answer = text_of(messages[0]["content"]), text_of(messages[-1]["content"])
    context = str(messages[-1].get(DONE)).rpartition(" ")[2].partition("/")[2] or PRIMARY
    args = {"user_content": question, "assistant_content": answer}
    chat = [as_chat(message) for message in messages]
    return args, {"agent_context": context, "session_id": session_id, "messages": chat}


def completed_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages of a session in the form of chat APIs, without unfinished turns; messages in no turn stay."""
    first_ids = {message["id"] for message in messages if turn_mark(message) == _BEGINS}
    turn_of: dict[int, int] = {}
    done: set[int] = set()
    latest = _BEGINS
    for message in messages:
        mark = turn_mark(message)
        if mark is None:
            continue
        latest = message["id"] if mark == _BEGINS else latest
        # Imported and copied messages have other numbers than their marks say.
        turn_of[message["id"]] = turn = mark if mark in first_ids else latest
        if DONE in message:
            done.add(turn)
    return [as_chat(message) for message in messages if message["id"] not in turn_of or turn_of[message["id"]] in done]


def turn_mark(message: Mapping[str, Any]) -> int | None:
    """The number of the message that began a message's turn; None for a message in no turn."""
    mark = message.get(TURN)
    return mark if isinstance(mark, int) and not isinstance(mark, bool) else None
