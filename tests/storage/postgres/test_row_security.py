"""Row-level security keeps users apart even if a statement of the store lacks its condition."""

from collections.abc import Iterator

import pytest

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.connection import Connection
from tests.storage.postgres.servers import Server

pytestmark = pytest.mark.smoke

_COUNTS = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM messages)"


@pytest.fixture
def store(postgres_url: str) -> Iterator[SessionStore]:
    with open_store(postgres_url) as opened:
        for user in ("ann", "bob", None):
            opened.sessions.create_session(f"of {user}", "cli", user_id=user)
            opened.messages.append_message(f"of {user}", "user", f"secret of {user}")
        yield opened


def _counts(connection: Connection) -> tuple[int, int]:
    return tuple(connection.execute(_COUNTS).fetchone())


@pytest.mark.parametrize("user", ["ann", "bob", None, "it's; \\ \x00 \u4f60 *"])
def test_a_statement_without_a_condition_sees_one_user(store: SessionStore, user: str | None) -> None:
    """Reads and writes of a store for one user, and those of the index, which sees all."""
    expected = (1, 1) if user in ("ann", "bob", None) else (0, 0)
    engine = store.scoped(Scope.of(user)).engine
    with engine.reading() as connection:
        assert _counts(connection) == expected
    with engine.writing() as connection:
        assert _counts(connection) == expected
        changed = connection.execute("UPDATE messages SET token_count = 7").rowcount
        assert (connection.execute("DELETE FROM messages").rowcount, changed) == (expected[1], expected[1])
    with store.engine.reading() as connection:
        assert _counts(connection) == (3, 3 - expected[1])


def test_a_view_changes_its_user_and_back(store: SessionStore) -> None:
    """A search reads the index of all users and the messages of one in the same view."""
    ann = store.scoped(Scope.of("ann"))
    with store.engine.reading() as outer:
        with ann.engine.reading() as inner:
            assert _counts(inner) == (1, 1)
        assert _counts(outer) == (3, 3)
    with ann.engine.reading() as outer:
        with store.engine.reading() as inner:
            assert _counts(inner) == (3, 3)
        assert _counts(outer) == (1, 1)


def test_a_connection_that_says_nothing_sees_nothing(store: SessionStore, postgres_server: Server) -> None:
    """Another program with the same login must say for whom it acts."""
    import psycopg

    schema = store.engine.address.schema  # type: ignore[attr-defined]
    with psycopg.connect(postgres_server.conninfo("memoranda"), autocommit=True) as other:
        assert other.execute(f"SELECT count(*) FROM {schema}.messages").fetchone() == (0,)
        other.execute("SET memoranda.acting_for = 'u:ann'")
        assert other.execute(f"SELECT content FROM {schema}.messages").fetchall() == [("secret of ann",)]


def test_no_setting_stays_on_a_connection(store: SessionStore) -> None:
    """A pooled connection that served one user shows nothing to the next statement."""
    ann = store.scoped(Scope.of("ann"))
    ann.messages.append_message("of ann", "user", "more")
    rows = store.engine.write_statement("SELECT count(*) FROM messages", ())
    assert rows == [(0,)]


def test_a_message_belongs_to_the_user_of_its_session(store: SessionStore) -> None:
    """However it was stored, and after its session was given to another user."""
    store.messages.append_messages("of ann", [{"role": "user", "content": "b", "external_id": "e"}] * 2)
    store.rotation.branch_session("of ann", "branch")
    with store.engine.reading() as connection:
        rows = connection.execute("SELECT DISTINCT session_id, user_id FROM messages ORDER BY 1").fetchall()
    assert rows == [("branch", "ann"), ("of None", ""), ("of ann", "ann"), ("of bob", "bob")]
    with store.engine.writing() as connection:
        connection.execute("UPDATE sessions SET user_id = 'cid' WHERE id = 'branch'")
        rows = connection.execute("SELECT DISTINCT user_id FROM messages WHERE session_id = 'branch'").fetchall()
    assert rows == [("cid",)]
