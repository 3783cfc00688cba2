"""Threads that write at the same time share a transaction; each continues when its write is durable."""

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import LockTimeoutError, SessionError
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.sqlite.engine import SqliteEngine
from tests.storage.interrupts import interrupted_at, moments
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    with open_store(tmp_path / "state.db", wait=GIVE_UP) as opened:
        opened.sessions.create_session("s", "cli")
        yield opened


def engine_of(store: SessionStore) -> SqliteEngine:
    assert isinstance(store.engine, SqliteEngine)
    return store.engine


def wait_for_waiting(store: SessionStore, count: int) -> None:
    wait_until(lambda: len(engine_of(store).waiting.requests) >= count, every=0.001)


@contextmanager
def waiting_writers(store: SessionStore, *calls: Callable[[], Any]) -> Iterator[list[Future[Any]]]:
    """Call functions that write in threads of their own, and let them all wait for one transaction."""
    with ThreadPoolExecutor(len(calls)) as threads:
        with store.engine.writing():
            futures = []
            for number, call in enumerate(calls):
                futures.append(threads.submit(call))
                wait_for_waiting(store, number + 1)
        yield futures


@contextmanager
def statements(store: SessionStore) -> Iterator[list[str]]:
    """The statements that the connection that writes executes."""
    executed: list[str] = []
    connection = engine_of(store)._writer
    assert connection is not None
    connection.set_trace_callback(executed.append)
    yield executed
    connection.set_trace_callback(None)


def append(store: SessionStore, text: str, session: str = "s") -> Callable[[], int]:
    return lambda: store.messages.append_message(session, "user", text)


def texts(store: SessionStore) -> list[str]:
    return [message["content"] for message in store.messages.get_messages("s")]


def test_writes_that_wait_share_one_commit(store: SessionStore) -> None:
    """Twenty threads, one sync of the disk; each gets the id of its own message, in the order of waiting."""
    names = [f"message {number}" for number in range(20)]
    with statements(store) as executed, waiting_writers(store, *(append(store, name) for name in names)) as futures:
        ids = [future.result(GIVE_UP) for future in futures]
    # One of them is the transaction that all waited for.
    assert executed.count("COMMIT") == 2
    assert ids == sorted(set(ids))
    assert texts(store) == names


def test_a_write_that_fails_fails_alone(store: SessionStore) -> None:
    """The error reaches its own thread, and the others' messages are stored once."""
    calls = [append(store, "one"), append(store, "lost", "unknown"), append(store, "two"), append(store, "three")]
    with waiting_writers(store, *calls) as futures:
        for number in (0, 2, 3):
            futures[number].result(GIVE_UP)
        with pytest.raises(SessionError, match="unknown"):
            futures[1].result(GIVE_UP)
    assert sorted(texts(store)) == ["one", "three", "two"]


def test_a_first_write_that_fails_takes_no_other_with_it(store: SessionStore) -> None:
    """Also if it is the one that leads the transaction."""
    with waiting_writers(store, append(store, "lost", "unknown"), append(store, "one")) as futures:
        with pytest.raises(SessionError, match="unknown"):
            futures[0].result(GIVE_UP)
        futures[1].result(GIVE_UP)
    assert texts(store) == ["one"]


def test_an_error_of_the_database_is_not_shared(store: SessionStore) -> None:
    """After a failed commit each write is repeated alone."""
    failures = iter([True])

    def refuse_once(action: int, *_: object) -> int:
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_INSERT and next(failures, False) else sqlite3.SQLITE_OK

    def refused() -> int:
        return engine_of(store).write(refuse)

    def refuse(connection: Any) -> int:
        connection.set_authorizer(refuse_once)
        try:
            connection.execute("INSERT INTO state_meta (key, value) VALUES ('tried', '1')")
        finally:
            connection.set_authorizer(None)
        return 1

    with waiting_writers(store, append(store, "one"), refused, append(store, "two")) as futures:
        for future in futures:
            future.result(GIVE_UP)
    assert sorted(texts(store)) == ["one", "two"]


def test_a_thread_that_waits_too_long_says_so(tmp_path: Path) -> None:
    """It records nothing later."""
    with open_store(tmp_path / "state.db", wait=0.2) as store:
        store.sessions.create_session("s", "cli")
        with ThreadPoolExecutor(1) as threads, store.engine.writing():
            late = threads.submit(append(store, "late"))
            with pytest.raises(LockTimeoutError):
                late.result(GIVE_UP)
        append(store, "next")()
        assert texts(store) == ["next"]


@pytest.mark.slow
def test_an_interrupt_of_the_thread_that_commits_loses_and_repeats_nothing(store: SessionStore) -> None:
    """Wherever it comes, the messages of the threads that wait are stored, and none of them twice."""
    said: list[str] = []

    def attempt(name: str, run: Callable[[Callable[[], object]], Any]) -> Any:
        def work(connection: Any) -> None:
            # The others wait before the transaction takes them; no interrupt comes to what the test does.
            profile = sys.getprofile()
            sys.setprofile(None)
            for number in range(2):
                said.append(f"{name} {number}")
                others.append(threads.submit(append(store, said[-1])))
            wait_for_waiting(store, 2)
            sys.setprofile(profile)

        others: list[Future[int]] = []
        with ThreadPoolExecutor(2) as threads:
            result = run(lambda: engine_of(store).write(work))
            for other in others:
                other.result(GIVE_UP)
        return result

    last = attempt("first", moments)
    assert last > 40
    for step in range(1, last + 5):
        attempt(f"step {step}", lambda write: interrupted_at(step, write))  # noqa: B023
    found = texts(store)
    assert len(found) == len(set(found))
    assert set(said) == set(found)


def test_threads_write_all_they_have(store: SessionStore) -> None:
    """Without waiting for each other on purpose."""
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        for count in range(25):
            append(store, f"{number}-{count}")()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = texts(store)
    assert sorted(found) == sorted(f"{number}-{count}" for number in range(8) for count in range(25))
    for number in range(8):
        own = [text for text in found if text.startswith(f"{number}-")]
        assert own == [f"{number}-{count}" for count in range(25)]
    session = store.sessions.get_session("s")
    assert session is not None
    assert session["message_count"] == 200
