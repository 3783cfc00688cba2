"""The two eras of the protocol, told apart request by request, so that one server answers both.

Up to 2025-11-25 a connection begins with a handshake (`initialize`). From 2026-07-28 on there is none: every request
says in its `_meta` which version it speaks, and every result says whose it is and how long it may be kept.
"""

from collections.abc import Mapping

from memoranda import __version__
from memoranda.adapters.mcp.wire import INVALID_PARAMS, UNSUPPORTED_VERSION, ProtocolError, Request
from memoranda.tools import JsonObject

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SELF_CONTAINED = ("2026-07-28",)
SERVER_INFO: JsonObject = {"name": "memoranda", "title": "Memoranda", "version": __version__}

_VERSION = "io.modelcontextprotocol/protocolVersion"
_SERVER = "io.modelcontextprotocol/serverInfo"
# What these answer can change with the next write, and belongs to one user.
_KEPT = frozenset({
    "server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
})  # fmt: skip


def version_of(request: Request) -> str:
    """The version that a self-contained request speaks; "" for one of a connection with a handshake."""
    meta = request.params.get("_meta")
    version = meta.get(_VERSION) if isinstance(meta, Mapping) else None
    if version is None:
        return ""
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"{_VERSION} must be text.")
    if version not in SELF_CONTAINED:
        data = {"supported": [*SELF_CONTAINED, *HANDSHAKE], "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, f"Version {version[:40]!r} of the protocol is not spoken here.", data)
    return version


def agreed(asked: object) -> str:
    """The version for a connection with a handshake: the one that was asked for, else the newest."""
    return asked if isinstance(asked, str) and asked in HANDSHAKE else HANDSHAKE[-1]


def completed(result: JsonObject, request: Request) -> JsonObject:
    """A result as the era of its request wants it."""
    if not version_of(request):
        return result
    more: JsonObject = {"resultType": "complete", "_meta": {_SERVER: SERVER_INFO}}
    if request.method in _KEPT:
        more |= {"ttlMs": 0, "cacheScope": "private"}
    return result | more
