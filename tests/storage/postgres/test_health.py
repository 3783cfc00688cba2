"""The doctor finds what is wrong with a server although every statement works."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.position import START
from memoranda.storage.postgres import diagnostics
from memoranda.storage.postgres.engine import PostgresEngine
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine
from tests.storage.postgres.servers import Server
from tests.timing import wait_until

pytestmark = pytest.mark.smoke


@pytest.fixture
def store(postgres_url: str) -> Iterator[SessionStore]:
    with open_store(postgres_url) as opened:
        opened.sessions.create_session("s", "cli")
        opened.messages.append_message("s", "user", "hello")
        yield opened


def _engine(store: SessionStore) -> PostgresEngine:
    assert isinstance(store.engine, PostgresEngine)
    return store.engine


@contextmanager
def _open_transaction(server: Server) -> Iterator[None]:
    """Another program's transaction that has written something."""
    with psycopg.connect(server.conninfo("memoranda"), application_name="nightly batch") as other:
        other.execute("SELECT pg_current_xact_id()")
        yield
        other.close()


def test_a_healthy_server_has_no_issue_but_that_it_is_the_tests_server(
    store: SessionStore, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor looks for no file. The tests' server does not wait for its disk, and the doctor says so."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    os.chmod(tmp_path, 0o700)
    (issue,) = [issue for issue in examine(Home.at(tmp_path)) if issue.severity != "note"]
    assert "because fsync, full_page_writes, synchronous_commit are off" in issue.problem


@pytest.mark.slow
def test_a_superuser_is_not_separated_from_users(
    store: SessionStore, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor names the role and what to use instead."""
    assert diagnostics.why_users_are_not_separated(_engine(store)) == ""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url.replace("memoranda@", "postgres@"))
    os.chmod(tmp_path, 0o700)
    (issue,) = [issue for issue in examine(Home.at(tmp_path)) if "row-level security" in issue.problem]
    assert "the role postgres is a superuser" in issue.problem
    assert "BYPASSRLS" in issue.remedy


def test_a_table_without_the_barrier_is_named(store: SessionStore) -> None:
    """Someone may have switched it off with SQL."""
    with store.engine.writing() as connection:
        connection.execute("ALTER TABLE messages NO FORCE ROW LEVEL SECURITY")
    assert diagnostics.why_users_are_not_separated(_engine(store)) == "it is switched off for messages"


@pytest.mark.slow
def test_who_holds_followers_back_is_named(own_postgres_server: Server) -> None:
    """A transaction of any program on the server does, until it ends."""
    with own_postgres_server.schema() as url, open_store(url) as store, _open_transaction(own_postgres_server):
        store.sessions.create_session("s", "cli")
        later = store.messages.append_message("s", "user", "held back")
        assert later not in [message.id for message in store.feed.messages_after(START, 10).messages]
        (found,) = [
            transaction
            for transaction in diagnostics.long_transactions(_engine(store), min_seconds=0)
            if "nightly batch" in transaction.description
        ]
        assert "of memoranda" in found.description
        own_postgres_server.admin(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nightly batch'"
        )
        wait_until(lambda: later in [message.id for message in store.feed.messages_after(START, 10).messages])


def test_a_dump_of_another_server_can_be_followed_again(store: SessionStore) -> None:
    """Its transactions had higher numbers, so followers would wait for this server to reach them."""
    engine = _engine(store)
    assert not diagnostics.was_restored_from_another_server(engine)
    before = store.feed.store_id()
    with engine.writing() as connection:
        connection.execute("UPDATE messages SET xid = '9000000000'")
    assert diagnostics.was_restored_from_another_server(engine)
    diagnostics.renumber_feeds(engine)
    assert not diagnostics.was_restored_from_another_server(engine)
    assert [message.content for message in store.feed.messages_after(START, 10).messages] == ["hello"]
    assert store.feed.store_id() != before
