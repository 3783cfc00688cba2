"""A record on a server through restarts, outages, forks and killed clients."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoranda.errors import ConfigError, StorageError, StoreUnavailableError
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.postgres.connection import PostgresConnection
from tests.storage.postgres.servers import Server
from tests.timing import GIVE_UP, without_waiting


@pytest.fixture
def store(postgres_url: str) -> Iterator[SessionStore]:
    with open_store(postgres_url) as opened:
        opened.sessions.create_session("s", "cli")
        yield opened


@pytest.mark.slow
def test_appends_survive_immediate_restarts(own_postgres_server: Server) -> None:
    """Four writers append while the server crashes four times: every message is stored exactly once."""
    restarted = threading.Event()
    with own_postgres_server.schema() as url, open_store(url, wait=GIVE_UP) as store:
        for number in range(4):
            store.sessions.create_session(f"s{number}", "cli")

        def write(number: int) -> int:
            count = 0
            while not restarted.is_set() or count < 50:
                store.messages.append_message(f"s{number}", "user", f"{count}")
                count += 1
                time.sleep(0.002)
            return count

        with ThreadPoolExecutor(4) as threads:
            writing = [threads.submit(write, number) for number in range(4)]
            try:
                for _ in range(4):
                    time.sleep(0.2)
                    own_postgres_server.control("-m", "immediate", "restart")
            finally:
                restarted.set()
            counts = [each.result() for each in writing]
        for number, count in enumerate(counts):
            texts = [row["content"] for row in store.messages.get_messages(f"s{number}")]
            assert texts == [str(index) for index in range(count)]
        assert store.maintenance.miscounted_sessions() == []


@pytest.mark.slow
@pytest.mark.parametrize(("others", "outcome"), [(0, "rolled the change back"), (50, "is not known whether")])
def test_a_number_that_a_crashed_server_gave_again_proves_no_commit(
    own_postgres_server: Server, others: int, outcome: str
) -> None:
    """The crash lost a transaction, and another one with its number was committed: the first was not saved."""
    with own_postgres_server.schema() as url, open_store(url, wait=GIVE_UP) as store:
        engine = store.engine
        with pytest.raises(StorageError, match=outcome), engine.writing() as connection:
            engine.lock_session(connection, "s")
            assert isinstance(connection, PostgresConnection)
            own_postgres_server.control("-m", "immediate", "restart")
            for _ in range(others):
                own_postgres_server.admin("SELECT pg_current_xact_id()")
            ((status,),) = own_postgres_server.admin(
                "SELECT CASE WHEN %s::xid8 < pg_snapshot_xmax(pg_current_snapshot()) THEN pg_xact_status(%s::xid8) END",
                (connection.transaction_id,) * 2,
            )
            assert status == ("committed" if others else None)


@pytest.mark.slow
def test_an_outage_is_an_error_and_ends_by_itself(own_postgres_server: Server) -> None:
    """While the server is away calls fail in bounded time; when it is back, the next call succeeds."""
    with own_postgres_server.schema() as url, open_store(url, wait=0.5) as store:
        store.sessions.create_session("s", "cli")
        own_postgres_server.control("-m", "fast", "stop")
        for call in (
            lambda: store.messages.append_message("s", "user", "lost"),
            lambda: store.messages.get_messages("s"),
            lambda: store.sessions.create_session("t", "cli"),
            lambda: open_store(url),
        ):
            with without_waiting(), pytest.raises(StoreUnavailableError, match="cannot be reached"):
                call()
        own_postgres_server.control("start")
        deadline = time.monotonic() + GIVE_UP
        while True:
            try:
                store.messages.append_message("s", "user", "back")
                break
            except StorageError:
                assert time.monotonic() < deadline
        assert [row["content"] for row in store.messages.get_messages("s")] == ["back"]


def test_a_forked_child_refuses_an_open_store_and_opens_its_own(store: SessionStore, postgres_url: str) -> None:
    """Parent and child record at the same time, and the end of the child ends no connection of the parent."""
    store.messages.append_message("s", "user", "before")
    with store.engine.reading() as connection:
        connection.execute("SELECT 1")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with pytest.raises(StorageError, match="Open Memoranda after the fork"):
                    store.messages.append_message("s", "user", "lost")
                store.close()
                with open_store(postgres_url) as own:
                    own.messages.append_message("s", "user", "child")
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    store.messages.append_message("s", "user", "parent")
    assert [row["content"] for row in store.messages.get_messages("s")] == ["before", "child", "parent"]


def test_the_turn_of_a_killed_process_is_free(store: SessionStore, postgres_url: str) -> None:
    """The server notices that its connection ended."""
    script = """
