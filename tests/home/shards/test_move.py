"""Shards move between two servers while their users work: no write is lost, none is in two places, ids stay."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from memoranda.errors import ConfigError, MovedUserError, StorageError
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.recorded_turns import TurnMarks, completed_turns, ids_of, read_turn
from memoranda.external.outbox.schema import outbox_database, read_position
from memoranda.home.shards.directory import Directory
from memoranda.home.shards.move import MoveProgress, ShardMove
from memoranda.home.shards.placement import MAX_STORES, SHARDS, shard_expression, shard_of
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.position import START
from memoranda.upkeep.home_tables import component_schemas
from tests.storage.postgres.servers import Server
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

USERS = [f"user {number}" for number in range(12)] + ["", "O'Hara", "日本", "a\0b"]


@contextmanager
def _fleet(*servers: Server) -> Iterator[tuple[Directory, list[SessionStore], list[str]]]:
    with ExitStack() as stack:
        urls = [stack.enter_context(server.schema()) for server in servers]
        stores = [stack.enter_context(open_store(url)) for url in urls]
        directory = Directory(urls)
        stack.callback(directory.close)
        yield directory, stores, urls


def _scoped(store: SessionStore, user: str) -> SessionStore:
    return store.scoped(Scope.of(user or None))


def _record(store: SessionStore, user: str, texts: list[str]) -> None:
    scoped = _scoped(store, user)
    session = f"session of {user!r}"
    if scoped.sessions.get_session(session) is None:
        scoped.sessions.create_session(session, "test", user_id=user or None)
    for text in texts:
        scoped.messages.append_message(session, "user", text)


def _texts(store: SessionStore, user: str) -> list[tuple[int, str]]:
    session = f"session of {user!r}"
    return [(row["id"], row["content"]) for row in _scoped(store, user).messages.get_messages(session)]


def _move(directory: Directory, shard: int, target: int) -> MoveProgress:
    return ShardMove(directory, shard, target, wait=lambda _: directory.refresh()).run()


def test_python_and_the_server_agree_on_shards(postgres_server: Server) -> None:
    """For every kind of user id; the hash of a user never changes."""
    with postgres_server.schema() as url, open_store(url) as store, store.engine.reading() as connection:
        for user in USERS:
            (shard,) = connection.execute(f"SELECT {shard_expression('?::text')}", (user,)).fetchone()
            assert shard == shard_of(user)
    assert [shard_of(user) for user in (None, "ana", "日本")] == [25, 6, 38]
    assert len({shard_of(f"u{number}") for number in range(2_000)}) == SHARDS


@pytest.mark.smoke
def test_a_moved_shard_has_all_rows_with_their_ids(postgres_server: Server) -> None:
    """Only the users of the shard move; what remains of them in the old store is nothing."""
    with _fleet(postgres_server, postgres_server) as (directory, (first, second), _):
        for user in USERS:
            _record(first, user, [f"{user} says {number}" for number in range(3)])
        before = {user: _texts(first, user) for user in USERS}
        shard = shard_of(USERS[0])
        moved = [user for user in USERS if shard_of(user) == shard]
        assert _move(directory, shard, 1).users == len(moved)
        for user in USERS:
            number = directory.store_of(user or None)
            assert number == int(user in moved)
            assert _texts((first, second)[number], user) == before[user]
            assert _texts((first, second)[1 - number], user) == []
        _record(second, USERS[0], ["written after the move"])
        assert _texts(second, USERS[0])[-1][0] % MAX_STORES == 1
        assert _move(directory, shard, 0).users == len(moved)
        assert len(_texts(first, USERS[0])) == 4


def test_an_empty_shard_moves_in_less_than_two_seconds(postgres_server: Server) -> None:
    """And a person sees that it moves before it waits; a user who comes meanwhile moves with it."""
    with _fleet(postgres_server, postgres_server) as (directory, (first, second), _):
        done: list[float | MoveProgress] = []
        ShardMove(directory, 3, 1, report=done.append, wait=done.append).run()
        assert done[0] == MoveProgress()
        assert sum(seconds for seconds in done if isinstance(seconds, float)) < 2
        user = USERS[0]

        def record(_: float) -> None:
            _record(first, user, [] if _texts(first, user) else ["written while the nodes learn of the move"])

        assert ShardMove(directory, shard_of(user), 1, wait=record).run().users == 1
        assert len(_texts(second, user)) == 1
        assert _texts(first, user) == []


def test_the_outbox_of_a_moved_user_continues_where_it_was(postgres_server: Server, tmp_path: Path) -> None:
    """Its jobs move, and what was recorded and not read yet is after its position in the new store."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(postgres_server.schema()) for _ in range(2))
        first, second = (stack.enter_context(open_store(url)) for url in (one, other))
        directory = stack.enter_context(closing(Directory([one, other], component_schemas())))
        outboxes = [stack.enter_context(closing(Outbox(tmp_path, server_url=url))) for url in (one, other)]
        _record(first, "ada", ["read", "read, too"])
        outboxes[0].put("p", "turn", "s", {}, {}, scope="ada", key="k")
        _record(first, "ada", ["not read"])
        _move(directory, shard_of("ada"), 1)
        _record(second, "ada", ["after the move"])
        tables = stack.enter_context(closing(outbox_database(tmp_path, other)))
        with tables.open().acting_for("ada").reading() as connection:
            position = read_position(connection, "p", "ada").messages
        found = _scoped(second, "ada").feed.messages_after(position, 10).messages
        assert [message.content for message in found] == ["not read", "after the move"]
        assert outboxes[1].backlog("p", "ada").waiting == 1
        with pytest.raises(MovedUserError):
            outboxes[0].put("p", "turn", "s", {}, {}, scope="ada", key="late")


