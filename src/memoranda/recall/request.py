"""What a call of `session_search` asks for, checked once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memoranda.recall.times import parse_time

MOST_RESULTS = 10
MOST_WINDOW = 20
_DEFAULT_RESULTS = 3
_DEFAULT_WINDOW = 5


class InvalidRequestError(ValueError):
    """What was asked cannot be understood; the message says why and what could be asked instead."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call: which of its fields are set decides what it means."""

    query: str = ""
    session_id: str = ""
    around: int | None = None
    window: int = _DEFAULT_WINDOW
    limit: int = _DEFAULT_RESULTS
    sort: Literal["newest", "oldest"] | None = None
    roles: frozenset[str] | None = None
    sources: frozenset[str] | None = None
    project: str = ""
    since: float | None = None
    until: float | None = None
    cursor: int = 0
    why: bool = False


def read_request(arguments: Any, now: float) -> Request:
    """The request in a model's arguments; numbers out of range are brought into it."""
    if not isinstance(arguments, Mapping):
        raise InvalidRequestError(f"The arguments must be an object, not {type(arguments).__name__}.")
    around = _number(arguments, "around_message_id")
    session_id = _text(arguments, "session_id")
    if around is not None and not session_id:
        raise InvalidRequestError("around_message_id needs the session_id it belongs to.")
    window, limit = _number(arguments, "window"), _number(arguments, "limit")
    return Request(
        query=_text(arguments, "query"),
        session_id=session_id,
        around=around,
        window=_clamp(_DEFAULT_WINDOW if window is None else window, MOST_WINDOW),
        limit=_clamp(_DEFAULT_RESULTS if limit is None else limit, MOST_RESULTS),
        sort=_sort(arguments.get("sort")),
        roles=_lower(_names(arguments, "role_filter")),
        sources=_names(arguments, "source"),
        project=_text(arguments, "project"),
        since=_time(arguments, "since", now, end=False),
        until=_time(arguments, "until", now, end=True),
        cursor=max(0, _number(arguments, "cursor") or 0),
        why=arguments.get("why") in (True, "true", "True", 1),
    )


def _clamp(number: int, most: int) -> int:
    return max(1, min(number, most))


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidRequestError(f"{name} must be text, not {type(value).__name__}.")
    return value.strip()


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequestError(f"{name} must be a whole number, not {str(value)[:60]!r}.") from None
    return number if abs(number) < 2**62 else 2**62


def _sort(value: Any) -> Literal["newest", "oldest"] | None:
    word = value.strip().lower() if isinstance(value, str) else value
    if word in (None, "", "relevance"):
        return None
    if word == "newest":
        return "newest"
    if word == "oldest":
        return "oldest"
    raise InvalidRequestError(f"sort must be newest or oldest, not {str(value)[:60]!r}.")


def _names(arguments: Mapping[str, Any], name: str) -> frozenset[str] | None:
    value = arguments.get(name)
    if isinstance(value, str):
        value = value.split(",")
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidRequestError(f"{name} must be names separated by commas, not {type(value).__name__}.")
    return frozenset(item.strip() for item in value if item.strip()) or None


def _lower(names: frozenset[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(name.lower() for name in names)


def _time(arguments: Mapping[str, Any], name: str, now: float, *, end: bool) -> float | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        return parse_time(value, now=now, end=end)
    except ValueError as error:
        raise InvalidRequestError(f"{name}: {error}") from None