import sys, time
from memoranda.memory.record.store import open_store
store = open_store(sys.argv[1])
lock = store.sessions.lock_turn("s", 10)
print("locked", flush=True)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", script, postgres_url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(StorageError):
            store.sessions.lock_turn("s", 0)
        process.send_signal(signal.SIGKILL)
        store.sessions.lock_turn("s", GIVE_UP).release()


def test_a_held_turn_occupies_no_connection_of_the_pool(postgres_url: str) -> None:
    """With a pool of one connection, many turns are held while messages are recorded."""
    with open_store(f"{postgres_url}&pool=1") as store:
        held = [store.sessions.lock_turn(f"s{number}", 0) for number in range(20)]
        store.sessions.create_session("s1", "cli")
        store.messages.append_message("s1", "user", "hello")
        assert len(held) == 20


def test_a_pool_that_is_in_use_is_an_error_in_bounded_time(postgres_url: str) -> None:
    """The error says that the server is fine, and how to permit more connections."""
    with open_store(f"{postgres_url}&pool=1", wait=0.3) as store:
        entered, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with store.engine.reading() as connection:
                connection.execute("SELECT 1")
                entered.set()
                leave.wait(GIVE_UP)

        with ThreadPoolExecutor(1) as threads:
            holding = threads.submit(hold)
            entered.wait(GIVE_UP)
            with without_waiting(), pytest.raises(StoreUnavailableError, match="pool="):
                store.sessions.get_session("s")
            leave.set()
            holding.result()
        assert store.sessions.get_session("s") is None


def test_any_text_survives_on_the_way_through_the_engine(store: SessionStore) -> None:
    """NUL, halves of surrogate pairs and the escape itself, one by one and many at once."""
    texts = ["a\0b", "\x1a", "\x1a0", "\ud800", "x\udfff\0\x1a1\ud83d", "\U0001f600", ""]
    with store.engine.writing() as connection:
        connection.execute("CREATE TEMPORARY TABLE texts (number bigint, content text)")
        connection.executemany("INSERT INTO texts VALUES (?, ?)", list(enumerate(texts)))
        connection.execute("INSERT INTO texts VALUES (?, ?)", (99, texts[4]))
        rows = connection.execute("SELECT content FROM texts ORDER BY number").fetchall()
        assert [content for (content,) in rows] == [*texts, texts[4]]
        found = connection.execute("SELECT count(*) FROM texts WHERE content = ?", (texts[4],)).fetchone()
        assert found == (2,)


def test_a_pooler_in_transaction_mode_needs_the_schema_of_the_role(postgres_server: Server, postgres_url: str) -> None:
    """A session keeps no setting there, so the role must have it; the error says how to set it."""
    url = f"{postgres_url}&pgbouncer=true"
    with pytest.raises(ConfigError, match=r"ALTER ROLE memoranda SET search_path = t_\w+"):
        open_store(url)
    schema = postgres_url.rpartition("=")[2]
    postgres_server.admin(f"CREATE ROLE {schema} LOGIN")
    postgres_server.admin(f"GRANT CREATE ON DATABASE postgres TO {schema}")
    postgres_server.admin(f"ALTER ROLE {schema} SET search_path = {schema}")
    with open_store(url.replace("memoranda@", f"{schema}@")) as store:
        store.sessions.create_session("s", "cli")
        for number in range(5):
            store.messages.append_message("s", "user", str(number))
        assert len(store.messages.get_messages("s")) == 5
