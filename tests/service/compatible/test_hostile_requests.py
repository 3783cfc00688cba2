"""Whatever a client of mem0 sends, it gets a refusal in the form of that API, never a fault."""

import json
from typing import Any

import httpx
import pytest

from memoranda.service.compatible.mem0 import refuse
from memoranda.service.http.route import Route
from memoranda.service.mounts import COMPATIBLE

_ROUTES = [route for mount in COMPATIBLE.values() for route in mount.routes if route.handler is not refuse]
_DEEP: Any = {"a": [[[[[[{"b": {"c": [None]}}]]]]]]}
_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**70, "", "x", "\0", "\ud83d", "*", "9" * 400, [], {}, [[]], [{}], [None], ["\0"], _DEEP
)  # fmt: skip
_FIELDS = (
    "messages", "filters", "user_id", "metadata", "timestamp", "expiration_date", "query", "threshold", "top_k", "page",
    "page_size", "fields", "categories", "start_date", "text", "memories", "memory_id", "feedback",
)  # fmt: skip
_GOOD: dict[str, Any] = {
    "messages": [{"role": "user", "content": "hello"}], "user_id": "ana", "query": "hello",
    "text": "hello", "memories": [{"memory_id": "x"}], "memory_id": "x",
}  # fmt: skip
_PATH = ("memory_id", "type", "name", "org_id", "project_id")
_NOTHING = object()


_HEADERS = {"Content-Type": "application/json"}


def _send(client: httpx.Client, route: Route, path: str, body: Any = _NOTHING) -> None:
    content = None if body is _NOTHING else json.dumps(body)
    answer = client.request(route.method, path, content=content, headers=_HEADERS if content else None)
    assert answer.status_code < 500, (body, answer.text)


def _make_memory(client: httpx.Client) -> str:
    """A memory that exists, so that what comes after the check of the path is reached, too."""
    added = client.post("/v3/memories/add/", json={"messages": _GOOD["messages"], "user_id": "ana"}).json()
    return str(added["results"][0]["id"])


@pytest.mark.slow
@pytest.mark.parametrize("route", [route for route in _ROUTES if route.body is not None], ids=lambda route: route.name)
def test_no_body_is_a_fault(client: httpx.Client, route: Route) -> None:
    """Each field with values of every type, and bodies that are no objects."""
    memory_id = _make_memory(client)
    path, good = route.path.format(memory_id=memory_id), {**_GOOD, "memory_id": memory_id}
    bodies = [*_VALUES, *({**good, name: value} for name in _FIELDS for value in _VALUES)]
    # Every third, beginning at another one for each route.
    for body in bodies[_ROUTES.index(route) % 3 :: 3]:
        _send(client, route, path, body)


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(route, id=route.name, marks=[pytest.mark.slow] if place % 4 else [])
        for place, route in enumerate(_ROUTES)
    ],
)
def test_no_path_or_query_is_a_fault(client: httpx.Client, route: Route) -> None:
    """Bytes that are no text, parameters of other types, and a few bodies."""
    bodies = (_NOTHING,) if route.body is None else ({}, [], {"filters": {"AND": 7}, "query": "x"})
    for parameters in ("", "page_size=x&page=-1&user_id=%00&filters=?", "filters=(" * 300):
        for value in ("%00%F0x", "%2F..%2F", "x"):
            path = route.path.format(**dict.fromkeys(_PATH, value))
            for body in bodies:
                _send(client, route, f"{path}?{parameters}", body)
