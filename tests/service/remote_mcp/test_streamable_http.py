"""A message over HTTP is answered with a status, if its headers agree with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.integrations.mcp.server import McpServer
from memoranda.service.remote_mcp.streamable_http import answer_message
from tests.integrations.mcp.hosts import MODERN, server_for
from tests.service.remote_mcp.remote_service import rpc


@pytest.fixture
def server(tmp_path: Path) -> Iterator[McpServer]:
    with memoranda.open(tmp_path) as memory:
        yield server_for(memory, one_client=False)


def _headers(method: str, **more: str | None) -> dict[str, str]:
    given = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method} | {
        name.replace("_", "-"): value for name, value in more.items()
    }
    return {name: value for name, value in given.items() if value is not None}


def test_the_headers_of_a_request_must_agree_with_its_body(server: McpServer) -> None:
    """Proxies route by the headers, so they must not be deceived about the request."""
    message = rpc("ping", **MODERN)
    assert answer_message(server, _headers("ping"), message)[0] == 200
    for wrong in ({"MCP_Protocol_Version": "2025-11-25"}, {"Mcp_Method": "tools/call"}, {"Mcp_Method": None}):
        status, answer = answer_message(server, _headers("ping", **wrong), message)
        assert (status, answer["error"]["code"], answer["id"]) == (400, -32020, 1)


@pytest.mark.parametrize(
    ("name", "status"),
    [("session_search", 200), ("=?base64?c2Vzc2lvbl9zZWFyY2g=?=", 200), ("memory", 400), ("=?base64?!?=", 400),
     (None, 400)],
)  # fmt: skip
def test_the_name_in_the_headers_must_be_the_one_in_the_body(server: McpServer, name: str | None, status: int) -> None:
    """Plain, or in the encoding for names that a header cannot contain."""
    message = rpc("tools/call", name="session_search", arguments={}, **MODERN)
    assert answer_message(server, _headers("tools/call", Mcp_Name=name), message)[0] == status


@pytest.mark.parametrize(
    ("headers", "message", "status"),
    [
        ({}, 7, 400),
        ({}, [rpc("ping"), rpc("ping")], 200),
        ({}, rpc("nonsense"), 200),
        (_headers("nonsense"), rpc("nonsense", **MODERN), 404),
        ({}, {"jsonrpc": "2.0", "method": "notifications/initialized"}, 202),
    ],
)
def test_an_error_has_a_status_where_the_protocol_wants_one(
    server: McpServer, headers: dict[str, str], message: Any, status: int
) -> None:
    """In its newest version, and where nothing says which version it is."""
    assert answer_message(server, headers, message)[0] == status
