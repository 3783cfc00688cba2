"""Decides which HTTP requests a server on the loopback address answers, for any protocol on top of HTTP.

Every program on this machine can connect, and so can a browser that a web page sends here. So a request needs the
token, and its `Host` and `Origin` headers must name this machine: that stops pages of other sites and DNS rebinding.
"""

import hmac
import re

ADDRESS = "127.0.0.1"
_OWN_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?")
_OWN_ORIGIN = re.compile(rf"https?://{_OWN_HOST.pattern}")


def check_request(
    *, host: str | None, origin: str | None, authorization: str | None, token: str
) -> tuple[int, str] | None:
    """Checks three headers of a request. Returns the HTTP status and the reason to refuse it; None when it may pass."""
    if not _OWN_HOST.fullmatch(host or ""):
        return 421, "This server answers on the loopback address only."
    if origin is not None and not _OWN_ORIGIN.fullmatch(origin):
        return 403, "Pages of other sites may not send requests here."
    if not hmac.compare_digest((authorization or "").encode("utf-8", "replace"), b"Bearer " + token.encode()):
        return 401, "Send the header 'Authorization: Bearer <token>'; 'memoranda mcp --token' prints the token."
    return None
