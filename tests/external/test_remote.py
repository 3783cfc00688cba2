"""The HTTP client of providers, against a real service that is slow, huge, broken or angry.

The circuit breaker opens after failures, lets one probe through, and closes after a success.
"""

import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external import remote_connection
from memoranda.external.remote import CircuitBreaker, RemoteClient
from tests.external.http_service import Exchange, Service, serving
from tests.timing import GIVE_UP, HANG, without_waiting

pytestmark = pytest.mark.slow

KEY = "sk-verysecretkey0123456789"


_clients: list[RemoteClient] = []


def _client(service: Service, **options: Any) -> RemoteClient:
    headers = {"Authorization": f"Bearer {KEY}"}
    _clients.append(RemoteClient("acme", f"{service.url}/api", headers=headers, **{"timeout": GIVE_UP, **options}))
    return _clients[-1]


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    yield
    while _clients:
        _clients.pop().close()


def test_json_goes_out_and_comes_back() -> None:
    """Under the base path, with the query, the headers and the key that a vendor wants."""
    with serving(lambda exchange: exchange.answer(200, {"echo": json.loads(exchange.body)})) as service:
        client = _client(service)
        text = "Grüße, 日本語 \ud800"
        answer = client.post(
            "v1/memories", {"text": text}, query={"user": "ana b", "tag": ["x", "y"]}, idempotency_key="k1"
        )
        client.close()
    assert answer == {"echo": {"text": "Grüße, 日本語 ?"}}
    ((method, path, headers, _),) = service.requests
    assert (method, path) == ("POST", "/api/v1/memories?user=ana+b&tag=x&tag=y")
    assert (headers["Authorization"], headers["Idempotency-Key"]) == (f"Bearer {KEY}", "k1")
    assert headers["Content-Type"] == "application/json"


def test_bytes_go_out_and_come_back_as_they_are() -> None:
    """With the type that the caller names, if it asks for anything but JSON; refusals are errors as ever."""
    with serving(lambda exchange: exchange.answer(200, exchange.body[::-1])) as service:
        headers = {"Content-Type": "application/x-file", "Accept": "*/*"}
        answer = _client(service).request("PUT", "/files/1", b"\x00\xff{", headers=headers)
    assert answer == b"{\xff\x00"
    assert service.requests[0][2]["Content-Type"] == "application/x-file"
    with serving(lambda exchange: exchange.answer(404, b"gone")) as service, pytest.raises(PermanentProviderError):
        _client(service).get("/files/1", headers={"Accept": "*/*"})


def test_an_empty_answer_is_none() -> None:
    """As a service gives to a deletion."""
    with serving(lambda exchange: exchange.answer(204, b"")) as service:
        assert _client(service).request("DELETE", "v1/memories/a/b c") is None
    assert service.requests[0][1] == "/api/v1/memories/a/b%20c"


@pytest.mark.parametrize("status", [301, 302, 400, 401, 402, 403, 404, 409, 410, 413, 422])
def test_what_repeating_cannot_help_is_permanent(status: int) -> None:
    """It is sent once, and the error says what happened and what to do; its status is for the provider."""
    with serving(lambda exchange: exchange.answer(status, {"detail": "no"}, Location="http://elsewhere")) as service:
        with pytest.raises(PermanentProviderError, match=rf"GET /api/x at 127\.0\.0\.1: {status} .*no") as caught:
            _client(service).get("x")
        assert caught.value.status == status
        assert len(service.requests) == 1


def test_a_refused_key_says_which_command_sets_another() -> None:
    """The person who reads the status can act on it."""
    with (
        serving(lambda exchange: exchange.answer(401, {})) as service,
        pytest.raises(PermanentProviderError, match="'memoranda provider setup acme' sets others"),
    ):
        _client(service).get("x")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_temporary_and_repeated_where_that_is_safe(status: int) -> None:
    """A GET, and a POST that has a key or only reads; another POST is sent once."""
    with serving(lambda exchange: exchange.answer(status, {})) as service:
        client = _client(service)
        for method, options, count in (
            ("GET", {}, 3),
            ("POST", {"idempotency_key": "k"}, 3),
            ("POST", {"retry_safe": True}, 3),
            ("POST", {}, 1),
        ):
            service.requests.clear()
            with pytest.raises(TemporaryProviderError, match=str(status)):
                client.request(method, "x", **options)
            assert len(service.requests) == count


