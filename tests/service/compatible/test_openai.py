"""OpenAI's Conversations API: conversations are sessions, messages are found, other items stay as they are."""

from typing import Any

import httpx
import pytest

from tests.service.http.running_service import RunningService

_CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Lisbon"}', "x": [1, None]}


def _create(client: httpx.Client, *texts: str) -> str:
    items = [{"role": "user", "content": text} for text in texts]
    return str(client.post("/v1/conversations", json={"items": items}).raise_for_status().json()["id"])


def _texts(client: httpx.Client, conversation: str, **query: Any) -> list[str]:
    answer = client.get(f"/v1/conversations/{conversation}/items", params={"order": "asc", "limit": 100, **query})
    return [item["content"][0]["text"] for item in answer.raise_for_status().json()["data"]]


def test_message_items_are_found_by_search(client: httpx.Client) -> None:
    """A conversation is a session of the user: our own search and lists have it."""
    conversation = _create(client, "Where is the capybara?")
    found = client.post("/v1/search", json={"query": "capybara"}).json()
    assert [hit["session_id"] for hit in found["results"]] == [conversation]
    assert client.get(f"/v1/sessions/{conversation}").json()["source"] == "openai"


def test_items_keep_their_ids_and_fields(client: httpx.Client) -> None:
    """A given id stays, a taken one is replaced; a text becomes a part; unknown fields and types are not lost."""
    conversation = _create(client)
    url = f"/v1/conversations/{conversation}/items"
    given = [
        {"type": "message", "id": "msg_given", "role": "assistant", "content": "Hello", "phase": "commentary"},
        _CALL,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"type": "from_the_future", "anything": {"deep": True}},
    ]
    stored = client.post(url, json={"items": given}).json()["data"]
    assert stored[0] == {
        "id": "msg_given", "type": "message", "status": "completed", "role": "assistant", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
    }  # fmt: skip
    assert {name: value for name, value in stored[1].items() if name != "id"} == _CALL
    assert stored[2] == given[2]
    assert stored[3]["anything"] == {"deep": True}
    (again,) = client.post(url, json={"items": [given[0]]}).json()["data"]
    assert again["id"] not in ("msg_given", "")
    assert client.get(f"{url}/rs_1").json() == given[2]


def test_items_are_paged_in_both_directions(client: httpx.Client) -> None:
    """The newest first by default; `after` continues a page, and `has_more` says whether there is one."""
    conversation = _create(client, *(f"text {number}" for number in range(5)))
    for order, expected in (("asc", [0, 1, 2, 3, 4]), ("desc", [4, 3, 2, 1, 0])):
        found, after, more = [], None, True
        while more:
            query: dict[str, Any] = {"order": order, "limit": 2} | ({} if after is None else {"after": after})
            answer = client.get(f"/v1/conversations/{conversation}/items", params=query).json()
            found += [item["content"][0]["text"] for item in answer["data"]]
            after, more = answer["last_id"], answer["has_more"]
        assert found == [f"text {number}" for number in expected]
    newest = client.get(f"/v1/conversations/{conversation}/items", params={"limit": 1}).json()
    assert newest["data"][0]["content"][0]["text"] == "text 4"


def test_any_item_can_be_taken_out(client: httpx.Client) -> None:
    """The last one and one in the middle; the others keep their ids and their order, and search forgets it."""
    conversation = _create(client, "first", "numbat", "third")
    url = f"/v1/conversations/{conversation}/items"
    ids = [item["id"] for item in client.get(url, params={"order": "asc"}).json()["data"]]
    answer = client.delete(f"{url}/{ids[1]}").raise_for_status().json()
    assert (answer["id"], answer["object"]) == (conversation, "conversation")
    assert _texts(client, conversation) == ["first", "third"]
    assert [item["id"] for item in client.get(url, params={"order": "asc"}).json()["data"]] == [ids[0], ids[2]]
    client.delete(f"{url}/{ids[2]}").raise_for_status()
    assert _texts(client, conversation) == ["first"]
    assert client.delete(f"{url}/{ids[2]}").status_code == 404
    assert client.post("/v1/search", json={"query": "numbat"}).json()["results"] == []


def test_metadata_is_replaced_and_a_conversation_deleted(client: httpx.Client) -> None:
    """A deleted conversation is gone from every route."""
    answer = client.post("/v1/conversations", json={"metadata": {"topic": "trip"}}).json()
    url = f"/v1/conversations/{answer['id']}"
    assert (answer["object"], answer["metadata"]) == ("conversation", {"topic": "trip"})
    assert client.post(url, json={"metadata": {"topic": "home"}}).json()["metadata"] == {"topic": "home"}
    assert client.delete(url).json() == {"id": answer["id"], "object": "conversation.deleted", "deleted": True}
    assert client.get(url).status_code == client.get(f"{url}/items").status_code == 404


def test_sessions_of_other_programs_are_no_conversations(compatible: RunningService, client: httpx.Client) -> None:
    """They keep to our own API: another program's session would lose what an item cannot express."""
    session = client.post("/v1/sessions", json={"source": "cli"}).raise_for_status().json()["id"]
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/items")):
        assert client.request(method, f"/v1/conversations/{session}{path}").status_code == 404


@pytest.mark.parametrize(
    "items",
    [
        [{"role": "narrator", "content": "x"}],
        [{"type": "message", "role": "user", "content": 7}],
        [{"content": "x"}],
        ["text"],
        "text",
        [{"role": "user", "content": str(number)} for number in range(21)],
    ],
)
def test_a_wrong_item_is_refused(client: httpx.Client, items: Any) -> None:
    """In the form of OpenAI's errors, and nothing of the list is stored."""
    conversation = _create(client)
    if isinstance(items, list) and len(items) == 1:
        items = [{"role": "user", "content": "good"}, *items]
    answer = client.post(f"/v1/conversations/{conversation}/items", json={"items": items})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert _texts(client, conversation) == []
