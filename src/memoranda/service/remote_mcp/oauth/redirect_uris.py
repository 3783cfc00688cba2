"""Which addresses may receive an authorization code, and when two of them are the same."""

import re
from urllib.parse import SplitResult, urlsplit

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_MAX_CHARS = 1_000
# Printable ASCII without what browsers repair or drop: spaces, backslashes, quotes and angle brackets.
_CLEAN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
# A plain host, because it becomes a part of the page's security policy.
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[::1\])(?::[0-9]{1,5})?")


def is_acceptable(uri: str) -> bool:
    """Whether a client may register this address: https, or http on the client's own machine."""
    parts = _split(uri)
    if parts is None or "#" in uri or not _HOST.fullmatch(parts.netloc):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def matches(registered: str, requested: str) -> bool:
    """Whether a requested address is the registered one, character by character.

    Only the port of an address on the client's machine may differ: the client gets a free one from its system.
    """
    if registered == requested:
        return True
    one, other = _split(registered), _split(requested)
    if one is None or other is None or one.scheme != "http" or one.hostname not in _LOOPBACK:
        return False
    return is_acceptable(requested) and _without_port(one) == _without_port(other)


def origin_of(uri: str) -> str:
    """The scheme, host and port of an acceptable address."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"


def _without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path or "/", parts.query


def _split(uri: str) -> SplitResult | None:
    if len(uri) > _MAX_CHARS or not _CLEAN.fullmatch(uri):
        return None
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 - raises ValueError for a port that is none
    except ValueError:
        return None
    return parts
