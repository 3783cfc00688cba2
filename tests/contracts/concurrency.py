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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from memoranda.errors import ItemConflictError, SessionBusyError, SessionError, StorageError
from memoranda.memory.record.rotation import Lease
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine, HeldLock
from memoranda.storage.position import START

MAX_DELAY = 0.012
_MAX_PAUSE = 60.0
_Answer = TypeVar("_Answer")


class SlowCommits:
    """An engine that keeps write transactions open for a random short time before they commit."""

    def __init__(self, engine: Engine, delays: random.Random) -> None:
        self._engine = engine
        self._random = delays

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def acting_for(self, user: str | None, *, everyone: bool = False) -> "SlowCommits":
        return SlowCommits(self._engine.acting_for(user, everyone=everyone), self._random)

    def write(self, work: Callable[[Connection], _Answer]) -> _Answer:
        with self.writing() as connection:
            return work(connection)

    def write_statement(self, statement: str, values: Sequence[Any]) -> list[Any]:
        try:
            with self.writing() as connection:
                return connection.execute(statement, values).fetchall()
        except StorageError as error:
            if isinstance(error.__cause__, self._engine.dialect.row_refused):
                raise error.__cause__ from None
            raise

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._engine.writing() as connection:
            yield connection
            time.sleep(self._random.uniform(0, MAX_DELAY))


class PausedCommits(SlowCommits):
    """An engine that waits for an event before it commits."""

    def __init__(self, engine: Engine, paused: threading.Event, resume: threading.Event) -> None:
        super().__init__(engine, random.Random())
        self._paused = paused
        self._resume = resume

    def acting_for(self, user: str | None, *, everyone: bool = False) -> "PausedCommits":
        return PausedCommits(self._engine.acting_for(user, everyone=everyone), self._paused, self._resume)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._engine.writing() as connection:
            yield connection
            self._paused.set()
            self._resume.wait(_MAX_PAUSE)


Connect = Callable[[], Engine]

WRITERS = 8
_MESSAGES = 12
_POLL = 0.002
_LONG = 60.0
_MAX_OVERTAKING = 0.5


def _writer(connect: Connect, number: int) -> SessionStore:
    return SessionStore(SlowCommits(connect(), random.Random(number)))


def _run_together(connect: Connect, task: Callable[[SessionStore, int], Any]) -> list[Any]:
    """Run a task in every writer's thread, all starting at the same time, and return the results."""
    stores = [_writer(connect, number) for number in range(WRITERS)]
    start = threading.Barrier(WRITERS)

    def run(number: int) -> Any:
        start.wait()
        return task(stores[number], number)

    with ThreadPoolExecutor(WRITERS) as threads:
        return list(threads.map(run, range(WRITERS)))


def _follow_writers(
    connect: Connect, read: Callable[[], list[Any]], write: Callable[[SessionStore, int], list[Any]]
) -> tuple[list[Any], list[Any]]:
    """Read again and again while all writers write, until nothing is left; return what was read, and what was written.

    `read` returns what is new since its last call.
    """
    done = threading.Event()

    def follow() -> list[Any]:
        found: list[Any] = []
        while True:
            last_round = done.is_set()
            new = read()
            found += new
            if last_round and not new:
                return found
            time.sleep(_POLL)

    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(follow)
        try:
            written = _run_together(connect, write)
        finally:
            done.set()
        return following.result(), [result for results in written for result in results]


