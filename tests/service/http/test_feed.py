"""The feed over HTTP: pages, long polls and streams, each event once, for one user only."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memoranda.memory.record.scope import Scope
from tests.service.http.running_service import RunningService, run_service
from tests.timing import GIVE_UP, wait_until, without_waiting

pytestmark = pytest.mark.slow


@pytest.fixture
def followed(client: httpx.Client, request: pytest.FixtureRequest) -> tuple[httpx.Client, str]:
    """A client and a session of its user."""
    session_id = f"feed-{request.node.name}"
    client.post("/v1/sessions", json={"id": session_id})
    return client, session_id


def _say(client: httpx.Client, session_id: str, text: str) -> None:
    message = {"role": "user", "content": text}
    assert client.post(f"/v1/sessions/{session_id}/messages", json={"messages": [message]}).status_code == 201


def _texts(events: list[Any]) -> list[str]:
    return [event["message"]["content"] for event in events if event["type"] == "message"]


def test_pages_of_the_feed_have_every_event_once(followed: tuple[httpx.Client, str]) -> None:
    """Also when a client continues from any event within a page."""
    client, session_id = followed
    for number in range(5):
        _say(client, session_id, f"message {number}")
    events = client.get("/v1/feed", params={"start": "beginning"}).json()["events"]
    assert _texts(events) == [f"message {number}" for number in range(5)]
    for index, event in enumerate(events):
        rest = client.get("/v1/feed", params={"cursor": event["cursor"]}).json()["events"]
        assert rest == events[index + 1 :]


def test_a_change_of_a_session_is_an_event(followed: tuple[httpx.Client, str], shared_service: RunningService) -> None:
    """So that a follower reads the session again."""
    client, session_id = followed
    _say(client, session_id, "first")
    cursor = client.get("/v1/feed").json()["cursor"]
    stored = client.get("/v1/sessions").json()["sessions"][0]["id"]
    db = shared_service.service.memory.sessions
    db.scoped(Scope.everyone()).update_session(stored, project="/srv/app")
    events = client.get("/v1/feed", params={"cursor": cursor}).json()["events"]
    assert {(event["type"], event["session_id"]) for event in events} == {("change", session_id)}


def test_the_feed_has_nothing_of_others(followed: tuple[httpx.Client, str], shared_service: RunningService) -> None:
    """Neither messages nor changes."""
    client, session_id = followed
    _say(client, session_id, "mine")
    other = shared_service.client(shared_service.key(user="someone-else"))
    assert "mine" not in other.get("/v1/feed", params={"start": "beginning", "limit": 500}).text
    assert session_id not in other.get("/v1/feed", params={"start": "beginning", "limit": 500}).text


def test_a_long_poll_is_answered_when_something_happens(followed: tuple[httpx.Client, str]) -> None:
    """Long before its time is over; without events it ends in time and says where to continue."""
    client, session_id = followed
    cursor = client.get("/v1/feed").json()["cursor"]
    assert client.get("/v1/feed", params={"cursor": cursor, "wait": 1}).json()["events"] == []
    timer = threading.Timer(0.2, _say, (client, session_id, "now"))
    timer.start()
    answer = client.get("/v1/feed", params={"cursor": cursor, "wait": 60})
    timer.join()
    assert _texts(answer.json()["events"]) == ["now"]
    assert answer.elapsed.total_seconds() < 50


def _events(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if not line:
            if "data" in event:
                yield event
            event = {}
        elif name:
            event[name] = value


def test_a_stream_sends_events_and_continues_where_it_broke_off(followed: tuple[httpx.Client, str]) -> None:
    """Last-Event-ID is the cursor of the last event that the client has."""
    client, session_id = followed
    _say(client, session_id, "one")
    _say(client, session_id, "two")
    with client.stream("GET", "/v1/feed/stream", params={"start": "beginning"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        first = next(_events(stream.iter_lines()))
    assert json.loads(first["data"])["message"]["content"] == "one"
    with client.stream("GET", "/v1/feed/stream", headers={"Last-Event-ID": first["id"]}) as stream:
        events = _events(stream.iter_lines())
        assert json.loads(next(events)["data"])["message"]["content"] == "two"
        _say(client, session_id, "three")
        assert json.loads(next(events)["data"])["message"]["content"] == "three"


def test_a_poll_without_events_waits_as_long_as_it_should(client: httpx.Client) -> None:
    """Although the first look at the feed, and what other users do, wake it before."""
    started = time.monotonic()
    answer = client.get("/v1/feed", params={"wait": 1})
    assert answer.json()["events"] == []
    assert time.monotonic() - started > 0.9


@pytest.mark.parametrize("cursor", ["x", "WyJmZWVkIl0", "WyJmZWVkIiwiYSIsImIiXQ", "WyJtZXNzYWdlcyIsMV0", "é"])
def test_a_cursor_that_is_none_is_refused(client: httpx.Client, cursor: str) -> None:
    """And no fault of the service."""
    answer = client.get("/v1/feed", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["reason"]) == (422, "wrong_cursor")


def test_the_service_stops_although_clients_follow_it(tmp_path: Path) -> None:
    """Streams and long polls end at once."""
    with run_service(tmp_path / "home") as running:
        client = running.client()
        client.post("/v1/sessions", json={"id": "s"})
        polled: list[int] = []
        poll = threading.Thread(
            target=lambda: polled.append(client.get("/v1/feed", params={"wait": 60}, timeout=GIVE_UP).status_code)
        )
        with running.client().stream("GET", "/v1/feed/stream") as stream:
            lines = stream.iter_lines()
            next(lines)
            poll.start()
            wait_until(lambda: running.service.feed.waiting > 1)
            with without_waiting(30.0):
                running.server.stop()
                assert [line for line in lines if line.startswith("data")] == []
                poll.join(GIVE_UP)
        assert polled == [200]
