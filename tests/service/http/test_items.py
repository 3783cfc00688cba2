"""Items over HTTP: stored, found, changed on a condition, deleted, restored, and written together."""

from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.slow

_NOTES = {"namespace": "notes/work"}


def _put(client: httpx.Client, key: str, value: Any, **headers: str) -> httpx.Response:
    return client.put(f"/v1/items/{key}", params=_NOTES, json={"value": value}, headers=headers)


def test_an_item_is_stored_read_deleted_and_restored(client: httpx.Client) -> None:
    """With every version in its history."""
    assert _put(client, "plan", {"text": "one"}).json()["version"] == 1
    changed = _put(client, "plan", {"text": "two"})
    assert (changed.json()["version"], changed.headers["etag"]) == (2, '"2"')
    read = client.get("/v1/items/plan", params=_NOTES)
    assert (read.json()["value"], read.json()["namespace"]) == ({"text": "two"}, ["notes", "work"])
    assert client.delete("/v1/items/plan", params=_NOTES).status_code == 204
    assert client.get("/v1/items/plan", params=_NOTES).status_code == 404
    assert client.delete("/v1/items/plan", params=_NOTES).status_code == 404
    restored = client.post("/v1/items/plan/restore", params=_NOTES, json={"version": 1})
    assert restored.json()["value"] == {"text": "one"}
    history = client.get("/v1/items/plan/history", params=_NOTES).json()["versions"]
    assert [version["event"] for version in history] == ["add", "update", "delete", "add"]


def test_an_item_is_written_only_over_the_version_that_was_read(client: httpx.Client) -> None:
    """412 with the version that it has now; "0" means that there must be none."""
    assert _put(client, "shared", 1, **{"If-Match": '"0"'}).status_code == 200
    refused = _put(client, "shared", 2, **{"If-Match": '"0"'})
    assert (refused.status_code, refused.json()["reason"], refused.json()["version"]) == (412, "changed", 1)
    assert _put(client, "shared", 2, **{"If-Match": '"1"'}).status_code == 200
    gone = client.delete("/v1/items/shared", params=_NOTES, headers={"If-Match": '"1"'})
    assert gone.status_code == 412
    assert _put(client, "shared", 3, **{"If-Match": "latest"}).status_code == 400


def test_items_are_listed_searched_and_filtered(client: httpx.Client) -> None:
    """Below a namespace, by words, and by fields of their values."""
    for number, text in enumerate(("red bicycle", "blue bicycle", "red car")):
        _put(client, f"thing-{number}", {"text": text, "number": number}).raise_for_status()

    def keys(**query: Any) -> list[str]:
        return [item["key"] for item in client.get("/v1/items", params=query).json()["items"]]

    assert keys() == ["thing-2", "thing-1", "thing-0"]
    assert set(keys(namespace="notes", query="bicycle")) == {"thing-0", "thing-1"}
    assert keys(filter='{"number": {"$gte": 2}}') == ["thing-2"]
    assert keys(namespace="other") == []
    page = client.get("/v1/items", params={"limit": 2, "offset": 1}).json()
    assert ([item["key"] for item in page["items"]], page["more"]) == (["thing-1", "thing-0"], False)
    assert client.get("/v1/namespaces").json()["namespaces"] == [["notes", "work"]]


def test_changes_are_made_together_or_not_at_all(client: httpx.Client) -> None:
    """A conflict in one of them writes none."""
    first = {"action": "put", "namespace": ["a"], "key": "x", "value": 1}
    written = client.post("/v1/items", json={"changes": [first, {**first, "key": "y"}]})
    assert [item["version"] for item in written.json()["results"]] == [1, 1]
    conflict = {"action": "delete", "namespace": ["a"], "key": "y", "version": 7}
    assert client.post("/v1/items", json={"changes": [{**first, "value": 2}, conflict]}).status_code == 412
    assert client.get("/v1/items/x", params={"namespace": "a"}).json()["value"] == 1


@pytest.mark.parametrize("namespace", ["a/b%2Fc", "%C3%A9/ ", "search/write"])
@pytest.mark.parametrize("key", ["search", "a%2Fb", "%25", "history"])
def test_any_label_and_key_comes_back_as_it_was_sent(client: httpx.Client, namespace: str, key: str) -> None:
    """A slash in a label or in a key is percent-encoded."""
    stored = client.put(f"/v1/items/{key}", params={"namespace": namespace}, json={"value": None}).json()
    assert client.get(f"/v1/items/{key}", params={"namespace": namespace}).json() == stored
    assert len(stored["namespace"]) == 2


@pytest.mark.parametrize(
    "query", [{}, {"namespace": "a//b"}, {"namespace": "%FF"}, {"namespace": "a/" * 100}, {"namespace": ""}]
)
def test_a_namespace_that_is_none_is_refused(client: httpx.Client, query: dict[str, str]) -> None:
    """And no fault of the service."""
    assert client.get("/v1/items/x", params=query).status_code == 422
    assert client.get("/v1/items", params={"filter": "{"}).status_code == 422


@pytest.mark.parametrize("text", ['{"x": NaN}', '{"x": {"$gt": Infinity}}', '{"x": 1, "x": 2}', "{", "[" * 500])
def test_a_filter_is_read_like_a_body(client: httpx.Client, text: str) -> None:
    """What two programs may read differently is refused."""
    answer = client.get("/v1/items", params={"filter": text})
    assert (answer.status_code, answer.json()["reason"]) == (422, "invalid")
