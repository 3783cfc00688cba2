"""The rules of MCP over streamable HTTP that do not depend on the web server: how a message is checked and answered."""

import base64
import re
from typing import Any, Protocol

from memoranda.integrations.mcp.protocol import (
    HANDSHAKE,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    SELF_CONTAINED,
    ProtocolError,
    RpcRequest,
    failure,
    read_request,
    request_version,
)
from memoranda.integrations.mcp.server import McpServer

PATH = "/mcp"
MAX_BODY_BYTES = 16 * 1024 * 1024
# The encoding that MCP prescribes for names that a header cannot contain.
_BASE64_VALUE = re.compile(r"=\?base64\?(.*)\?=")
# Which parameter of a method the header Mcp-Name repeats.
_NAME_PARAMETER = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Headers(Protocol):
    """The headers of a request, found by name in any case."""

    def get(self, name: str, /) -> str | None: ...


def is_json(content_type: str | None) -> bool:
    """Whether a Content-Type header announces JSON."""
    return (content_type or "").partition(";")[0].strip().lower() == "application/json"


def answer_message(server: McpServer, headers: Headers, message: Any) -> tuple[int, Any]:
    """Return the HTTP status and the JSON answer for a message; that to notifications is None, with status 202."""
    request = try_to_read(message)
    try:
        _compare_headers(headers, request)
    except ProtocolError as error:
        return 400, failure(request.id if request else None, error)
    answer = server.answer(message)
    return (202 if answer is None else _status_of(request, answer)), answer


def try_to_read(message: Any) -> RpcRequest | None:
    """Returns the request in a message; None for a broken one, which the MCP server answers with an error."""
    try:
        return read_request(message)
    except ProtocolError:
        return None


def _compare_headers(headers: Headers, request: RpcRequest | None) -> None:
    """Refuses a request if its headers and its body disagree about the version, method or name.

    Proxies route by the headers, so a difference would let a client bypass them.
    """
    version = request_version(request) if request else ""
    header_version = headers.get("MCP-Protocol-Version")
    if header_version is not None and header_version not in (*HANDSHAKE, *SELF_CONTAINED):
        raise ProtocolError(HEADER_MISMATCH, f"MCP-Protocol-Version {header_version[:40]!r} is not supported.")
    if request is None or not version:
        return
    if header_version != version:
        raise ProtocolError(HEADER_MISMATCH, "MCP-Protocol-Version is not the version in the body.")
    if headers.get("Mcp-Method") != request.method:
        raise ProtocolError(HEADER_MISMATCH, "Mcp-Method is not the method in the body.")
    name = request.params.get(_NAME_PARAMETER.get(request.method, ""))
    if name is not None and _decode_header(headers.get("Mcp-Name") or "") != name:
        raise ProtocolError(HEADER_MISMATCH, "Mcp-Name is not the name in the body.")


def _decode_header(value: str) -> str:
    """Returns the text of a header value that may be base64; "" when it cannot be decoded."""
    encoded = _BASE64_VALUE.fullmatch(value)
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except ValueError:
        return ""


def _status_of(request: RpcRequest | None, answer: Any) -> int:
    """Returns the HTTP status of an answer: up to version 2025-11-25 an error has the status 200 as well."""
    code = answer["error"]["code"] if isinstance(answer, dict) and "error" in answer else None
    if code is None or code == INTERNAL_ERROR:
        return 200
    if request is None:
        return 400
    if not request_version(request):
        return 200
    return 404 if code == METHOD_NOT_FOUND else 400
