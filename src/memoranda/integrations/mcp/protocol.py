"""The messages of MCP: JSON-RPC 2.0, its error codes, and the versions of the protocol that the server speaks.

The version is detected request by request, so that one server answers all of them. Up to 2025-11-25 a connection begins
with a handshake (`initialize`). From 2026-07-28 on there is none: every request names its version in `_meta`, and every
result names the server and how long a client may cache it.
"""

import json
from collections.abc import Mapping
from typing import Any

from memoranda import __version__
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

RequestId = str | int | None
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SELF_CONTAINED = ("2026-07-28",)
SERVER_INFO: JsonObject = {"name": "memoranda", "title": "Memoranda", "version": __version__}
_VERSION = "io.modelcontextprotocol/protocolVersion"
_SERVER = "io.modelcontextprotocol/serverInfo"
# Clients must not cache these: the next write can change them, and they belong to one user.
_UNCACHEABLE = frozenset({
    "server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
})  # fmt: skip


class ProtocolError(Exception):
    """A message that cannot be answered with a result; the client gets the code and the text.

    `request_id` is the id of the message, if it could be read.
    """

    def __init__(
        self, code: int, message: str, data: JsonObject | None = None, *, request_id: RequestId = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """One call. A message without an id is a notification: `wants_answer` is false."""

    method: str
    params: Mapping[str, Any]
    id: RequestId = None
    wants_answer: bool = True


def decode(raw: bytes) -> Any:
    """Parses the JSON value in a line or body."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, f"This is not JSON: {str(error)[:200]}.") from None


def encode(message: Any) -> bytes:
    """Returns a message as one line of UTF-8; a lone surrogate becomes a question mark."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def read_request(message: Any) -> RpcRequest | None:
    """Reads the request in a message; None for a response, since this server sends no requests."""
    if not isinstance(message, Mapping):
        raise ProtocolError(INVALID_REQUEST, "A message must be an object.")
    request_id = _read_id(message)
    if "method" not in message and ("result" in message or "error" in message):
        return None
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, "A message must name its method.", request_id=request_id)
    if "id" in message and request_id is None:
        raise ProtocolError(INVALID_REQUEST, "An id must be text or a whole number.")
    if params is None:
        params = {}
    if not isinstance(params, Mapping):
        raise ProtocolError(INVALID_PARAMS, "params must be an object.", request_id=request_id)
    return RpcRequest(method, params, request_id, wants_answer="id" in message)


def _read_id(message: Mapping[str, Any]) -> RequestId:
    value = message.get("id")
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def success(request_id: RequestId, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: RequestId, error: ProtocolError) -> JsonObject:
    fields: JsonObject = {"code": error.code, "message": str(error)}
    if error.data is not None:
        fields["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": fields}


def request_version(request: RpcRequest) -> str:
    """Returns the version that a self-contained request names; "" for a request after a handshake."""
    meta = request.params.get("_meta")
    version = meta.get(_VERSION) if isinstance(meta, Mapping) else None
    if version is None:
        return ""
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"{_VERSION} must be text.")
    if version not in SELF_CONTAINED:
        data = {"supported": [*SELF_CONTAINED, *HANDSHAKE], "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, f"Version {version[:40]!r} of the protocol is not supported.", data)
    return version


def negotiate_version(requested: object) -> str:
    """Returns the version for a connection with a handshake: the requested one, else the newest."""
    return requested if isinstance(requested, str) and requested in HANDSHAKE else HANDSHAKE[-1]


def complete_result(result: JsonObject, request: RpcRequest) -> JsonObject:
    """Adds the fields that the version of the request requires to a result."""
    if not request_version(request):
        return result
    fields: JsonObject = {"resultType": "complete", "_meta": {_SERVER: SERVER_INFO}}
    if request.method in _UNCACHEABLE:
        fields |= {"ttlMs": 0, "cacheScope": "private"}
    return result | fields
