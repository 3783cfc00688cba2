"""The contract of a session store with several concurrent writers, as a test suite for pytest.

It complements `StoreContract`. Derive a class with one fixture, `connect`: every call opens another engine of the same
empty store, and the fixture closes all of them at the end:

    class TestMyEngine(ConcurrencyContract):
        @pytest.fixture
        def connect(self) -> Iterator[Callable[[], Engine]]: ...

Every writer has a separate engine and delays its commits, so that transactions overlap if the engine allows it.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from memoranda.db.connection import Connection
from memoranda.db.engine import Engine, HeldLock
from memoranda.db.position import START
from memoranda.errors import SessionBusy, SessionError
from memoranda.sessions.rotation import Lease
from memoranda.sessions.store import SessionStore

Connect = Callable[[], Engine]

WRITERS = 8
_MESSAGES = 12
_MAX_DELAY = 0.012
_POLL = 0.002
_LONG = 60.0


class SlowCommits:
    """An engine that keeps write transactions open for a random short time before they commit."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self._engine = engine
        self._random = random.Random(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._engine.writing() as connection:
            yield connection
            time.sleep(self._random.uniform(0, _MAX_DELAY))


def _writer(connect: Connect, number: int) -> SessionStore:
    return SessionStore(SlowCommits(connect(), number))


def _run_together(connect: Connect, task: Callable[[SessionStore, int], Any]) -> list[Any]:
    """Run a task in every writer's thread, all starting at the same time, and return the results."""
    stores = [_writer(connect, number) for number in range(WRITERS)]
    start = threading.Barrier(WRITERS)

    def run(number: int) -> Any:
        start.wait()
        return task(stores[number], number)

    with ThreadPoolExecutor(WRITERS) as threads:
        return list(threads.map(run, range(WRITERS)))


class ConcurrencyContract:
    """All tests of the contract, each with eight writers."""

    def test_a_follower_misses_no_message(self, connect: Connect) -> None:
        """It reads while transactions overlap, and ends with every message exactly once."""
        follower = SessionStore(connect())
        for number in range(WRITERS):
            follower.sessions.create_session(f"s{number}", "cli")
        done = threading.Event()

        def follow() -> list[int]:
            found, position = [], START
            while True:
                last_round = done.is_set()
                batch = follower.feed.messages_after(position, 5)
                found += [message.id for message in batch.messages]
                assert batch.position >= position
                position = batch.position
                if last_round and not batch.messages:
                    return found
                time.sleep(_POLL)

        with ThreadPoolExecutor(1) as thread:
            following = thread.submit(follow)
            try:
                written = _run_together(
                    connect,
                    lambda store, number: [
                        store.messages.append_message(f"s{number}", "user", str(index)) for index in range(_MESSAGES)
                    ],
                )
            finally:
                done.set()
            found = following.result()
        missed = {message_id for ids in written for message_id in ids} - set(found)
        assert not missed, f"the follower missed {len(missed)} of {WRITERS * _MESSAGES} messages"
        assert len(found) == len(set(found))

    def test_a_follower_misses_no_change(self, connect: Connect) -> None:
        """The same is true of changes to sessions."""
        follower = SessionStore(connect())
        for number in range(WRITERS):
            follower.sessions.create_session(f"s{number}", "cli")
        start, done = follower.feed.head().change, threading.Event()

        def follow() -> list[str]:
            found, position = [], start
            while True:
                last_round = done.is_set()
                changes = follower.feed.changes_after(position, 5)
                found += [change.session_id for change in changes]
                position = changes[-1].position if changes else position
                if last_round and not changes:
                    return found
                time.sleep(_POLL)

        with ThreadPoolExecutor(1) as thread:
            following = thread.submit(follow)
            try:
                _run_together(
                    connect,
                    lambda store, number: [
                        store.titles.set_session_title(f"s{number}", f"{number} {index}") for index in range(_MESSAGES)
                    ],
                )
            finally:
                done.set()
            found = following.result()
        written = [change.session_id for change in follower.feed.changes_after(start, 1_000_000)]
        assert sorted(found) == sorted(written)
        # An engine may note one change twice, once by the store and once by a trigger.
        assert min(found.count(f"s{number}") for number in range(WRITERS)) >= _MESSAGES

    def test_a_lease_is_granted_once(self, connect: Connect) -> None:
        """Of all writers that request it at the same time, one gets it."""
        SessionStore(connect()).sessions.create_session("s", "cli")
        answers = _run_together(
            connect, lambda store, number: store.rotation.take_compression_lease("s", f"holder {number}")
        )
        assert sum(isinstance(answer, Lease) for answer in answers) == 1

    def test_a_conversation_has_one_turn_at_a_time(self, connect: Connect) -> None:
        """Writers that lock a turn wait for each other, while writers of other conversations do not."""
        inside: list[str] = []

        def take_turn(store: SessionStore, number: int) -> int:
            lock = store.sessions.lock_turn("s", _LONG)
            inside.append("s")
            count = len(inside)
            store.sessions.lock_turn(f"other {number}", 0).release()
            time.sleep(_MAX_DELAY)
            inside.remove("s")
            lock.release()
            return count

        assert _run_together(connect, take_turn) == [1] * WRITERS

    def test_a_turn_that_another_holds_makes_the_session_busy(self, connect: Connect) -> None:
        """Until it is released, or its holder has dropped it; the lock stops no write."""
        first, second = SessionStore(connect()), SessionStore(connect())
        lock: HeldLock | None = first.sessions.lock_turn("s", 0)
        second.sessions.create_session("s", "cli")
        second.messages.append_message("s", "user", "hello")
        with pytest.raises(SessionBusy):
            second.sessions.lock_turn("s", 2 * _POLL)
        assert lock is not None
        lock.release()
        lock = second.sessions.lock_turn("s", 0)
        with pytest.raises(SessionBusy):
            first.sessions.lock_turn("s", 0)
        del lock
        first.sessions.lock_turn("s", _LONG).release()

    def test_a_session_is_continued_once(self, connect: Connect) -> None:
        """Of all writers that rotate it at the same time, one succeeds; the others learn which session continues it."""
        store = SessionStore(connect())
        store.sessions.create_session("s", "cli", title="Talk")
        last = store.messages.append_message("s", "user", "hello")
        answers = _run_together(
            connect, lambda store, number: store.rotation.rotate_session("s", f"next {number}", [], last_seen=last)
        )
        names = {getattr(answer, "session_id", None) or answer.successor for answer in answers}
        assert len(names) == 1
        assert store.lineage.get_compression_lineage("s") == ["s", *names]
        assert store.listing.session_count() == 2

    def test_nothing_is_recorded_in_a_session_that_was_continued(self, connect: Connect) -> None:
        """An append that would lose its message to a rotation is refused, or the rotation sees the message."""
        store = SessionStore(connect())
        store.sessions.create_session("s", "cli")
        last = store.messages.append_message("s", "user", "first")

        def append_or_rotate(store: SessionStore, number: int) -> str:
            if number == 0:
                store.rotation.rotate_session("s", "next", [], last_seen=last)
                return ""
            try:
                store.messages.append_messages(
                    "s", [{"role": "user", "content": f"late {number}"}], fail_if_continued=True
                )
            except SessionError:
                return ""
            return f"late {number}"

        recorded = set(filter(None, _run_together(connect, append_or_rotate)))
        if store.sessions.get_session("next") is not None:
            assert recorded == set()
        assert {row["content"] for row in store.messages.get_messages("s")} == recorded | {"first"}

    def test_titles_stay_unique(self, connect: Connect) -> None:
        """Of all writers that set a title at the same time, one gets it, and the others are refused."""
        store = SessionStore(connect())
        for number in range(WRITERS):
            store.sessions.create_session(f"s{number}", "cli")

        def claim(store: SessionStore, number: int) -> bool:
            try:
                return store.titles.set_session_title(f"s{number}", "The plan")
            except SessionError:
                return False

        assert _run_together(connect, claim).count(True) == 1
        assert [row["title"] for row in store.transfer.export_all()].count("The plan") == 1

    def test_a_session_is_created_once(self, connect: Connect) -> None:
        """All writers that create it at the same time succeed, and the store has one."""
        _run_together(connect, lambda store, number: store.sessions.create_session("s", "cli", model=f"m{number}"))
        assert SessionStore(connect()).listing.session_count() == 1

    def test_a_rewind_and_concurrent_appends_agree(self, connect: Connect) -> None:
        """Every message is either rewound or in the context, and the counters agree with the messages."""
        store = SessionStore(connect())
        store.sessions.create_session("s", "cli")
        first = store.messages.append_message("s", "user", "first")
        target = store.messages.append_message("s", "user", "target")

        def append_or_rewind(store: SessionStore, number: int) -> list[int]:
            if number == 0:
                time.sleep(_MAX_DELAY)
                store.edits.rewind_to_message("s", target)
                return []
            return [store.messages.append_message("s", "assistant", f"{number} {index}") for index in range(4)]

        written = [message_id for ids in _run_together(connect, append_or_rewind) for message_id in ids]
        live = [row["id"] for row in store.messages.get_messages("s")]
        assert first in live
        assert target not in live
        assert set(live) <= {first, *written}
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == len(live)
        assert store.maintenance.miscounted_sessions() == []
        assert [message.id for message in store.feed.messages_after(START, 1000).messages] == sorted(live)

    def test_the_same_external_id_is_recorded_once(self, connect: Connect) -> None:
        """All writers that append it get the id of one message."""
        store = SessionStore(connect())
        store.sessions.create_session("s", "cli")
        ids = _run_together(
            connect, lambda store, number: store.messages.append_message("s", "user", "x", external_id="e")
        )
        assert len(set(ids)) == 1
        assert len(store.messages.get_messages("s")) == 1
