"""The server on the loopback address answers clients that have the token, and no others."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.integrations.mcp.http_server import McpHttpServer
from memoranda.support.loopback import ADDRESS
from tests.cases import cases
from tests.integrations.mcp.hosts import MODERN, server_for
from tests.timing import GIVE_UP

TOKEN = "a-token-of-this-test"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with (
        memoranda.open(tmp_path) as memory,
        McpHttpServer(server_for(memory, one_client=False), TOKEN, 0) as listening,
    ):
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield int(listening.server_address[1])
        listening.shutdown()
        thread.join()


def _ask(
    port: int, message: Any = PING, *, method: str = "POST", path: str = "/mcp", **headers: str | None
) -> tuple[HTTPResponse, bytes]:
    """The response to one message; headers by name, None leaves one out."""
    connection = HTTPConnection(ADDRESS, port, timeout=GIVE_UP)
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Host": f"127.0.0.1:{port}"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore[misc]
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in ({"Content-Length": str(len(body))} | sent).items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_a_message_is_answered_in_one_body(port: int) -> None:
    """As JSON; and a notification is only taken note of."""
    response, body = _ask(port)
    assert (response.status, response.headers.get_content_type()) == (200, "application/json")
    assert json.loads(body) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    response, body = _ask(port, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (response.status, body) == (202, b"")


@cases(
    "given", [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer ä"]
)
def test_without_the_token_nothing_is_answered(port: int, given: str | None) -> None:
    """Not even whether there is something."""
    for path in ("/mcp", "/"):
        response, body = _ask(port, path=path, Authorization=given)
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert b"result" not in body and TOKEN.encode() not in body


@cases(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": None}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Length": None}, 411),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": "99999999999"}, 413),
        ({"MCP_Protocol_Version": "1999-01-01"}, 400),
    ],
)
def test_a_request_that_looks_wrong_is_refused(port: int, headers: dict[str, str | None], status: int) -> None:
    """Above all one from a browser page that reached the server under another name."""
    assert _ask(port, **headers)[0].status == status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("repeated", "status"),
    [
        ("Host: localhost", 400),
        ("Origin: http://localhost\r\nOrigin: https://evil.example", 400),
        (f"Authorization: Bearer {TOKEN}", 400),
        ("content-length: 1", 400),
        ("Content-Type: text/plain", 400),
        ("Transfer-Encoding: chunked", 411),
    ],
)
def test_a_request_with_contradicting_headers_is_refused(port: int, repeated: str, status: int) -> None:
    """Another program on the way could have followed the other one."""
    body = json.dumps(PING)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{repeated}\r\n\r\n"
    )
    with socket.create_connection((ADDRESS, port), GIVE_UP) as connection:
        connection.sendall(f"{head}{body}".encode())
        answer = connection.makefile("rb").readline()
    assert answer.split()[1] == str(status).encode()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:8931"},
        {"Host": "[::1]:8931"},
        {"Origin": "http://localhost:6274"},
        {"MCP_Protocol_Version": "2025-06-18"},
        {"Content_Type": "application/json; charset=utf-8"},
    ],
)
def test_what_belongs_to_this_machine_is_let_in(port: int, headers: dict[str, str]) -> None:
    """Such as the inspector that developers use."""
    assert _ask(port, **headers)[0].status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_there_is_no_stream_and_no_session(port: int, method: str) -> None:
    """Hosts ask for them, and continue without."""
    response, _ = _ask(port, method=method)
    assert (response.status, response.headers["Allow"]) == (405, "POST")
    assert _ask(port, method=method, Authorization=None)[0].status == 401


def test_other_paths_are_not_found(port: int) -> None:
    """A slash at the end makes no difference."""
    assert _ask(port, path="/")[0].status == 404
    assert _ask(port, path="/mcp/")[0].status == 200


def test_the_headers_of_a_request_must_agree_with_its_body(port: int) -> None:
    """Proxies route by the headers, so they must not be deceived about the request."""
    message = PING | {"params": MODERN}
    agreed = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "ping"}
    assert _ask(port, message, **agreed)[0].status == 200
    for wrong in ({"MCP_Protocol_Version": "2025-11-25"}, {"Mcp_Method": "tools/call"}, {"Mcp_Method": None}):
        response, body = _ask(port, message, **(agreed | wrong))
        assert (response.status, json.loads(body)["error"]["code"], json.loads(body)["id"]) == (400, -32020, 1)


@pytest.mark.parametrize(
    ("header", "status"), [("session_search", 200), ("=?base64?c2Vzc2lvbl9zZWFyY2g=?=", 200), ("memory", 400),
                           ("=?base64?!?=", 400), (None, 400)],
)  # fmt: skip
def test_the_name_in_the_headers_must_be_the_one_in_the_body(port: int, header: str | None, status: int) -> None:
    """Plain, or in the encoding for names that a header cannot contain."""
    params = {"name": "session_search", "arguments": {}, **MODERN}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response, _ = _ask(port, message, MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name=header)
    assert response.status == status


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (7, 400),
        ([PING, PING], 200),
        ({"jsonrpc": "2.0", "id": 1, "method": "nonsense"}, 200),
    ],
)
def test_a_body_that_makes_no_sense_is_an_error(port: int, message: Any, status: int) -> None:
    """And the server keeps running."""
    response, body = _ask(port, message)
    assert response.status == status and json.loads(body)
    assert _ask(port)[0].status == 200


def test_an_unknown_method_is_not_found_in_the_new_version(port: int) -> None:
    """Where a status belongs to an error."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "nonsense", "params": MODERN}
    response, _ = _ask(port, message, MCP_Protocol_Version="2026-07-28", Mcp_Method="nonsense")
    assert response.status == 404


def test_connections_have_a_limit_that_frees_itself(port: int) -> None:
    """What is above it is refused at once, and what leaves makes room."""
    assert McpHttpServer.request_queue_size >= 128
    with ExitStack() as stack:
        for _ in range(128):
            stack.enter_context(socket.create_connection((ADDRESS, port), GIVE_UP))
        refused = stack.enter_context(socket.create_connection((ADDRESS, port), GIVE_UP))
        assert refused.makefile("rb").readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
    # A freed thread may need a moment; a server that never frees one would hang the test here.
    while _ask(port)[0].status != 200:
        time.sleep(0.01)


def test_many_hosts_at_once_all_get_their_answers(port: int) -> None:
    """Each on its own connection, writing to the same memory."""
    statuses: list[bool] = []

    def host(number: int) -> None:
        params = {"name": "remember", "arguments": {"text": f"The host {number} was here."}}
        _, body = _ask(port, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        statuses.append(json.loads(body)["result"]["isError"])

    threads = [threading.Thread(target=host, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GIVE_UP)
    assert statuses == [False] * 8
    read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "memoranda://memory"}}
    assert all(f"The host {number} was here." in _ask(port, read)[1].decode() for number in range(8))
