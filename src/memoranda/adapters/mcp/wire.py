"""JSON-RPC 2.0 as MCP speaks it: bytes to messages, values to bytes, and errors with their codes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.tools import JsonObject

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

RequestId = str | int | None


class ProtocolError(Exception):
    """What was sent cannot be answered with a result; the sender gets the code and the message."""

    def __init__(self, code: int, message: str, data: JsonObject | None = None, *, answers: RequestId = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.answers = answers


@dataclass(frozen=True, slots=True)
class Request:
    """One call; without an id (`wants_answer` is false) it is a notification, which nobody answers."""

    method: str
    params: Mapping[str, Any]
    id: RequestId = None
    wants_answer: bool = True


def decode(raw: bytes) -> Any:
    """The JSON value in some bytes."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, f"This is not JSON: {str(error)[:200]}.") from None


def encode(message: Any) -> bytes:
    """A message as one line of UTF-8; half a character, which UTF-8 cannot hold, becomes a question mark."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def read_request(message: Any) -> Request | None:
    """The request in a message; None for an answer, of which there is none to a question of ours."""
    if not isinstance(message, Mapping):
        raise ProtocolError(INVALID_REQUEST, "A message must be an object.")
    known_id = _id_of(message)
    if "method" not in message and ("result" in message or "error" in message):
        return None
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, "A message must name its method.", answers=known_id)
    if "id" in message and known_id is None:
        raise ProtocolError(INVALID_REQUEST, "An id must be text or a whole number.")
    if params is None:
        params = {}
    if not isinstance(params, Mapping):
        raise ProtocolError(INVALID_PARAMS, "params must be an object.", answers=known_id)
    return Request(method, params, known_id, wants_answer="id" in message)


def _id_of(message: Mapping[str, Any]) -> RequestId:
    found = message.get("id")
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def success(answers: RequestId, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": answers, "result": result}


def failure(answers: RequestId, error: ProtocolError) -> JsonObject:
    about: JsonObject = {"code": error.code, "message": str(error)}
    if error.data is not None:
        about["data"] = error.data
    return {"jsonrpc": "2.0", "id": answers, "error": about}