def test_a_turn_that_was_not_queued_before_a_move_is_delivered_after_it(postgres_server: Server) -> None:
    """A node recorded a turn and died; the user moves twice, and the last store still takes the turn for its own."""
    servers = (postgres_server, postgres_server, postgres_server)
    with _fleet(*servers) as (directory, stores, _):
        recording = _scoped(stores[0], "ana")
        turns = TurnMarks(lambda: recording, ["p"])
        recording.sessions.create_session("chat", "test", user_id="ana")
        first = recording.messages.append_message("chat", "user", "Where?", **turns.mark(None, done=False))
        recording.messages.append_message("chat", "assistant", "There.", **turns.mark(first, done=True))
        for target in (1, 2):
            _move(directory, shard_of("ana"), target)
        here = _scoped(stores[2], "ana")
        (found,) = completed_turns(here, ids_of(here), "p", START)
        assert (found.session_id, found.first_message) == ("chat", first)
        content = read_turn(here, "chat", first, found.last_message or 0)
        assert content is not None
        assert content[0] == {"user_content": "Where?", "assistant_content": "There."}
        # A copy that another user imports was completed in another store.
        exported = here.transfer.export_session("chat")
        assert exported is not None
        other = _scoped(stores[2], "ben")
        other.transfer.import_sessions([{**exported, "id": "copy", "user_id": "ben"}])
        assert other.messages.get_messages("copy")
        assert completed_turns(other, ids_of(other), "p", START) == []


def test_a_node_that_does_not_know_of_a_move_cannot_write(postgres_server: Server) -> None:
    """Neither for a user who has moved nor for a new user of a shard that has."""
    with _fleet(postgres_server, postgres_server) as (directory, (first, second), _):
        _record(first, "ana", ["before"])
        same_shard = next(name for name in map(str, range(10_000)) if shard_of(name) == shard_of("ana"))
        _move(directory, shard_of("ana"), 1)
        for user in ("ana", same_shard):
            with pytest.raises(MovedUserError, match="moved to store 1"):
                _scoped(first, user).sessions.create_session(f"new of {user}", "test", user_id=user)
        _scoped(second, same_shard).sessions.create_session("here", "test", user_id=same_shard)