class ConcurrencyContract:
    """All tests of the contract, each with eight writers."""

    def test_a_follower_misses_no_message(self, connect: Connect) -> None:
        """It reads while transactions overlap, and ends with every message exactly once."""
        follower = SessionStore(connect())
        for number in range(WRITERS):
            follower.sessions.create_session(f"s{number}", "cli")
        position = START

        def read() -> list[int]:
            nonlocal position
            batch = follower.feed.messages_after(position, 5)
            assert batch.position >= position
            position = batch.position
            return [message.id for message in batch.messages]

        def write(store: SessionStore, number: int) -> list[int]:
            return [store.messages.append_message(f"s{number}", "user", str(index)) for index in range(_MESSAGES)]

        found, written = _follow_writers(connect, read, write)
        missed = set(written) - set(found)
        assert not missed, f"the follower missed {len(missed)} of {WRITERS * _MESSAGES} messages"
        assert len(found) == len(set(found))

    def test_a_follower_misses_no_message_that_is_committed_late(self, connect: Connect) -> None:
        """A message that was inserted before another and committed after it is read, too."""
        follower, paused, resume = SessionStore(connect()), threading.Event(), threading.Event()
        for session_id in ("late", "early"):
            follower.sessions.create_session(session_id, "cli")
        late, early = SessionStore(PausedCommits(connect(), paused, resume)), SessionStore(connect())
        with ThreadPoolExecutor(2) as threads:
            try:
                appends = [threads.submit(late.messages.append_message, "late", "user", "inserted first")]
                assert paused.wait(_LONG)
                appends.append(threads.submit(early.messages.append_message, "early", "user", "committed first"))
                # An engine with one writer at a time does not commit it before the other.
                wait(appends[1:], timeout=_MAX_OVERTAKING)
                batch = follower.feed.messages_after(START, 10)
            finally:
                resume.set()
            written = [append.result() for append in appends]
        found = [message.id for message in batch.messages]
        found += [message.id for message in follower.feed.messages_after(batch.position, 10).messages]
        assert sorted(found) == sorted(written), f"the follower missed {set(written) - set(found)}"

    def test_a_follower_misses_no_change(self, connect: Connect) -> None:
        """The same is true of changes to sessions."""
        follower = SessionStore(connect())
        for number in range(WRITERS):
            follower.sessions.create_session(f"s{number}", "cli")
        start = position = follower.feed.head().change

        def read() -> list[str]:
            nonlocal position
            changes = follower.feed.changes_after(position, 5)
            position = changes[-1].position if changes else position
            return [change.session_id for change in changes]

        def write(store: SessionStore, number: int) -> list[Any]:
            return [store.titles.set_session_title(f"s{number}", f"{number} {index}") for index in range(_MESSAGES)]

        found, _ = _follow_writers(connect, read, write)
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
            time.sleep(MAX_DELAY)
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
        with pytest.raises(SessionBusyError):
            second.sessions.lock_turn("s", 2 * _POLL)
        assert lock is not None
        lock.release()
        lock = second.sessions.lock_turn("s", 0)
        with pytest.raises(SessionBusyError):
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
                time.sleep(MAX_DELAY)
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

    def test_a_replacement_and_concurrent_appends_agree(self, connect: Connect) -> None:
        """No append is lost: each is in the context or was replaced, and the counters agree with the messages."""
        store = SessionStore(connect())
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "first")

        def append_or_replace(store: SessionStore, number: int) -> list[int]:
            if number < 2:
                new = [{"role": "user", "content": f"new {number} {index}"} for index in range(3)]
                return [message_id for _ in range(2) for message_id in store.replacement.replace_messages("s", new)]
            return [store.messages.append_message("s", "assistant", f"{number} {index}") for index in range(4)]

        written = {message_id for ids in _run_together(connect, append_or_replace) for message_id in ids}
        live = [row["id"] for row in store.messages.get_messages("s")]
        assert set(live) <= written
        with store.engine.reading() as connection:
            rows = dict(connection.execute("SELECT id, rewound FROM messages").fetchall())
        assert written <= set(rows)
        assert {message_id for message_id, rewound in rows.items() if rewound is None} == set(live)
        assert store.maintenance.miscounted_sessions() == []

    def test_conditional_writes_of_an_item_lose_no_update(self, connect: Connect) -> None:
        """Writers that add one to a number and retry after a conflict add up, and each version exists once."""
        rounds = 4

        def count_up(store: SessionStore, number: int) -> int:
            items, conflicts = store.scoped(Scope.of("ana")).items, 0
            for _ in range(rounds):
                while True:
                    item = items.get(("counters",), "k")
                    try:
                        items.put(
                            ("counters",), "k", item.value + 1 if item else 1, version=item.version if item else 0
                        )
                        break
                    except ItemConflictError:
                        conflicts += 1
            return conflicts

        _run_together(connect, count_up)
        items = SessionStore(connect(), Scope.of("ana")).items
        item = items.get(("counters",), "k")
        assert item is not None
        assert (item.value, item.version) == (WRITERS * rounds, WRITERS * rounds)
        assert [each.value for each in items.history(("counters",), "k")] == list(range(1, WRITERS * rounds + 1))

    def test_a_follower_misses_no_item(self, connect: Connect) -> None:
        """It reads while transactions overlap, and ends with every new item exactly once."""
        follower, position = SessionStore(connect()), START

        def read() -> list[str]:
            nonlocal position
            batch = follower.item_feed.messages_after(position, 5)
            position = batch.position
            return [str(message.content) for message in batch.messages]

        def write(store: SessionStore, number: int) -> list[Any]:
            items, written = store.scoped(Scope.of(f"u{number}")).items, []
            for index in range(4):
                items.put(("n",), f"{number}-{index}", index, index=False)
                written.append(items.put(("n",), f"x{number}-{index}", "text"))
            return written

        found, _ = _follow_writers(connect, read, write)
        names = [text.partition("\n")[0] for text in found if text]
        assert sorted(names) == sorted(f"x{number}-{index}" for number in range(WRITERS) for index in range(4))
