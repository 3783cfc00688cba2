"""The versions of MCP that the server speaks, detected request by request, so that one server answers all of them.

Up to 2025-11-25 a connection begins with a handshake (`initialize`). From 2026-07-28 on there is none: every request
names its version in `_meta`, and every result names the server and how long a client may cache it.
"""

from collections.abc import Mapping

from memoranda import __version__
from memoranda.integrations.mcp.json_rpc import INVALID_PARAMS, UNSUPPORTED_VERSION, ProtocolError, RpcRequest
from memoranda.support.tool import JsonObject

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SELF_CONTAINED = ("2026-07-28",)
SERVER_INFO: JsonObject = {"name": "memoranda", "title": "Memoranda", "version": __version__}

_VERSION = "io.modelcontextprotocol/protocolVersion"
_SERVER = "io.modelcontextprotocol/serverInfo"
# Clients must not cache these: the next write can change them, and they belong to one user.
_UNCACHEABLE = frozenset({
    "server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
})  # fmt: skip


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
