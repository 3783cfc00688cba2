"""Two services over one PostgreSQL server: each learns at once what the other records."""

import json
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from memoranda.service.http import service as feed_watch
from memoranda.storage.postgres import engine
from memoranda.storage.postgres.notifications import Watch
from tests.service.http.running_service import RunningService, run_service
from tests.timing import GIVE_UP


def _say(node: RunningService, text: str) -> None:
    message = {"role": "user", "content": text}
    answer = node.client().post("/v1/sessions/s/messages", json={"messages": [message]})
    assert answer.status_code == 201, answer.text


def test_a_node_learns_of_the_messages_of_another_without_a_poll(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stream sends them, and its index has them before any search asks."""
    monkeypatch.setattr(feed_watch, "_POLL_SECONDS", 10 * GIVE_UP)
    monkeypatch.setattr(engine, "Watch", partial(Watch, poll_seconds=10 * GIVE_UP))
    with ExitStack() as stack:
        nodes = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "config.yaml").write_text(f"store:\n  url: {postgres_url}\n")
            nodes.append(stack.enter_context(run_service(tmp_path / name)))
        one, two = nodes
        assert one.client().post("/v1/sessions", json={"id": "s"}).status_code == 201
        said, received = [0], threading.Event()

        def talk() -> None:
            # What is said before the other node listens is not announced to it.
            while not received.wait(0.2):
                said[0] += 1
                _say(one, f"the heron has port {said[0]}")

        with two.client().stream("GET", "/v1/feed/stream") as stream:
            lines = stream.iter_lines()
            next(lines)
            talking = threading.Thread(target=talk)
            talking.start()
            try:
                data = next(line for line in lines if line.startswith("data"))
            finally:
                received.set()
                talking.join(GIVE_UP)
        event = json.loads(data.partition(": ")[2])
        assert event["message"]["content"].startswith("the heron has port")
        index, deadline = two.service.memory.sessions.index, time.monotonic() + GIVE_UP
        while index.state().indexed.row < event["message"]["id"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        found = two.client().post("/v1/search", json={"query": "heron"}).json()
        assert found["count"] == 1
