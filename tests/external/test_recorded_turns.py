"""Completed turns are found in the record by their marks; those that were left, taken back or imported are not."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.record_feed import RecordFeed
from memoranda.external.outbox.recorded_turns import (
    LATEST,
    TurnMarks,
    completed_messages,
    completed_turns,
    ids_of,
    read_turn,
)
from memoranda.memory.record.message_rows import DONE, TURN
from memoranda.memory.record.notifications import FeedHeads
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.position import START, Position

Message = dict[str, Any]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    with open_store(tmp_path / "state.db") as made:
        made.sessions.create_session("s", "test")
        made.sessions.create_session("t", "test")
        yield made


def _say(store: SessionStore, turns: TurnMarks, session: str, turn: int, text: str, *, done: bool = False) -> int:
    role = "assistant" if turn else "user"
    return store.messages.append_message(session, role, text, **turns.mark(turn, done=done))


def _complete(store: SessionStore, turns: TurnMarks, session: str, text: str) -> int:
    begin = _say(store, turns, session, 0, text)
    _say(store, turns, session, begin, f"answer to {text}", done=True)
    return begin


def _found(store: SessionStore, provider: str = "p", place: Position = START) -> list[tuple[str, str, Message]]:
    """The session, the key, and the arguments and facts of the turns behind a place."""
    turns = []
    for found in completed_turns(store, ids_of(store), provider, place):
        content = read_turn(store, found.session_id, found.first_message or 0, found.last_message or 0)
        assert content is not None
        turns.append((found.session_id, found.key, {**content[0], **content[1]}))
    return turns


def test_turns_are_found_behind_a_place_in_the_order_of_their_answers(store: SessionStore) -> None:
    """Even when they overlap, with every step of their own and of no other turn."""
    turns = TurnMarks(lambda: store, ["p"])
    _complete(store, turns, "s", "old")
    place = store.feed.head().message
    first = _say(store, turns, "s", 0, "first")
    second = _say(store, turns, "t", 0, "second")
    store.messages.append_message("s", "user", "beside")
    _say(store, turns, "s", first, "step")
    _say(store, turns, "t", second, "answer 2", done=True)
    _say(store, turns, "s", first, "answer 1", done=True)
    _say(store, turns, "s", 0, "left")
    found = _found(store, place=place)
    assert [(session, key, turn["user_content"], turn["assistant_content"]) for session, key, turn in found] == [
        ("t", f"turn:t:{second}", "second", "answer 2"),
        ("s", f"turn:s:{first}", "first", "answer 1"),
    ]
    assert found[1][2]["messages"] == [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "step"},
        {"role": "assistant", "content": "answer 1"},
    ]
    assert _found(store, place=store.feed.head().message) == []


@pytest.mark.parametrize("between", [0, 1_200])
def test_a_turn_is_found_by_a_program_that_does_not_know_its_number(store: SessionStore, between: int) -> None:
    """The latest question of its session began it, also one of the same commit, or long ago."""
    turns = TurnMarks(lambda: store, ["p"])
    _say(store, turns, "s", 0, "left")
    _say(store, turns, "s", 0, "asked")
    store.messages.append_messages("t", [{"role": "user", "content": "beside", TURN: 0}] * between)
    steps = [("step", False), ("answer", True)]
    rows = [{"role": "assistant", "content": text, **turns.mark(LATEST, done=done)} for text, done in steps]
    store.messages.append_messages("s", rows)
    ((_, _, turn),) = _found(store)
    assert [message["content"] for message in turn["messages"]] == ["asked", "step", "answer"]


def test_a_turn_across_the_place_is_found_whole(store: SessionStore) -> None:
    """It began before the record was read, and was done after."""
    turns = TurnMarks(lambda: store, ["p"])
    begin = _say(store, turns, "s", 0, "q")
    place = store.feed.head().message
    _say(store, turns, "s", begin, "a", done=True)
    ((_, _, turn),) = _found(store, place=place)
    assert [message["content"] for message in turn["messages"]] == ["q", "a"]


def test_turns_of_others_are_not_found(store: SessionStore, tmp_path: Path) -> None:
    """Of another provider, of another record, and those that were taken back."""
    turns = TurnMarks(lambda: store, ["p"])
    _complete(store, TurnMarks(lambda: store, ["q"]), "s", "for another")
    _complete(store, turns, "t", "ours")
    exported = store.transfer.export_session("t")
    assert exported is not None
    with open_store(tmp_path / "other.db") as other:
        other.sessions.create_session("x", "test")
        other.messages.append_messages("x", [{"role": "user", "content": str(number)} for number in range(2)])
        other.transfer.import_sessions([exported])
        assert _found(other) == []
    assert [turn["user_content"] for _, _, turn in _found(store)] == ["ours"]
    store.edits.rewind_to_message("t", store.messages.get_messages("t")[0]["id"])
    assert _found(store) == []


def test_a_record_that_is_missing_or_new_has_nothing(store: SessionStore, tmp_path: Path) -> None:
    """The position follows it."""
    ahead = FeedHeads(Position(0, 5))
    assert RecordFeed(tmp_path, opened=lambda: store).after("p", "", ahead) == (FeedHeads(), [])
    with closing(Outbox(tmp_path / "empty")) as outbox:
        assert outbox.catch_up("p") == 0
    assert not (tmp_path / "empty").exists()


def _message(number: int, turn: Any = None, done: bool = False) -> dict[str, Any]:
    message = {"id": number, "role": "user", "content": str(number)}
    return message | ({} if turn is None else {TURN: turn}) | ({DONE: "p x"} if done else {})


def test_a_session_without_its_unfinished_turns() -> None:
    """What is in no turn stays, and no mark is shown."""
    for messages, expected in [
        ([_message(1), _message(2)], [1, 2]),
        ([_message(1, 0), _message(2, 1), _message(3, 1, done=True)], [1, 2, 3]),
        ([_message(1, 0), _message(2, 1), _message(3)], [3]),
        ([_message(1, 0), _message(2, 0), _message(3, 2, done=True)], [2, 3]),
        ([_message(1, 0), _message(2, 0), _message(3, 1, done=True)], [1, 3]),
        # Imported or repeated: the numbers are others now.
        ([_message(11, 0), _message(12, 1, done=True), _message(13, 0), _message(14, 3)], [11, 12]),
        ([_message(1, "odd"), _message(2, True)], [1, 2]),
    ]:
        assert completed_messages(messages) == [{"role": "user", "content": str(number)} for number in expected]


def test_a_turn_has_the_context_of_the_session_that_completed_it(store: SessionStore) -> None:
    """Whichever session finds it; a mark without a context is that of a primary session."""
    for name, context in (("person", "primary"), ("schedule", "cron"), ("strange", "a context of a host")):
        _complete(store, TurnMarks(lambda: store, ["q", "p"], context), "s", name)
    assert [(turn["user_content"], turn["agent_context"]) for _, _, turn in _found(store)] == [
        ("person", "primary"),
        ("schedule", "cron"),
        ("strange", "a_context_of_a_host"),
    ]
