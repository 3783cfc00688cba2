"""Reading the fields of a request of the compatible API, and writing times."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memoranda.home.access.keys import Scope
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Handler, Method, Route
from memoranda.service.http.shapes import Anything
from memoranda.support.tool import JsonObject

_TAG = "compatible"


def route(
    method: Method, path: str, name: str, scope: Scope, handler: Handler, *, body: bool = False, status: int = 200
) -> Route:
    """A route of another product's API: the handler checks the parameters and the body itself."""
    return Route(
        method,
        path,
        name,
        scope,
        handler,
        name.replace("_", " ").capitalize(),
        status=status,
        body=Anything() if body else None,
        for_user=False,
        open_query=True,
        documented=False,
        tag=_TAG,
    )


def invalid(detail: str) -> Problem:
    return Problem(400, "invalid", detail)


def require_object(value: Any, name: str = "The body") -> JsonObject:
    """The value, if it is a JSON object; raises Problem 400 otherwise."""
    if not isinstance(value, dict):
        raise invalid(f"{name} must be an object.")
    return value


def require_list(value: Any, name: str, max_length: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > max_length:
        raise invalid(f"{name} must be a list with at most {max_length} elements.")
    return value


def read_number(fields: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    """A whole number of the body, or in a query as text; raises Problem 400 if it is out of range."""
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise invalid(f"{name} must be a whole number from {low} to {high}.")
    return value


def read_text(fields: Mapping[str, Any], name: str, *, required: bool = False) -> str | None:
    """A text of the request; None if it is missing or null."""
    value = fields.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or (required and not value):
        raise invalid(f"{name} must be text.")
    return value


def as_iso(timestamp: float) -> str:
    """A time in seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(timestamp, UTC).isoformat()