def test_a_service_that_recovers_is_not_noticed() -> None:
    """The second attempt counts."""
    answers = iter([503, 200])
    with serving(lambda exchange: exchange.answer(next(answers), {"n": 1})) as service:
        assert _client(service).get("x") == {"n": 1}


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        (lambda: "500", 500, 500),
        (lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=500), usegmt=True), 400, 501),
        (lambda: format_datetime(datetime.now(UTC) - timedelta(seconds=90), usegmt=True), 0, 0),
    ],
)
def test_retry_after_is_read_as_seconds_and_as_a_date(header: Callable[[], str], least: float, most: float) -> None:
    """It travels with the error; a wait that does not fit into the deadline is not slept through."""
    error = pytest.raises(TemporaryProviderError)
    refuse = serving(lambda exchange: exchange.answer(429, {}, Retry_After=header()))
    with refuse as service, without_waiting(), error as caught:
        _client(service).get("x")
    assert caught.value.retry_after is not None
    assert least <= caught.value.retry_after <= most


@pytest.mark.parametrize("header", ["soon", "-5", "1e9", "", "99999999999999999999 GMT"])
def test_a_retry_after_that_makes_no_sense_is_ignored(header: str) -> None:
    """The error is temporary all the same."""
    with (
        serving(lambda exchange: exchange.answer(503, {}, Retry_After=header)) as service,
        pytest.raises(TemporaryProviderError) as caught,
    ):
        _client(service).post("x", {})
    assert caught.value.retry_after is None


def _drip_headers(exchange: Exchange) -> None:
    exchange.wfile.write(b"HTTP/1.1 200 OK\r\n")
    _drip(exchange, b"X: y\r\n")


def _drip_body(exchange: Exchange) -> None:
    exchange.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    _drip(exchange, b" ")


def _drip(exchange: Exchange, data: bytes) -> None:
    try:
        while not exchange.server.ended.wait(0.02):
            exchange.wfile.write(data)
            exchange.wfile.flush()
    except OSError:
        exchange.close_connection = True


def _silence(exchange: Exchange) -> None:
    exchange.server.ended.wait(HANG)
    exchange.close_connection = True


@pytest.mark.parametrize("respond", [_drip_headers, _drip_body, _silence])
def test_a_deadline_is_for_the_whole_call(respond: Callable[[Exchange], None]) -> None:
    """However the time is spent: in silence, or byte by byte."""
    error = pytest.raises(TemporaryProviderError, match="no answer in time")
    with serving(respond) as service, without_waiting(), error:
        _client(service, timeout=0.4).get("x")


def _endless(exchange: Exchange) -> None:
    exchange.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        while True:
            exchange.wfile.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
    except OSError:
        exchange.close_connection = True


@pytest.mark.parametrize("respond", [lambda exchange: exchange.answer(200, b"x" * 300_000), _endless])
def test_a_huge_answer_is_not_read_to_its_end(respond: Callable[[Exchange], None]) -> None:
    """Neither one that says how long it is nor one that never ends; it is not asked for again at once."""
    with serving(respond) as service:
        with pytest.raises(TemporaryProviderError, match="larger than 100,000 bytes"):
            _client(service, max_bytes=100_000).get("x")
        assert len(service.requests) == 1


@pytest.mark.parametrize(
    "respond",
    [
        Exchange.reset,
        lambda exchange: exchange.raw(b""),
        lambda exchange: exchange.raw(b"hello, I speak no HTTP\r\n\r\n"),
        lambda exchange: exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"),
        lambda exchange: exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf"),
        lambda exchange: exchange.raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"),
        lambda exchange: exchange.answer(200, b"<html>Please log in</html>"),
        lambda exchange: exchange.answer(200, b"\xff\xfe{"),
        lambda exchange: exchange.answer(200, b"[" * 100_000),
    ],
)
def test_a_broken_answer_is_a_temporary_error(respond: Callable[[Exchange], None]) -> None:
    """Whatever is in the way between us and the service may be gone the next time."""
    with serving(respond) as service:
        with pytest.raises(TemporaryProviderError, match="POST /api/x at"):
            _client(service).post("x", {})
        assert len(service.requests) == 1


