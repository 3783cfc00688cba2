"""Checks of a request before anything is done with it: its headers, its body's size, type and time, its id."""

import asyncio
import re
import secrets
from collections.abc import Iterable

from starlette.types import Receive, Scope

from memoranda.service.http.problems import Problem

_MAX_PATH_BYTES = 8_192
_MAX_HEADERS = 100
_OWN_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?")
_OWN_ORIGIN = re.compile(rf"https?://{_OWN_HOST.pattern}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# Two programs that read the same request may each follow another one of two equal headers.
_SINGLE = frozenset(
    {
        *(b"host", b"authorization", b"x-api-key", b"content-length", b"content-type", b"content-encoding"),
        *(b"transfer-encoding", b"idempotency-key", b"if-match", b"last-event-id", b"origin", b"x-request-id"),
        *(b"x-memoranda-user", b"mcp-session-id", b"cookie"),
    }
)


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The id that the client gave the request, if it is a plain one, or else a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(text := value.decode("latin-1")):
            return text
    return secrets.token_hex(8)


def check_request(scope: Scope, max_header_bytes: int) -> dict[str, str]:
    """The headers of a request by name; raises Problem for one that is too large, or that has two meanings."""
    if scope["http_version"] not in ("1.0", "1.1", "2", "2.0"):
        raise Problem(505, "unknown_version", "The service speaks HTTP/1.1.")
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _MAX_PATH_BYTES:
        raise Problem(414, "too_long", f"Path and query may have at most {_MAX_PATH_BYTES:,} bytes.")
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if size > max_header_bytes or len(headers) > _MAX_HEADERS:
        raise Problem(431, "too_large", f"Send at most {_MAX_HEADERS} headers with {max_header_bytes:,} bytes.")
    found = check_headers(headers)
    if "host" not in found and scope["http_version"] != "1.0":
        raise Problem(400, "no_host", "The request does not say for which host it is.")
    return found


def check_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by name; raises Problem 400 for one that is repeated but must be single."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in found and name in _SINGLE:
            raise Problem(400, "repeated_header", f"The header {name.decode('latin-1')!r} is repeated.")
        found[name] = value
    if b"transfer-encoding" in found and b"content-length" in found:
        raise Problem(400, "two_lengths", "The request has Transfer-Encoding and Content-Length.")
    if found.get(b"transfer-encoding", b"chunked").strip().lower() != b"chunked":
        raise Problem(400, "unknown_encoding", "Transfer-Encoding can only be chunked.")
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in found.items()}


def is_own_host(host: str | None) -> bool:
    """Return true if a Host header names this machine."""
    return _OWN_HOST.fullmatch(host or "") is not None


def is_own_origin(origin: str) -> bool:
    """Return true if an Origin header names a page that this machine serves."""
    return _OWN_ORIGIN.fullmatch(origin) is not None


def check_loopback(headers: dict[str, str]) -> None:
    """Without keys, refuse requests that a page of another site may have sent through a browser on this machine.

    Their `Host` and `Origin` headers must name this machine: that stops pages of other sites and DNS rebinding.
    """
    if not is_own_host(headers.get("host")):
        raise Problem(421, "wrong_host", "Without API keys the service answers only on the loopback address.")
    origin = headers.get("origin")
    if origin is not None and not is_own_origin(origin):
        raise Problem(403, "forbidden", "Pages of other sites may not send requests here.")


async def read_body(receive: Receive, headers: dict[str, str], *, limit: int, seconds: float) -> bytes:
    """The whole body; raises Problem 413 if it is too large and 408 if it takes too long."""
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise Problem(400, "wrong_length", "Content-Length is not a number.")
    too_large = Problem(413, "too_large", f"The body may have at most {limit:,} bytes.", {"Connection": "close"})
    if len(length) > 15 or int(length) > limit:
        raise too_large
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(415, "unsupported_encoding", "Send the body without Content-Encoding.")
    if length == "0" and "transfer-encoding" not in headers:
        return b""
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Problem(400, "incomplete", "The connection was closed before the body was complete.")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size > limit:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise Problem(
            408, "too_slow", f"The body did not arrive within {seconds:g} s.", {"Connection": "close"}
        ) from None
    return b"".join(parts)


def check_body_type(headers: dict[str, str], expected: str) -> None:
    """Raise Problem 415 unless the body has the expected type: a page of another site cannot send JSON unasked."""
    found = headers.get("content-type", "").partition(";")[0].strip().lower()
    if found != expected:
        raise Problem(415, "wrong_type", f"Send the header 'Content-Type: {expected}'.")
