"""The service as a process: ready or not, counted, stopped gently, killed without loss."""

import io
import json
import logging
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memoranda.cli.log_file import send_log
from memoranda.models.spending.call_record import CallRecord, store_calls
from memoranda.service.http.app import ACCESS_LOG, TracedApp, create_app
from memoranda.service.http.mount import Mount
from memoranda.service.http.route import Answer, Call, Route
from memoranda.service.http.settings import ServerSettings
from tests.service.http.running_service import RunningService, run_service
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
_OPTIONS: dict[str, Any] = {"timeout": GIVE_UP, "trust_env": False, "verify": False}


def test_a_service_that_cannot_use_its_record_is_not_ready(tmp_path: Path) -> None:
    """503 with the reason, but alive; ready again when the record is back."""
    with run_service(tmp_path / "home") as running:
        client = running.client()
        assert client.get("/readyz").json() == {"status": "ok"}
        running.service.memory.services.close()
        refused = client.get("/readyz")
        assert (refused.status_code, refused.json()["reason"]) == (503, "not_ready")
        assert str(tmp_path) not in refused.text
        assert client.get("/livez").status_code == 200


def test_the_access_log_names_the_request_the_key_the_route_and_the_time(tmp_path: Path) -> None:
    """One line of JSON per request while it is on, without ids of sessions, users or texts."""
    lines = io.StringIO()
    with run_service(tmp_path / "home") as running:
        key = running.key(user="ana")
        client = running.client(key)
        client.get("/livez")
        with send_log(ACCESS_LOG.name, logging.StreamHandler(lines)):
            answer = client.get("/v1/sessions/secret-name")
            client.get("/nowhere")
        client.get("/livez")
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert first.pop("milliseconds") >= 0
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "request_id": answer.headers["x-request-id"],
        "key_id": key.split("_")[1],
        "method": "GET",
        "route": "/v1/sessions/{session_id}",
        "status": 404,
    }
    assert (second["route"], second["status"], second["key_id"]) == ("other", 404, "")


def test_metrics_count_what_was_done(tmp_path: Path) -> None:
    """In the format of Prometheus, by route and never by id."""
    with run_service(tmp_path / "home") as running:
        client = running.client()
        client.post("/v1/sessions", json={"id": "counted"})
        client.post("/v1/sessions/counted/messages", json={"messages": [{"role": "user", "content": "x"}] * 3})
        client.post("/v1/search", json={"query": "x"})
        running.service.memory.sessions.append_message("counted", "user", f"The key is sk-ant-api03-{'a1B2' * 20}.")
        call = CallRecord("review", time.time(), background=True, input_tokens=7, cost_usd=0.5)
        store_calls(running.service.memory.services.ledger._file, [call])
        text = client.get("/metrics").text
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert lines["memoranda_appended_messages_total"] == "3"
        assert lines["memoranda_searches_total"] == "1"
        assert lines["memoranda_follower_lag_messages"] in ("0", "1")
        assert lines["memoranda_redacted_secrets_total"] == "1"
        assert (lines["memoranda_spent_usd_today"], lines["memoranda_spent_tokens_today"]) == ("0.5", "7")
        assert "memoranda_database_connections" not in lines
        assert lines['memoranda_requests_total{method="POST",route="/v1/sessions",status="201"}'] == "1"
        assert "counted" not in text


def test_only_the_home_itself_sees_what_all_users_do(tmp_path: Path) -> None:
    """The counters are not for a key of a tenant or of one user, whatever its scopes are."""
    with run_service(tmp_path / "home") as running:
        keys = [
            running.key(),
            running.key(user="ana"),
            running.key(tenant="acme"),
            running.key(tenant="acme", user="x"),
        ]
        answers = [running.client(key).get("/metrics").status_code for key in keys]
    assert answers == [200, 403, 403, 403]