def test_no_connection_is_a_temporary_error() -> None:
    """Nothing listens there."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(TemporaryProviderError, match="Connection refused"):
        RemoteClient("acme", f"http://127.0.0.1:{port}", timeout=2.0).get("x")


def test_no_secret_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    """A service that repeats the key in its error, in its status line or in a redirect."""

    def respond(exchange: Exchange) -> None:
        exchange.send_response(500, f"Bad {KEY}")
        exchange.send_header("Content-Length", "0")
        exchange.end_headers()

    caplog.set_level(logging.DEBUG)
    with serving(lambda exchange: exchange.answer(400, ("x" * 290 + KEY).encode())) as service:
        client = _client(service, secrets=["another-secret-value"])
        with pytest.raises(PermanentProviderError) as first:
            client.get("x", query={"token": KEY})
        service.respond = respond
        with pytest.raises(TemporaryProviderError) as second:
            client.get("path/another-secret-value")
        service.respond = lambda exchange: exchange.answer(403, {"got": exchange.headers["X-Acme-Token"]})
        with pytest.raises(PermanentProviderError) as third:
            client.get("x", headers={"X-Acme-Token": "one-request-only-value"})
    shown = f"{first.value} {second.value} {third.value} {caplog.text}"
    assert KEY[:12] not in shown
    assert "one-request-only" not in shown
    assert "another-secret-value" not in shown


def test_a_credential_that_http_cannot_carry_is_not_shown() -> None:
    """The exception of the library would show it."""
    with serving(lambda exchange: exchange.answer(200, {})) as service:
        for key in (f"{KEY}\nX: y", f"{KEY}日本"):
            client = RemoteClient("acme", service.url, headers={"Authorization": key})
            with pytest.raises(PermanentProviderError, match="characters that HTTP does not allow") as caught:
                client.get("x")
            assert KEY not in str(caught.value)
            assert caught.value.__cause__ is not None
            assert caught.value.__cause__.__cause__ is None


@pytest.mark.parametrize(
    "url", ["", "acme.example", "ftp://acme.example", "https://user:pw@acme.example", "https://a?b=c", "http://[::1"]
)
def test_an_address_that_cannot_be_used_is_refused_at_once(url: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ProviderError, match="acme"):
        RemoteClient("acme", url)


def test_plain_http_is_for_this_machine() -> None:
    """Credentials do not cross a network in the clear unless that is asked for."""
    with pytest.raises(ProviderError, match="https://"):
        RemoteClient("acme", "http://acme.example")
    RemoteClient("acme", "http://acme.example", allow_http=True).close()
    RemoteClient("acme", "http://localhost:8000").close()
    RemoteClient("acme", "https://acme.example").close()


def test_a_connection_is_kept_for_requests_that_may_be_repeated() -> None:
    """A request that must arrive once gets a fresh one; a kept one that the server closed is replaced unnoticed."""
    with serving(lambda exchange: exchange.answer(200, {})) as service:
        client = _client(service)
        for _ in range(3):
            client.get("x")
        assert len(service.peers) == 1
        client.post("x", {})
        assert len(service.peers) == 2

        def close_after(exchange: Exchange) -> None:
            exchange.answer(200, {})
            exchange.close_connection = True

        service.respond = close_after
        client.get("x")
        time.sleep(0.05)
        assert client.get("x") == {}
        client.close()
        with pytest.raises(TemporaryProviderError, match="closed"):
            client.get("x")


def test_a_forked_process_opens_its_own_connection() -> None:
    """Two processes on one connection would read each other's answers."""
    with serving(lambda exchange: exchange.answer(200, {"path": exchange.path})) as service:
        client = _client(service)
        client.get("parent")
        child = os.fork()
        if child == 0:
            os._exit(0 if client.get("child") == {"path": "/api/child"} else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.get("parent") == {"path": "/api/parent"}
    assert len(service.peers) == 2


def test_many_threads_share_a_client() -> None:
    """Each gets the answer to its own question."""
    wrong: list[object] = []
    with serving(lambda exchange: exchange.answer(200, {"path": exchange.path})) as service:
        client = _client(service)

        def ask(number: int) -> None:
            for turn in range(10):
                answer = client.get(f"{number}/{turn}")
                if answer != {"path": f"/api/{number}/{turn}"}:
                    wrong.append(answer)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
    assert wrong == []
    assert len(service.requests) == 80


def test_recall_stops_asking_a_service_that_keeps_failing() -> None:
    """After three failures nothing is sent; deliveries still are, and a probe that works closes the breaker."""
    with serving(lambda exchange: exchange.answer(400, {})) as service:
        clock = [0.0]
        client = _client(service, recall_breaker=CircuitBreaker(3, 30.0, clock=lambda: clock[0]))
        for _ in range(3):
            with pytest.raises(PermanentProviderError):
                client.recall("POST", "search", {"query": "q"})
        with pytest.raises(TemporaryProviderError, match="asked again in 30 seconds"):
            client.recall("POST", "search", {"query": "q"})
        assert len(service.requests) == 3
        service.respond = lambda exchange: exchange.answer(200, {"results": []})
        assert client.post("memories", {}) == {"results": []}
        clock[0] = 30.0
        assert client.recall("POST", "search", {"query": "q"}) == {"results": []}
        assert client.recall("POST", "search", {"query": "q"}) == {"results": []}


def test_what_json_cannot_say_is_a_permanent_error() -> None:
    """It would fail again."""
    with serving(lambda exchange: exchange.answer(200, {})) as service:
        for body in ({"n": float("nan")}, {"x": object()}):
            with pytest.raises(PermanentProviderError, match="cannot be written as JSON"):
                _client(service).post("x", body)
        assert service.requests == []


def test_a_client_costs_no_import_before_its_first_request() -> None:
    """A provider can be listed, configured and checked without the network's modules."""
    program = (
        "import sys; from memoranda.external.remote import RemoteClient;"
        "RemoteClient('acme', 'https://acme.example').close();"
        "assert not {'http.client', 'ssl', 'memoranda.external.remote_connection'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate cannot be made")
def test_tls_is_verified_and_has_the_same_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that this machine does not trust is refused; a trusted one works, until the deadline."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    with serving(lambda exchange: exchange.answer(200, {"size": len(exchange.body)})) as service:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        service.socket = context.wrap_socket(service.socket, server_side=True)
        client = RemoteClient("acme", f"https://localhost:{service.server_address[1]}", timeout=GIVE_UP)
        _clients.append(client)
        with pytest.raises(TemporaryProviderError, match="CERTIFICATE_VERIFY_FAILED"):
            client.post("x", {})
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(remote_connection, "_tls_context", lambda: trusting)
        assert client.post("x", {"text": "y" * 300_000})["size"] > 300_000
        service.respond = _drip_body
        with pytest.raises(TemporaryProviderError, match="no answer in time"):
            client.get("x", timeout=0.4)


class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def _ask(breaker: CircuitBreaker, failure: Exception | None = None) -> str:
    """What happens to a call that fails, if there is a failure: done, failed, or how long it must wait."""

    def call() -> str:
        if failure is not None:
            raise failure
        return "done"

    try:
        return breaker.run(call, "Acme")
    except PermanentProviderError:
        return "failed"
    except TemporaryProviderError as error:
        return "failed" if error is failure else f"{error.retry_after:.0f} s"


_REFUSED = PermanentProviderError("no")


def _busy(seconds: float) -> TemporaryProviderError:
    return TemporaryProviderError("busy", seconds)


def test_it_opens_after_enough_failures_in_a_row(clock: _Clock) -> None:
    """A success in between starts the count from zero."""
    breaker = CircuitBreaker(3, 30.0, clock=clock)
    outcomes = [_ask(breaker, failure) for failure in (_REFUSED, _REFUSED, None, _REFUSED, _REFUSED, _REFUSED, None)]
    assert outcomes == ["failed", "failed", "done", "failed", "failed", "failed", "30 s"]


def test_one_probe_at_a_time_decides(clock: _Clock) -> None:
    """Other calls wait for its result: a failure opens it again at once, a success closes it."""
    breaker = CircuitBreaker(1, 30.0, clock=clock)
    assert _ask(breaker, _REFUSED) == "failed"
    clock.now += 30.0
    assert breaker.run(lambda: _ask(breaker), "Acme") == "0 s"
    assert [_ask(breaker), _ask(breaker, _REFUSED), _ask(breaker)] == ["done", "failed", "30 s"]
    clock.now += 30.0
    assert [_ask(breaker, _REFUSED), _ask(breaker)] == ["failed", "30 s"]
    clock.now += 30.0
    assert [_ask(breaker), _ask(breaker)] == ["done", "done"]


def test_a_service_that_says_how_long_to_wait_gets_nothing_for_that_long(clock: _Clock) -> None:
    """At its first failure, and never for less than the usual time."""
    breaker = CircuitBreaker(3, 30.0, clock=clock)
    assert [_ask(breaker, _busy(0.0)), _ask(breaker, _busy(120.0)), _ask(breaker)] == ["failed", "failed", "120 s"]
    clock.now += 119.0
    assert _ask(breaker) == "1 s"
    clock.now += 1.0
    assert [_ask(breaker, _busy(1.0)), _ask(breaker)] == ["failed", "30 s"]