def test_writers_lose_nothing_while_their_shard_moves(postgres_server: Server) -> None:
    """They write where the directory says, try again when a store refuses, and each acknowledged text is there once."""
    users = [name for name in map(str, range(10_000)) if shard_of(name) == 5][:6]
    with _fleet(postgres_server, postgres_server) as (directory, stores, _):
        acknowledged: dict[str, list[str]] = {user: [] for user in users}
        stop = threading.Event()
        failures: list[BaseException] = []

        def write(user: str) -> None:
            try:
                while not stop.is_set():
                    text = f"{user}: {len(acknowledged[user])}"
                    _write_where_it_belongs(directory, stores, user, text)
                    acknowledged[user].append(text)
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=write, args=(user,)) for user in users]
        for thread in threads:
            thread.start()
        try:
            for target in (1, 0, 1):
                _wait_for_writes(acknowledged)
                ShardMove(directory, 5, target, wait=lambda _: _wait_for_writes(acknowledged)).run()
                _wait_for_writes(acknowledged)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not failures
        for user in users:
            assert [text for _, text in _texts(stores[1], user)] == acknowledged[user]
            assert _texts(stores[0], user) == []


def _write_where_it_belongs(directory: Directory, stores: list[SessionStore], user: str, text: str) -> None:
    deadline = time.monotonic() + GIVE_UP
    while True:
        try:
            return _record(stores[directory.store_of(user)], user, [text])
        except MovedUserError:
            assert time.monotonic() < deadline
            directory.refresh()


def _wait_for_writes(acknowledged: dict[str, list[str]]) -> None:
    goals = {user: len(texts) + 2 for user, texts in acknowledged.items()}
    wait_until(lambda: all(len(acknowledged[user]) >= goal for user, goal in goals.items()))


_KILLED = """
import os, signal, sys
from memoranda.home.shards.directory import Directory
from memoranda.home.shards.move import ShardMove
*urls, shard, steps = sys.argv[1:]
seen = 0
def kill(progress):
    global seen
    seen += 1
    if seen == int(steps):
        os.kill(os.getpid(), signal.SIGKILL)
ShardMove(Directory(urls), int(shard), 1, report=kill, wait=lambda _: None).run()
"""


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13])
def test_a_killed_move_is_repeated_and_completes(postgres_server: Server, steps: int) -> None:
    """Whichever step it was killed in, users are readable where the directory says, and nothing is there twice."""
    users = [name for name in map(str, range(10_000)) if shard_of(name) == 5][:3]
    with _fleet(postgres_server, postgres_server) as (directory, stores, urls):
        for user in users:
            _record(stores[0], user, ["one", "two"])
        before = {user: _texts(stores[0], user) for user in users}
        done = subprocess.run([sys.executable, "-c", _KILLED, *urls, "5", str(steps)], env=os.environ, check=False)
        assert done.returncode in (-signal.SIGKILL, 0)
        directory.refresh()
        for user in users:
            assert _texts(stores[directory.store_of(user)], user) == before[user]
        _move(directory, 5, 1)
        for user in users:
            assert _texts(stores[1], user) == before[user]
            assert _texts(stores[0], user) == []


def test_a_shard_moves_from_the_oldest_server_to_the_newest(
    postgres_server: Server, oldest_postgres_server: Server
) -> None:
    """And back."""
    with _fleet(oldest_postgres_server, postgres_server) as (directory, stores, _):
        _record(stores[0], "ana", ["hello"])
        before = _texts(stores[0], "ana")
        _move(directory, shard_of("ana"), 1)
        assert _texts(stores[1], "ana") == before
        _move(directory, shard_of("ana"), 0)
        assert _texts(stores[0], "ana") == before


def test_stores_keep_their_numbers(postgres_server: Server) -> None:
    """Another order of the URLs, or one URL twice, is refused: users would be looked for in the wrong place."""
    with _fleet(postgres_server, postgres_server) as (_, _, urls):
        with pytest.raises(ConfigError, match="twice"):
            Directory([urls[0], urls[0]])
        with postgres_server.schema() as third, open_store(third), pytest.raises(ConfigError, match="same order"):
            Directory([urls[0], third])
        with postgres_server.schema() as empty, pytest.raises(ConfigError, match="no record yet"):
            Directory([urls[0], empty])


def test_a_login_that_sees_all_rows_cannot_move_users(postgres_server: Server) -> None:
    """A superuser is exempt from row-level security, so a move would copy everyone's rows for each user."""
    with postgres_server.schema() as first, postgres_server.schema() as second:
        urls = [url.replace("memoranda@", "postgres@", 1) for url in (first, second)]
        with open_store(urls[0]), open_store(urls[1]):
            directory = Directory(urls)
            try:
                with pytest.raises(StorageError, match="superuser"):
                    _move(directory, 5, 1)
            finally:
                directory.close()
