"""Decides which HTTP requests a server on the loopback address answers, for any protocol on top of HTTP.

Every program on this machine can connect, and so can a browser that a web page sends here. So a request needs the
token, and its `Host` and `Origin` headers must name this machine: that stops pages of other sites and DNS rebinding.
"""

import hmac
import re
from collections.abc import Iterable

ADDRESS = "127.0.0.1"
_OWN_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?")
_OWN_ORIGIN = re.compile(rf"https?://{_OWN_HOST.pattern}")

# Two programs that read the same request may each follow another one of two equal headers.
_SINGLE_HEADERS = frozenset({"host", "origin", "authorization", "content-length", "content-type"})


def is_own_host(host: str | None) -> bool:
    """Whether a Host header names this machine."""
    return _OWN_HOST.fullmatch(host or "") is not None


def is_own_origin(origin: str) -> bool:
    """Whether an Origin header names a page that this machine serves."""
    return _OWN_ORIGIN.fullmatch(origin) is not None


def check_header_names(names: Iterable[str]) -> tuple[int, str] | None:
    """Refuses a request that repeats a header which must be single, or whose body has no length of its own."""
    seen: set[str] = set()
    for name in map(str.lower, names):
        if name in seen and name in _SINGLE_HEADERS:
            return 400, f"The request has two headers {name!r}."
        if name == "transfer-encoding":
            return 411, "Send the body whole, with a Content-Length header."
        seen.add(name)
    return None


def check_request(
    *, host: str | None, origin: str | None, authorization: str | None, token: str
) -> tuple[int, str] | None:
    """Checks three headers of a request. Returns the HTTP status and the reason to refuse it; None when it may pass."""
    if not is_own_host(host):
        return 421, "This server answers on the loopback address only."
    if origin is not None and not is_own_origin(origin):
        return 403, "Pages of other sites may not send requests here."
    if not hmac.compare_digest((authorization or "").encode("utf-8", "replace"), b"Bearer " + token.encode()):
        return 401, "Send the header 'Authorization: Bearer <token>'; 'memoranda mcp --token' prints the token."
    return None
