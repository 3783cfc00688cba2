"""LangGraph's store API: items, search, namespaces and expiry, and what is refused."""

from typing import Any

import httpx
import pytest

_NOTES = ["users", "ana"]


def _put(
    client: httpx.Client, key: str, value: dict[str, Any], namespace: list[str] | None = None, **more: Any
) -> None:
    body = {"namespace": namespace or _NOTES, "key": key, "value": value, **more}
    assert client.put("/store/items", json=body).status_code == 204


def _search(client: httpx.Client, **body: Any) -> list[str]:
    answer = client.post("/store/items/search", json={"namespace_prefix": ["users"], **body})
    assert answer.status_code == 200, answer.text
    return [item["key"] for item in answer.json()["items"]]


def test_an_item_is_read_replaced_and_deleted(client: httpx.Client) -> None:
    """As LangGraph's server does: a missing item is null, and deleting it is no error."""
    query = {"namespace": ".".join(_NOTES), "key": "k"}
    assert client.get("/store/items", params=query).json() is None
    _put(client, "k", {"text": "one"})
    _put(client, "k", {"text": "two"})
    item = client.get("/store/items", params=query).json()
    assert (item["namespace"], item["key"], item["value"]) == (_NOTES, "k", {"text": "two"})
    assert item["updated_at"] > item["created_at"]
    body = {"namespace": _NOTES, "key": "k"}
    for _ in range(2):
        assert client.request("DELETE", "/store/items", json=body).status_code == 204
    assert client.get("/store/items", params=query).json() is None


def test_items_are_searched_and_listed(client: httpx.Client) -> None:
    """By words, with filters and pages; without a query the latest come first."""
    _put(client, "tea", {"text": "oolong from Taiwan", "n": 1})
    _put(client, "car", {"text": "green car", "n": 2}, ["users", "bo"])
    _put(client, "quiet", {"text": "oolong", "n": 3}, index=False)
    assert _search(client, query="oolong") == ["tea"]
    assert _search(client) == ["quiet", "car", "tea"]
    assert _search(client, filter={"n": {"$gte": 2}}, limit=1, offset=1) == ["car"]
    assert _search(client, namespace_prefix=["users", "bo"]) == ["car"]
    assert _search(client, namespace_prefix=[], query="car") == ["car"]
    answer = client.post("/store/namespaces", json={"suffix": ["bo"]}).json()
    assert answer == {"namespaces": [["users", "bo"]]}
    assert client.post("/store/namespaces", json={"max_depth": 1}).json() == {"namespaces": [["users"]]}
    assert client.post("/store/namespaces", json={"prefix": ["other"]}).json() == {"namespaces": []}


def test_items_of_other_apis_are_not_listed(client: httpx.Client) -> None:
    """mem0's memories are items of the same user, and LangGraph does not see them."""
    body = {"messages": [{"role": "user", "content": "oolong"}], "user_id": "ana"}
    client.post("/v3/memories/add/", json=body).raise_for_status()
    assert client.post("/store/namespaces", json={}).json() == {"namespaces": []}
    assert _search(client, namespace_prefix=[], query="oolong") == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"namespace": [], "key": "k", "value": {}}, 400),
        ({"namespace": ["a.b"], "key": "k", "value": {}}, 422),
        ({"namespace": ["a"], "key": "", "value": {}}, 400),
        ({"namespace": ["a"], "key": "k", "value": [1]}, 400),
        ({"namespace": ["a"], "key": "k", "value": {}, "ttl": -1}, 400),
        ({"namespace": ["a"], "key": "k", "value": {}, "index": "text"}, 400),
        ([], 400),
    ],
)
def test_a_wrong_item_is_refused(client: httpx.Client, body: Any, status: int) -> None:
    """With a sentence that the client shows."""
    answer = client.put("/store/items", json=body)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_a_wrong_search_is_refused(client: httpx.Client) -> None:
    """An unknown operator or a limit beyond the range is not ignored."""
    for body in ({"filter": {"n": {"$in": [1]}}}, {"limit": 0}, {"query": 7}, {"namespace_prefix": "users"}):
        answer = client.post("/store/items/search", json={"namespace_prefix": [], **body})
        assert answer.status_code in (400, 422), body
