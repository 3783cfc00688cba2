"""Raw requests that no client library sends, through real sockets: each is refused cleanly or answered sensibly."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from memoranda.service.http.settings import ServerSettings
from tests.service.http.running_service import RunningService, run_service
from tests.timing import GIVE_UP

_JSON = b"Content-Type: application/json\r\n"
_HOST = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def hostile_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with short limits."""
    settings = ServerSettings(
        rate=0, max_body_bytes=100_000, max_header_bytes=16_384, header_seconds=0.3, body_seconds=0.3
    )
    home = tmp_path_factory.mktemp("hostile") / "home"
    with run_service(home, settings) as running:
        running.client().post("/v1/sessions", json={"id": "s"}).raise_for_status()
        yield running


def _post(body: bytes, headers: bytes = b"", path: bytes = b"/v1/sessions/s/messages") -> bytes:
    length = (
        b"" if b"ontent-Length" in headers or b"ransfer-Encoding" in headers else b"Content-Length: %d\r\n" % len(body)
    )
    return b"POST " + path + b" HTTP/1.1\r\n" + _HOST + _JSON + length + headers + b"\r\n" + body


def _get(path: bytes, headers: bytes = b"") -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\n" + _HOST + headers + b"\r\n"


def _message(content: bytes) -> bytes:
    return b'{"messages":[{"role":"user","content":' + content + b"}]}"