def test_a_client_that_hangs_up_leaves_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not even one that sent its next requests before the answer to the first."""
    with run_service(tmp_path / "home", mounts=(_slow_mount(),)) as running:
        raw = b"GET /slow?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection(running.address, timeout=GIVE_UP) as connection:
            connection.sendall(raw * 3)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_until(lambda: not running.server.server_state.tasks)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def _sleepy(call: Call) -> Answer:
    time.sleep(call.query["seconds"] / 1_000)
    return Answer({"status": "awake"})


def _slow_mount() -> Mount:
    from memoranda.service.http.shapes import Field, Whole

    query = (Field("seconds", Whole(), "", required=True),)
    return Mount("slow", (Route("GET", "/slow", "slow", "read", _sleepy, "", query=query, for_user=False),))


def test_a_running_request_is_answered_before_the_service_stops(tmp_path: Path) -> None:
    """New connections are refused meanwhile."""
    with run_service(tmp_path / "home", mounts=(_slow_mount(),)) as running:
        answers: list[int] = []
        client = running.client()
        thread = threading.Thread(
            target=lambda: answers.append(client.get("/slow", params={"seconds": 500}).status_code)
        )
        thread.start()
        wait_until(lambda: running.server.server_state.tasks)
        running.server.stop()
        thread.join(GIVE_UP)
        assert answers == [200]


def test_a_request_that_takes_too_long_gets_an_answer(tmp_path: Path) -> None:
    """503 that says what to do; one that finds no place to wait gets it at once."""
    settings = ServerSettings(rate=0, threads=1, max_waiting=0, request_seconds=0.2)
    with run_service(tmp_path / "home", settings, (_slow_mount(),)) as running:
        slow = running.client().get("/slow", params={"seconds": 2_000})
        assert (slow.status_code, slow.json()["reason"]) == (503, "too_slow")
        # The abandoned work still occupies the only thread.
        refused = running.client().get("/slow", params={"seconds": 1})
        assert (refused.status_code, refused.json()["reason"]) == (503, "overloaded")


def test_a_mount_has_its_own_form_of_problems(tmp_path: Path) -> None:
    """The keys and limits are those of the service."""
    mount = Mount("other", _slow_mount().routes, render_problem=lambda problem, request_id: {"error": problem.detail})
    with run_service(tmp_path / "home", mounts=(mount,)) as running:
        refused = running.client(running.key("read")).get("/slow")
        assert (refused.status_code, list(refused.json())) == (422, ["error"])
        refused = running.client().get("/slow", params={"seconds": 1})
        assert (refused.status_code, list(refused.json())) == (401, ["error"])


def test_a_span_names_the_route_and_no_id(shared_service: RunningService) -> None:
    """Spans are sent nowhere unless the environment names a collector."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    entrance = create_app(shared_service.service)
    assert not isinstance(entrance._app, TracedApp)  # type: ignore[attr-defined]
    entrance._app = TracedApp(entrance._app, provider)  # type: ignore[attr-defined]

    async def ask() -> int:
        transport = httpx.ASGITransport(app=entrance)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = {"X-API-Key": shared_service.key("read", user="traced")}
            return (await client.get("/v1/sessions/secret-id", headers=headers)).status_code

    import asyncio

    # The threads of the shared service belong to another event loop.
    shared = shared_service.service.workers
    assert asyncio.run(ask()) == 404
    assert shared_service.service.workers is shared
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/sessions/{session_id}"
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.response.status_code": 404,
        "http.route": "/v1/sessions/{session_id}",
    }


class _Process:
    """`memoranda server serve` as a process of its own, which can be killed and started again on the same port."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        options = ["--home", str(self._home), "--port", self._port, "--json", "--rate", "0"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "memoranda", "serve", *options], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        assert self._process.stdout is not None
        text = ""
        for line in self._process.stdout:
            text += line
            if line == "}\n":
                break
        self.url = json.loads(text)["url"]
        self._port = self.url.rsplit(":", 1)[1]

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        assert self._process is not None and self._process.stdout is not None
        self._process.send_signal(number)
        self._process.stdout.close()
        return self._process.wait(GIVE_UP)


def _append_until_accepted(url: str, body: Any, headers: dict[str, str]) -> None:
    """What a client with retries does."""
    with httpx.Client(**_OPTIONS) as client:
        deadline = time.monotonic() + GIVE_UP
        while True:
            try:
                answer = client.post(f"{url}/v1/sessions/s/messages", json=body, headers=headers)
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
                continue
            assert answer.status_code == 201, answer.text
            return


def append_through_kills(home: Path, count: int, kills: int) -> list[str]:
    """Append messages one by one with Idempotency-Keys while the service is killed; returns their recorded texts."""
    process = _Process(home)
    process.start()
    httpx.post(f"{process.url}/v1/sessions", json={"id": "s"}, **_OPTIONS).raise_for_status()
    todo, lock = iter(range(count)), threading.Lock()
    done: list[int] = []

    def work() -> None:
        while True:
            with lock:
                number = next(todo, None)
            if number is None:
                return
            body = {"messages": [{"role": "user", "content": f"message {number}"}]}
            _append_until_accepted(process.url, body, {"Idempotency-Key": f"key-{number}"})
            done.append(number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(kills):
        while len(done) < (number + 1) * count // (kills + 1) and any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
        process.kill()
        process.start()
    for thread in threads:
        thread.join(GIVE_UP)
    assert len(done) == count
    exported = httpx.get(f"{process.url}/v1/export", **_OPTIONS).json()
    assert process.kill(signal.SIGTERM) == 0
    return [message["content"] for message in exported["messages"]]


def test_a_killed_service_leaves_every_retried_message_once(tmp_path: Path) -> None:
    """`python -m tests.torture.service_kills` does the same with 10,000 messages."""
    texts = append_through_kills(tmp_path / "home", 60, kills=2)
    assert sorted(texts) == sorted(f"message {number}" for number in range(60))


def test_the_commands_of_the_guide_run(tmp_path: Path) -> None:
    """As they stand, with the address and the key of a running service."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    page = (ROOT / "docs" / "how-to" / "run-the-http-service.md").read_text()
    blocks = [block.split("```")[0] for block in page.split("```bash\n")[1:]]
    with run_service(tmp_path / "home") as running:
        environment = os.environ | {"URL": running.url, "KEY": running.key(), "MEMORANDA_HOME": str(tmp_path / "other")}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        result = subprocess.run(
            ["bash", "-c", "set -eo pipefail\n" + "\n".join(blocks)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 0, result.stderr + result.stdout[-2_000:]
    assert "Undid change 2 (replace) in USER.md." in result.stdout
    assert "memoranda_follower_lag_messages 0" in result.stdout
