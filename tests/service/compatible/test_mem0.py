"""mem0's API as its own client's requests have it: what is stored, found, filtered, paged and refused."""

from pathlib import Path
from typing import Any

import httpx
import pytest

import memoranda
from memoranda.home import config
from memoranda.service.compatible.mem0_memories import Mem0Memories, read_filters
from memoranda.support.home import Home
from tests.service.http.running_service import RunningService

USER = {"user_id": "ana"}


def _add(client: httpx.Client, text: str, **fields: Any) -> str:
    body = {"messages": [{"role": "user", "content": text}], **USER, **fields}
    answer = client.post("/v3/memories/add/", json=body).raise_for_status().json()
    return str(answer["results"][0]["id"])


def _list(client: httpx.Client, filters: Any = None, **fields: Any) -> list[str]:
    answer = client.post("/v3/memories/", json={"filters": filters, **fields})
    assert answer.status_code == 200, answer.text
    return sorted(memory["memory"] for memory in answer.json()["results"])


def _find(client: httpx.Client, query: str, **fields: Any) -> list[str]:
    answer = client.post("/v3/memories/search/", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return [memory["memory"] for memory in answer.json()["results"]]


def test_without_a_model_the_texts_of_the_user_are_memories(client: httpx.Client) -> None:
    """Word for word; without `infer` every message is one, and a text that is there already is not added again."""
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "I moved to Lisbon."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": [{"type": "text", "text": "I have a dog."}]},
    ]

    def add(**fields: Any) -> list[tuple[str, str]]:
        answer = client.post("/v3/memories/add/", json={"messages": messages, **fields}).json()
        return [(event["event"], event["memory"]) for event in answer["results"]]

    assert add(user_id="ana") == [("ADD", "I moved to Lisbon."), ("ADD", "I have a dog.")]
    assert add(user_id="ana") == [("NONE", "I moved to Lisbon."), ("NONE", "I have a dog.")]
    assert add(filters={"user_id": "bo"})[0] == ("ADD", "I moved to Lisbon.")
    raw = add(user_id="carol", infer=False)
    assert raw == [("ADD", "I moved to Lisbon."), ("ADD", "Noted."), ("ADD", "I have a dog.")]
    assert len(_list(client, {"user_id": "ana"})) == 2
    assert client.post("/v3/memories/add/", json={"messages": messages}).status_code == 400


def test_an_updated_memory_does_not_hide_its_old_text(client: httpx.Client) -> None:
    """The old text can be added again, as another memory."""
    first = _add(client, "The gate is blue.")
    client.put(f"/v1/memories/{first}/", json={"text": "The gate is red."}).raise_for_status()
    second = _add(client, "The gate is blue.")
    assert second != first
    assert _list(client) == ["The gate is blue.", "The gate is red."]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (None, "abc"),
        ({}, "abc"),
        ({"user_id": "ana"}, "ab"),
        ({"user_id": "*"}, "abc"),
        ({"agent_id": "*"}, "b"),
        ({"AND": [{"user_id": "ana"}, {"agent_id": "cook"}]}, "b"),
        ({"OR": [{"agent_id": "cook"}, {"user_id": "bo"}]}, "bc"),
        ({"AND": [{"user_id": "ana"}, {"NOT": [{"agent_id": "cook"}]}]}, "a"),
        ({"NOT": {"user_id": "ana"}}, "c"),
        ({"user_id": {"in": ["bo", "zoe"]}}, "c"),
        ({"user_id": {"ne": "ana"}}, "c"),
        ({"metadata": {"n": {"gte": 2}}}, "bc"),
        ({"metadata": {"n": {"gt": 1, "lt": 3}}}, "b"),
        ({"n": 3}, "c"),
        ({"metadata": {"tags": {"contains": "x"}}}, "a"),
        ({"created_at": {"gte": "2020-01-01", "lte": "2020-12-31"}}, "c"),
        ({"created_at": {"lt": "2019-01-01T00:00:00Z"}}, ""),
        ({"keywords": {"icontains": "TEXT A"}}, "a"),
        ([{"user_id": "ana"}, {"metadata": {"n": 1}}], "a"),
    ],
)
def test_filters_select_memories(client: httpx.Client, filters: Any, expected: str) -> None:
    """By entities, times and metadata, combined by AND, OR and NOT; lists and searches agree."""
    _add(client, "text a", metadata={"n": 1, "tags": ["x", "y"]})
    _add(client, "text b", agent_id="cook", metadata={"n": 2})
    _add(client, "text c", user_id="bo", metadata={"n": 3}, timestamp=1_590_000_000)
    assert _list(client, filters) == [f"text {letter}" for letter in expected]
    assert sorted(_find(client, "text", filters=filters)) == [f"text {letter}" for letter in expected]


@pytest.mark.parametrize(
    "filters",
    ["ana", {"user_id": {"like": "a"}}, {"user_id": {"in": "a"}}, {"created_at": {"gte": "soon"}}, {"AND": 7}],
)
def test_a_filter_that_means_nothing_is_refused(client: httpx.Client, filters: Any) -> None:
    """Ignoring it would show memories that the caller did not ask for."""
    for path, body in (("/v3/memories/", {}), ("/v3/memories/search/", {"query": "x"})):
        answer = client.post(path, json={**body, "filters": filters})
        assert answer.status_code == 400
        assert answer.json()["detail"]


