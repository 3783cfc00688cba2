"""Processes that share a record on a server learn of each other's commits."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.storage.position import START
from memoranda.storage.postgres.engine import PostgresEngine
from memoranda.storage.postgres.notifications import Watch
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.smoke


@pytest.fixture
def nodes(postgres_url: str, tmp_path: Path) -> Iterator[tuple[SessionDB, SessionDB]]:
    """Two nodes with a record and an index each."""
    with (
        SessionDB(postgres_url, index_directory=tmp_path / "one") as one,
        SessionDB(postgres_url, index_directory=tmp_path / "two") as two,
    ):
        one.create_session("s", "cli", user_id="ann")
        yield one, two


def test_a_node_indexes_what_another_records(nodes: tuple[SessionDB, SessionDB]) -> None:
    """Without a search that asks for it."""
    one, two = nodes
    noticed = threading.Event()
    one.follow_others()
    two.follow_others(noticed.set)
    message_id = one.append_message("s", "user", "hello")
    assert noticed.wait(GIVE_UP)
    wait_until(lambda: two.index.state().indexed.row >= message_id)


def test_a_notification_comes_before_the_next_poll(nodes: tuple[SessionDB, SessionDB]) -> None:
    """And a process is not called for its own."""
    engine = nodes[0].engine
    assert isinstance(engine, PostgresEngine)
    pool = engine._state.pool
    own, other = threading.Event(), threading.Event()
    sender, receiver = Watch(pool, own.set, poll_seconds=GIVE_UP), Watch(pool, other.set, poll_seconds=GIVE_UP)
    try:

        def is_noticed() -> bool:
            sender.announce()
            return other.wait(0.05)

        wait_until(is_noticed)
        assert not own.is_set()
    finally:
        sender.close()
        receiver.close()


def test_a_watch_that_cannot_listen_polls(nodes: tuple[SessionDB, SessionDB]) -> None:
    """Nothing is missed for longer than an interval, although no notification arrives."""
    engine = nodes[0].engine
    assert isinstance(engine, PostgresEngine)
    called = threading.Semaphore(0)
    watch = Watch(engine._state.pool, called.release, poll_seconds=0.02)
    try:
        for _ in range(3):
            assert called.acquire(timeout=GIVE_UP)
    finally:
        watch.close()


def test_the_feed_of_one_user_has_an_index(nodes: tuple[SessionDB, SessionDB]) -> None:
    """A node that serves a few users reads their messages only."""
    one, _ = nodes
    one.create_session("t", "cli", user_id="bob")
    one.create_session("u", "cli")
    for session_id in "stu":
        one.append_message(session_id, "user", f"of {session_id}")
    for user, expected in (("ann", "of s"), ("bob", "of t"), (None, "of u")):
        own = one.scoped(Scope.of(user))
        assert [message.content for message in own.messages_after(START, 10).messages] == [expected]