def _chunked(trailers: bytes, headers: bytes = b"") -> bytes:
    """A good message in two chunks, with fields after them."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (_GOOD[:10], _GOOD[10:]))
    return _post(chunks + b"0\r\n" + trailers + b"\r\n", headers + b"Transfer-Encoding: chunked\r\n")


_MANY = b"".join(b"X-%d: a\r\n" % number for number in range(1_000))
_UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
_H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
_GOOD = _message(b'"hello"')
_DEEP = b"[" * 50_000 + b"]" * 50_000

# Each: a name, the bytes, and the statuses that are a sensible answer; None is a connection that is closed.
CASES: list[tuple[str, bytes, set[int | None]]] = [
    ("two hosts", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", {400}),
    ("no host", b"GET /v1/sessions HTTP/1.1\r\n\r\n", {400}),
    ("an empty host", b"GET /v1/sessions HTTP/1.1\r\nHost:\r\n\r\n", {400, 421}),
    ("another host", b"GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\n\r\n", {421}),
    ("two keys", _get(b"/v1/sessions", b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"), {400}),
    ("two users", _get(b"/v1/sessions", b"X-Memoranda-User: ana\r\nX-Memoranda-User: bob\r\n"), {400}),
    ("two kinds of keys", _get(b"/v1/sessions", b"Authorization: Bearer a\r\nX-API-Key: b\r\n"), {400}),
    ("a huge key", _get(b"/v1/sessions", b"Authorization: Bearer " + b"a" * 9_000 + b"\r\n"), {401}),
    ("a key with strange bytes", _get(b"/v1/sessions", b"Authorization: Bearer \xff\xfe\r\n"), {400, 401}),
    ("two lengths", _post(_GOOD, b"Content-Length: 5\r\nContent-Length: 7\r\n"), {400}),
    ("a negative length", _post(b"", b"Content-Length: -5\r\n"), {400}),
    ("a length in words", _post(b"", b"Content-Length: five\r\n"), {400}),
    ("a length with a plus", _post(_GOOD, b"Content-Length: +%d\r\n" % len(_GOOD)), {400}),
    ("a huge length", _post(b"x", b"Content-Length: 99999999999999999999\r\n"), {400, 413}),
    ("a length above the limit", _post(b"x", b"Content-Length: 100001\r\n"), {413}),
    ("a body that is too short", _post(_GOOD, b"Content-Length: %d\r\n" % (len(_GOOD) + 10)), {400, 408}),
    ("length and chunks", _post(b"0\r\n\r\n", b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), {400}),
    ("chunks and length", _post(b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 60\r\n"), {400}),
    ("unknown chunks", _post(_GOOD, b"Transfer-Encoding: identity, chunked\r\n"), {400, 501}),
    ("strange chunks", _post(b"0\r\n\r\n", b"Transfer-Encoding: xchunked\r\n"), {400, 501}),
    ("a wrong chunk size", _post(b"zz\r\nhello\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"), {400}),
    ("a key in a trailer", _chunked(b"Authorization: Bearer a\r\n"), {431}),
    ("a user in a trailer", _chunked(b"X-Memoranda-User: ana\r\n"), {431}),
    ("a trailer without end", _chunked(b"X-A: " + b"a" * 20_000), {431}),
    ("a chunk extension without end", _post(b"5;" + b"a" * 20_000, b"Transfer-Encoding: chunked\r\n"), {431}),
    ("a space before the colon", b"GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n", {400}),
    ("a folded header", b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c: d\r\n\r\n", {200, 400}),
    ("a header with NUL", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: b\0c\r\n\r\n", {400}),
    ("a bare line feed", b"GET /livez HTTP/1.1\nHost: localhost\n\n", {200, 400}),
    ("huge headers", _get(b"/livez", b"X-A: " + b"a" * 40_000 + b"\r\n"), {400, 431}),
    ("a thousand headers", _get(b"/livez", _MANY), {431}),
    ("a huge path", _get(b"/v1/sessions/" + b"a" * 30_000), {400, 414}),
    ("a path above the root", _get(b"/v1/sessions/../../../etc/passwd"), {404}),
    ("an encoded path above the root", _get(b"/v1/sessions/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), {404}),
    ("a path with NUL", _get(b"/v1/sessions/a%00b"), {404}),
    ("a path that is not UTF-8", _get(b"/v1/sessions/%ff%fe"), {400}),
    ("two slashes", _get(b"//v1//sessions"), {404}),
    ("an absolute address", b"GET http://evil.example/v1/sessions HTTP/1.1\r\n" + _HOST + b"\r\n", {400, 404}),
    ("a query that is not UTF-8", _get(b"/v1/sessions?source=%ff"), {400}),
    ("a query with a thousand parameters", _get(b"/v1/sessions?" + b"&".join([b"a=1"] * 1_000)), {400}),
    ("an unknown method", b"BREW /v1/sessions HTTP/1.1\r\n" + _HOST + b"\r\n", {405}),
    ("an unknown version", b"GET /livez HTTP/9.9\r\n" + _HOST + b"\r\n", {400, 505}),
    ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 50 + b"\r\n\r\n", {400, None}),
    ("a body that is not UTF-8", _post(_message(b'"\xff\xfe"')), {400}),
    ("half a surrogate pair in UTF-8", _post(_message(b'"\xed\xa0\x80"')), {400}),
    ("half a surrogate pair as an escape", _post(_message(rb'"\ud800"')), {201}),
    ("NUL in a text", _post(_message(rb'"a\u0000b"')), {201}),
    ("deep JSON", _post(_message(_DEEP[: 40_000] + _DEEP[-40_000:])), {400}),
    ("a huge number", _post(_message(b"1" * 10_000)), {400}),
    ("an infinite number", _post(_message(b"1e999")), {400}),
    ("not a number", _post(_message(b"NaN")), {400}),
    ("a repeated name", _post(b'{"messages":[],"messages":[{"role":"user","content":"x"}]}'), {400}),
    ("two JSON values", _post(_GOOD + _GOOD), {400}),
    ("an empty body", _post(b""), {400}),
    ("a compressed body", _post(_GOOD, b"Content-Encoding: gzip\r\n"), {415}),
    ("a body that a page may send", _post(_GOOD).replace(b"application/json", b"text/plain"), {415}),
    ("a body where none belongs", _get(b"/v1/sessions", b"Content-Length: 2\r\n") + b"{}", {400}),
    ("an Idempotency-Key with blanks", _post(_GOOD, b"Idempotency-Key: a b\r\n"), {400}),
    ("two Idempotency-Keys", _post(_GOOD, b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n"), {400}),
    ("an upgrade to something else", _get(b"/livez", _UPGRADE), {200, 400, 426}),
    ("an offer of HTTP/2 with a body", _post(_GOOD, _H2C), {201}),
    ("an offer of HTTP/2 with chunks", _chunked(b"", _H2C), {201}),
    ("an offer of HTTP/2 with a trailer", _chunked(b"X-A: b\r\n", _H2C), {431}),
    ("a tunnel", b"CONNECT localhost:80 HTTP/1.1\r\n" + _HOST + b"\r\n", {400}),
    ("an expectation that nothing meets", _get(b"/livez", b"Expect: 200-maybe\r\n"), {200, 417}),
]  # fmt: skip


def _exchange(running: RunningService, raw: bytes) -> tuple[int | None, bytes]:
    """Send bytes, and return the status and the body of the first answer."""
    with socket.create_connection(running.address, timeout=GIVE_UP) as connection:
        received = b""
        try:
            connection.sendall(raw)
            while b"\r\n\r\n" not in received or not _is_complete(received):
                part = connection.recv(65_536)
                if not part:
                    break
                received += part
        except (ConnectionResetError, BrokenPipeError):
            pass
    if not received.startswith(b"HTTP/1.1 "):
        return None, received
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def _is_complete(received: bytes) -> bool:
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(lengths) and len(body) >= int(lengths[0].partition(b":")[2])


@pytest.mark.slow
def test_a_hostile_request_is_refused_cleanly(hostile_target: RunningService) -> None:
    """With the right status; the answer has no traceback, and the service answers the next request."""
    for raw, accepted in [case[1:] for case in CASES]:
        status, body = _exchange(hostile_target, raw)
        assert status in accepted, body
        assert b"Traceback" not in body
        assert hostile_target.clients[0].get("/livez").status_code == 200


def test_there_are_enough_hostile_requests() -> None:
    """At least as many as were asked for."""
    assert len(CASES) >= 38


def test_a_smuggled_request_is_not_answered(hostile_target: RunningService) -> None:
    """What follows a refused request on the connection is not a request."""
    smuggled = b"0\r\n\r\nDELETE /v1/sessions/s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    _exchange(hostile_target, _post(smuggled, b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"))
    assert hostile_target.clients[0].get("/v1/sessions/s").status_code == 200


def test_headers_that_never_end_close_the_connection(hostile_target: RunningService) -> None:
    """One byte now and then does not hold a connection open."""
    with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\n")
        _send_until_closed(connection, b"X-A: b\r\n")


def _send_until_closed(connection: socket.socket, part: bytes) -> None:
    deadline = time.monotonic() + GIVE_UP
    while time.monotonic() < deadline:
        try:
            connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            return
        time.sleep(0.02)
    raise AssertionError("the connection stayed open")


def test_a_header_that_never_ends_is_refused(hostile_target: RunningService) -> None:
    """431 or 400 as soon as it is too large, and not when it is complete."""
    endless = b"GET /livez HTTP/1.1\r\n" + _HOST + b"X-A: "
    with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
        connection.sendall(endless + b"a" * 10_000)
        with suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(b"a" * 10_000)
        assert connection.recv(100).split()[1] in (b"400", b"431")


def test_many_requests_use_one_connection(hostile_target: RunningService) -> None:
    """Also when the next one is sent before the answer, in pieces that end anywhere."""
    with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
        requests = _post(_GOOD) + _get(b"/livez") + _post(_GOOD)
        for start in range(0, len(requests), 40):
            connection.sendall(requests[start : start + 40])
        received = b""
        while received.count(b"HTTP/1.1 ") < 3 or not _is_complete(received[received.rindex(b"HTTP/1.1 ") :]):
            received += connection.recv(65_536)
    assert [line.split()[1] for line in received.split(b"\r\n") if b"HTTP/1.1 " in line] == [b"201", b"200", b"201"]


def test_requests_that_offer_another_protocol_use_one_connection(hostile_target: RunningService) -> None:
    """Each with its own body, wherever the pieces end: clients that prefer HTTP/2 make the offer every time."""
    requests = _post(_GOOD, _H2C) * 3
    for size in (len(requests), 40, 1):
        with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
            for start in range(0, len(requests), size):
                connection.sendall(requests[start : start + size])
            received = b""
            while received.count(b"HTTP/1.1 ") < 3 or not _is_complete(received[received.rindex(b"HTTP/1.1 ") :]):
                received += connection.recv(65_536)
        assert received.count(b"HTTP/1.1 201 ") == 3


def test_a_body_after_its_answer_has_a_limited_time(hostile_target: RunningService) -> None:
    """A request that was refused before its body was read does not keep the connection for as long as it likes."""
    with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
        connection.sendall(_post(b"{", b"Content-Length: 90000\r\n", path=b"/nowhere"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 404 ")
        _send_until_closed(connection, b" ")


def test_line_breaks_between_requests_have_a_limited_time(hostile_target: RunningService) -> None:
    """The parser skips them, so they begin no message."""
    with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
        connection.sendall(_get(b"/livez"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        _send_until_closed(connection, b"\r\n")


def test_a_refusal_does_not_answer_an_earlier_request(hostile_target: RunningService) -> None:
    """The answer to a good request comes first although what follows it is no HTTP, and then the connection ends."""
    with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
        connection.sendall(_post(_GOOD) + b"\x16\x03\x01")
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert received.startswith(b"HTTP/1.1 201 ")
    assert received.count(b"HTTP/1.1 ") == 1


def test_a_connection_without_a_request_is_closed(hostile_target: RunningService) -> None:
    """After the time for headers."""
    with socket.create_connection(hostile_target.address, timeout=GIVE_UP) as connection:
        assert connection.recv(1) == b""


def test_a_body_that_never_ends_is_refused(hostile_target: RunningService) -> None:
    """408, and the connection is closed."""
    status, body = _exchange(hostile_target, _post(b'{"messages":', b"Content-Length: 1000\r\n"))
    assert (status, json.loads(body)["reason"]) == (408, "too_slow")


def test_a_chunked_body_above_the_limit_is_refused(hostile_target: RunningService) -> None:
    """Although it says nothing about its length."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    status, _ = _exchange(hostile_target, _post(chunk * 3 + b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"))
    assert status == 413


def test_a_request_id_is_repeated_if_it_is_plain(hostile_target: RunningService) -> None:
    """Otherwise the service chooses one."""
    client = hostile_target.clients[0]
    assert client.get("/livez", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert client.get("/livez", headers={"X-Request-Id": "a b<script>"}).headers["x-request-id"] != "a b<script>"
