"""The service with its record on PostgreSQL: the same answers, the same isolation, and several nodes as one service."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from memoranda.home import config
from memoranda.service.http.settings import ServerSettings
from memoranda.storage.postgres import pool
from memoranda.support.home import Home
from tests.service.http import example_home
from tests.service.http.running_service import RunningService, run_service
from tests.service.http.test_isolation import CHECKED, add_victim, check_stranger, check_victim
from tests.service.http.test_openapi import replay_examples
from tests.storage.postgres.servers import Server
from tests.timing import GIVE_UP


@contextmanager
def _node(home: Path, url: str, settings: ServerSettings | None = None) -> Iterator[RunningService]:
    """A service whose record is on a server."""
    home.mkdir()
    config.set_value(Home.at(home), "store.url", url)
    with run_service(home, settings) as running:
        yield running


@pytest.mark.slow
def test_every_example_is_true_on_a_server(tmp_path: Path, postgres_url: str) -> None:
    """The answers are those of a record in a file."""
    with _node(tmp_path / "home", postgres_url) as running:
        example_home.fill(running.service)
        replay_examples(running.client())


@pytest.mark.slow
def test_no_route_shows_or_changes_what_belongs_to_another_user_on_a_server(tmp_path: Path, postgres_url: str) -> None:
    """Each route, with all ids of another user of the same tenant; forgetting has tests of its own."""
    with _node(tmp_path / "home", postgres_url) as running:
        victim = add_victim(running, "acme")
        stranger = running.client(running.key(tenant="acme", user="bob"))
        for route in CHECKED:
            if route.name not in ("feed_stream", "forget"):
                check_stranger(stranger, victim, route)
        check_victim(running, victim, "acme")


def _append(client: httpx.Client, key: str, text: str = "once") -> httpx.Response:
    body = {"messages": [{"role": "user", "content": text}]}
    return client.post("/v1/sessions/s/messages", json=body, headers={"Idempotency-Key": key})


@pytest.mark.slow
def test_two_nodes_are_one_service(tmp_path: Path, postgres_url: str) -> None:
    """What one did is not done again by the other, a key of one is a key of the other, and both find everything."""
    with _node(tmp_path / "a", postgres_url) as node_a, _node(tmp_path / "b", postgres_url) as node_b:
        key = node_a.key(user="ana")
        first, second = node_a.client(key), node_b.client(key)
        first.post("/v1/sessions", json={"id": "s"}).raise_for_status()
        answers = [_append(client, "k") for client in (first, second, first)]
        assert [answer.status_code for answer in answers] == [201, 201, 201]
        assert len({answer.text for answer in answers}) == 1
        assert [answer.headers.get("idempotent-replayed") for answer in answers] == [None, "true", "true"]
        assert _append(second, "k", "another").json()["reason"] == "key_reused"

        # As after a kill between the append and the stored answer.
        with node_a.service.database.open().writing() as connection:
            connection.execute("DELETE FROM answers")
        assert _append(second, "k").json() == answers[0].json()

        _append_at_once(first, second)
        texts = [message["content"] for message in second.get("/v1/sessions/s/messages").json()["messages"]]
        assert sorted(texts) == [*(f"at once {number}" for number in range(5)), "once"]
        found = second.post("/v1/search", json={"query": "once"}).json()
        assert [hit["session_id"] for hit in found["results"]] == ["s"]


def _append_at_once(*clients: httpx.Client) -> None:
    """Send the same requests to several nodes at the same time."""
    with ThreadPoolExecutor(len(clients)) as threads:
        for number in range(5):
            answers = list(threads.map(lambda client, n=number: _append(client, f"key-{n}", f"at once {n}"), clients))
            assert [answer.status_code for answer in answers] == [201] * len(clients), answers
            assert len({answer.text for answer in answers}) == 1


@pytest.mark.slow
def test_a_service_without_its_server_says_so_and_recovers(tmp_path: Path, own_postgres_server: Server) -> None:
    """Alive all the time, not ready within seconds, and ready again when the server is, without a restart."""
    with _node(tmp_path / "home", own_postgres_server.url("memoranda")) as running:
        client = running.client()
        client.post("/v1/sessions", json={"id": "s"}).raise_for_status()
        assert client.get("/readyz").status_code == 200
        assert "memoranda_stores_up 1" in client.get("/metrics").text
        own_postgres_server.control("-m", "fast", "stop")
        # More requests than threads, all of which wait for the server.
        waiting = [threading.Thread(target=_append, args=(running.client(), f"k{number}")) for number in range(10)]
        for thread in waiting:
            thread.start()
        started = time.monotonic()
        refused = client.get("/readyz")
        assert refused.status_code == 503 and refused.headers["retry-after"]
        assert client.get("/livez").status_code == 200
        counters = client.get("/metrics")
        assert "memoranda_stores_up 0" in counters.text, counters.text
        assert 'memoranda_requests_total{method="POST",route="/v1/sessions",status="201"} 1' in counters.text
        assert time.monotonic() - started < GIVE_UP / 2
        own_postgres_server.control("start")
        for thread in waiting:
            thread.join(GIVE_UP)
        deadline = time.monotonic() + GIVE_UP
        while client.get("/readyz").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        answers = [_append(client, f"k{number}") for number in range(10)]
        assert {answer.status_code for answer in answers} == {201}
        assert len(client.get("/v1/sessions/s/messages").json()["messages"]) == 10


@pytest.mark.slow
def test_metrics_show_the_connections_to_the_server(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many there are, and how often and how long requests waited for one."""
    # Pools that other tests of this process still hold do not count.
    monkeypatch.setattr(pool, "_pools", {})
    with _node(tmp_path / "home", f"{postgres_url}&pool=1", ServerSettings(rate=0, threads=4)) as running:
        client = running.client()
        client.post("/v1/sessions", json={"id": "s"}).raise_for_status()
        threads = [threading.Thread(target=_append, args=(running.client(), f"k{number}")) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GIVE_UP)
        text = client.get("/metrics").text
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert lines["memoranda_appended_messages_total"] == "12"
        assert int(lines["memoranda_database_connections"]) == 1
        assert int(lines["memoranda_database_waits_total"]) > 0
        assert float(lines["memoranda_database_wait_seconds_total"]) >= 0
        assert lines["memoranda_follower_lag_messages"] in {str(number) for number in range(13)}