def test_a_search_has_scores_and_limits(client: httpx.Client) -> None:
    """The best match first, `top_k` of them, none below the threshold, with only the fields that were asked for."""
    _add(client, "Ana likes oolong tea from Taiwan")
    _add(client, "Ana likes coffee")
    _add(client, "The car is green")
    answer = client.post("/v3/memories/search/", json={"query": "Which tea does Ana like?"}).json()["results"]
    assert [memory["memory"][:13] for memory in answer] == ["Ana likes ool", "Ana likes cof"]
    assert 1 >= answer[0]["score"] > answer[1]["score"] > 0
    assert len(_find(client, "Ana", top_k=1)) == 1
    assert _find(client, "Which tea does Ana like?", threshold=answer[0]["score"]) == [answer[0]["memory"]]
    (chosen,) = client.post("/v3/memories/search/", json={"query": "car", "fields": ["memory"]}).json()["results"]
    assert sorted(chosen) == ["id", "memory"]


def test_pages_have_counts_and_links(client: httpx.Client) -> None:
    """Following `next` reads every memory once."""
    for number in range(5):
        _add(client, f"number {number}")
    found, path = [], "/v3/memories/?page_size=2"
    while path:
        answer = client.post(path, json={"filters": USER}).json()
        assert answer["count"] == 5
        found += [memory["memory"] for memory in answer["results"]]
        path = answer["next"]
    assert sorted(found) == [f"number {number}" for number in range(5)]
    assert len(found) == 5


def test_an_expired_memory_is_shown_on_request_only(client: httpx.Client) -> None:
    """After its expiration date; an update without one keeps it for good."""
    memory_id = _add(client, "The ferry leaves at nine.", expiration_date="2020-01-01")
    _add(client, "The ferry costs ten.", expiration_date="2999-01-01")
    assert _list(client) == _find(client, "ferry") == ["The ferry costs ten."]
    assert len(_list(client, show_expired=True)) == len(_find(client, "ferry", show_expired=True)) == 2
    client.put(f"/v1/memories/{memory_id}/", json={"expiration_date": None}).raise_for_status()
    assert len(_list(client)) == 2


def test_a_batch_is_all_or_nothing(client: httpx.Client) -> None:
    """One unknown id leaves the others as they were."""
    known = _add(client, "keep me")
    batch = [{"memory_id": known, "text": "changed"}, {"memory_id": "unknown", "text": "x"}]
    assert client.put("/v1/batch/", json={"memories": batch}).status_code == 404
    assert client.request("DELETE", "/v1/batch/", json={"memories": batch}).status_code == 404
    assert _list(client) == ["keep me"]


def test_deleting_everything_needs_a_name(client: httpx.Client) -> None:
    """Without an entity nothing is deleted; the history of what was deleted stays."""
    memory_id = _add(client, "hello")
    assert client.delete("/v1/memories/").status_code == 400
    assert client.delete("/v2/entities/planet/ana/").status_code == 404
    assert client.delete("/v2/entities/user/zoe/").status_code == 404
    client.delete("/v1/memories/", params=USER).raise_for_status()
    assert client.get(f"/v1/memories/{memory_id}/").status_code == 404
    history = client.get(f"/v1/memories/{memory_id}/history/").json()
    assert [event["event"] for event in history] == ["ADD", "DELETE"]


def test_what_is_not_there_is_said_so(client: httpx.Client) -> None:
    """Exports by schema, summaries, profiles and projects answer 501 with a reason, not 404."""
    for method, path in (("POST", "/v1/exports/"), ("POST", "/v1/summary/"), ("GET", "/v2/profiles/settings/")):
        answer = client.request(method, path, json={} if method == "POST" else None)
        assert answer.status_code == 501
        assert "/v1/export" in answer.json()["detail"]


@pytest.mark.slow
def test_memories_are_in_the_export_of_the_service(compatible: RunningService, client: httpx.Client) -> None:
    """Our own export has them as items with their history, and another user can import them."""
    memory_id = _add(client, "The heron nests in April.")
    client.put(f"/v1/memories/{memory_id}/", json={"text": "The heron nests in May."}).raise_for_status()
    exported = client.get("/v1/export").content
    assert exported.count(b'"item"') == 1
    client.delete(f"/v1/memories/{memory_id}/").raise_for_status()
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/v1/import", content=exported, headers=headers).json()
    assert (answer["items"], answer["errors"]) == (0, []), "an older version does not undo a deletion"
    other = compatible.client(compatible.key(user="who-imports"))
    assert other.post("/v1/import", content=exported, headers=headers).json()["items"] == 1
    assert _list(other) == ["The heron nests in May."]
    assert len(other.get(f"/v1/memories/{memory_id}/history/").json()) == 2


@pytest.mark.slow
def test_the_quick_start_answers_its_own_question(tmp_path: Path) -> None:
    """With search by meaning, which needs no model: the question shares no word with what was said."""
    pytest.importorskip("wordllama")
    config.set_value(Home(tmp_path), "search.semantic", "on")
    with memoranda.open(tmp_path) as memory:
        memories = Mem0Memories(memory.items)
        memories.add([("user", "I'm a vegetarian and allergic to nuts.")], {"user_id": "alex"}, once=True)
        memories.add([("user", "I work at a bank in Porto.")], {"user_id": "alex"}, once=True)
        (found,) = memories.search(
            "What are my dietary restrictions?", read_filters({"user_id": "alex"}), limit=5, threshold=0.1
        )
        assert found["memory"] == "I'm a vegetarian and allergic to nuts."
