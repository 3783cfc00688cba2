"""An append to a record on a server takes one round trip, and is stored once whatever happens to its connection."""

import secrets
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from memoranda.errors import ContinuedError, SessionError
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.safety.redaction import Redactor
from tests.storage.postgres.proxy import Proxy
from tests.storage.postgres.servers import Server

pytestmark = pytest.mark.smoke


@pytest.fixture
def proxy(postgres_server: Server) -> Iterator[Proxy]:
    proxy = Proxy(postgres_server.directory)
    yield proxy
    proxy.close()


@pytest.fixture
def store(postgres_server: Server, postgres_url: str, proxy: Proxy) -> Iterator[SessionStore]:
    """A store with one session, which reaches its server through the proxy."""
    schema = postgres_url.rpartition("=")[2]
    old, new = (quote(str(path), safe="") for path in (postgres_server.directory, proxy.directory))
    url = f"{postgres_url.replace(old, new)}&application_name={schema}"
    with open_store(url, redactor=Redactor()) as opened:
        opened.sessions.create_session("s", "cli", user_id="ann")
        for number in range(5):
            # By then the statement is prepared on the pooled connection.
            opened.messages.append_message("s", "user", f"warm {number}")
            opened.messages.append_messages("s", [{"role": "user", "content": "warm"}] * 2)
        yield opened


def test_an_append_takes_one_round_trip(store: SessionStore, proxy: Proxy) -> None:
    """Ten appends, ten round trips: the lock, the counters, the row and the commit travel together."""
    proxy.round_trips = -1
    for number in range(10):
        store.messages.append_message("s", "user", f"message {number}")
    assert proxy.round_trips + 1 == 10


def test_an_append_of_one_user_takes_one_round_trip(store: SessionStore, proxy: Proxy) -> None:
    """The barrier between users costs none, nor does the check that the conversation was not continued."""
    own = store.scoped(Scope.of("ann"))
    for _ in range(4):
        own.messages.append_messages("s", [{"role": "user", "content": "warm"}], fail_if_continued=True)
    proxy.round_trips = -1
    for number in range(10):
        own.messages.append_messages("s", [{"role": "user", "content": f"m {number}"}], fail_if_continued=True)
    assert proxy.round_trips + 1 == 10


def test_a_group_of_messages_takes_one_round_trip(store: SessionStore, proxy: Proxy) -> None:
    """However many there are, and with external ids."""
    for size in (2, 30):
        group = [{"role": "user", "content": str(n), "external_id": secrets.token_hex(8)} for n in range(size)]
        for _ in range(4):
            store.messages.append_messages("s", [{**row, "external_id": secrets.token_hex(8)} for row in group])
        proxy.round_trips = -1
        ids = store.messages.append_messages("s", group)
        assert proxy.round_trips + 1 == 1
        assert [store.messages.get_message(number)["content"] for number in ids] == [str(n) for n in range(size)]  # type: ignore[index]


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_lost_connection_stores_an_append_once(store: SessionStore, proxy: Proxy, lost: str) -> None:
    """The caller sees no error, whether the server got the statement or not."""
    before = len(store.messages.get_messages("s"))
    proxy.lose = lost
    message_id = store.messages.append_message("s", "user", "important")
    assert not proxy.lose
    messages = store.messages.get_messages("s")
    assert [row["id"] for row in messages if row["content"] == "important"] == [message_id]
    assert len(messages) == before + 1
    assert store.maintenance.miscounted_sessions() == []


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_lost_connection_stores_a_group_once(store: SessionStore, proxy: Proxy, lost: str) -> None:
    """All of it, in order, with the ids that were stored."""
    proxy.lose = lost
    ids = store.messages.append_messages("s", [{"role": "user", "content": f"part {n}"} for n in range(5)])
    stored = [row for row in store.messages.get_messages("s") if str(row["content"]).startswith("part")]
    assert [(row["id"], row["content"]) for row in stored] == [(ids[n], f"part {n}") for n in range(5)]


@pytest.mark.parametrize("lost", ["request", "answer"])
@pytest.mark.parametrize("moment", [b"BEGIN", b"advisory", b"COMMIT"])
def test_a_lost_connection_stores_a_repeated_external_id_once(
    store: SessionStore, proxy: Proxy, lost: str, moment: bytes
) -> None:
    """Such an append needs a transaction; it is repeated unless the server says that it was committed."""
    first = store.messages.append_message("s", "user", "imported", external_id="e")
    proxy.lose_after, proxy.lose = moment, lost
    again = store.messages.append_messages(
        "s", [{"role": "user", "content": "imported", "external_id": "e"}, {"role": "user", "content": "next"}]
    )
    assert not proxy.lose
    assert again[0] == first
    assert [row["content"] for row in store.messages.get_messages("s")].count("imported") == 1
    assert [row["content"] for row in store.messages.get_messages("s")].count("next") == 1


@pytest.mark.slow
def test_dead_connections_are_replaced(store: SessionStore, postgres_server: Server) -> None:
    """After the server has ended all connections, reads and writes continue without an error."""
    for _ in range(10):
        ended = postgres_server.admin(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            (store.engine.address.schema,),  # type: ignore[attr-defined]
        )
        assert ended
        count = len(store.messages.get_messages("s"))
        store.messages.append_message("s", "user", "after the cut")
        assert len(store.messages.get_messages("s")) == count + 1
        store.sessions.create_session(f"other {count}", "cli")


def test_refusals_are_those_of_a_file(store: SessionStore) -> None:
    """An unknown session, another user's session and a continued one are refused, and nothing is counted."""
    with pytest.raises(SessionError, match="There is no session 'x'"):
        store.messages.append_message("x", "user", "hello")
    bob = store.scoped(Scope.of("bob"))
    with pytest.raises(SessionError, match="There is no session 's'"):
        bob.messages.append_message("s", "user", "hello")
    last = store.messages.append_message("s", "user", "last")
    store.rotation.rotate_session("s", "next", [], last_seen=last)
    with pytest.raises(ContinuedError):
        store.messages.append_messages("s", [{"role": "user", "content": "late"}], fail_if_continued=True)
    assert store.maintenance.miscounted_sessions() == []


def test_removed_secrets_are_counted(store: SessionStore) -> None:
    """In the same statement that stores the rest."""
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    store.messages.append_message("s", "user", f"my key is {secret}")
    store.messages.append_message("s", "user", f"again {secret}")
    assert store.usage.get_meta("redacted_secrets") == "2"
    assert all(secret not in str(row["content"]) for row in store.messages.get_messages("s"))
