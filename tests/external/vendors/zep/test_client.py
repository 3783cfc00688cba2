"""Requests are those that Zep's own client sends, and answers have the fields that it accepts."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.zep.client import ZepClient, build_messages
from tests.external.http_service import Exchange, Service, serving
from tests.external.vendors.zep.double import ZepDouble

pytestmark = pytest.mark.slow

SDK = json.loads((ZepDouble.recorded / "sdk.json").read_text("utf-8"))
USER, THREAD, ITEM = (f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in ("1", "2", "3"))
EPISODE = {
    "data": "Likes tea.",
    "source_description": "profile of the user",
    "metadata": {"source": "memoranda"},
    "reference_time": "2026-11-16T08:00:00+00:00",
}
CALLS: dict[str, Callable[[ZepClient], Any]] = {
    "get_project": lambda client: client.get_project(),
    "look_up_user": lambda client: client.look_up_user("memoranda_default"),
    "create_user": lambda client: client.create_user("memoranda_default", {"source": "memoranda"}),
    "delete_user": lambda client: client.delete_user(USER),
    "create_thread": lambda client: client.create_thread(USER),
    "list_threads": lambda client: list(client.list_threads(USER)),
    "delete_thread": lambda client: client.delete_thread(THREAD),
    "add_messages": lambda client: client.add_messages(
        THREAD, build_messages("Hello", "", "k1", "s1", "2026-11-16T08:00:00+00:00"), "k"
    ),
    "newest_messages": lambda client: client.newest_messages(THREAD),
    "oldest_message": lambda client: client.oldest_message(THREAD),
    "list_thread_episodes": lambda client: list(client.list_thread_episodes(THREAD)),
    "get_thread_context": lambda client: client.get_thread_context(THREAD),
    "get_graph_context": lambda client: client.get_graph_context(USER, "tea", 3000),
    "search edges": lambda client: client.search(USER, "edges", "tea", 6),
    "search nodes": lambda client: client.search(USER, "nodes", "tea", 6),
    "search observations": lambda client: client.search(USER, "observations", "tea", 6),
    "search episodes": lambda client: client.search(USER, "episodes", "tea", 6),
    "add_episode": lambda client: client.add_episode(USER, EPISODE, "k"),
    "get_item edges": lambda client: client.get_item(USER, "edges", ITEM),
    "get_item episodes": lambda client: client.get_item(USER, "episodes", ITEM),
    "delete_item edges": lambda client: client.delete_item(USER, "edges", ITEM),
    "delete_item episodes": lambda client: client.delete_item(USER, "episodes", ITEM),
}


@pytest.fixture
def service() -> Iterator[Service]:
    def respond(exchange: Exchange) -> None:
        exchange.answer(200, {"items": [], "episode": {}, "messages": [{}]})

    with serving(respond) as service:
        yield service


def test_every_recorded_request_has_a_call() -> None:
    """And the other way round."""
    assert set(CALLS) == set(SDK["requests"])


def test_a_request_is_the_one_that_zeps_client_sends(service: Service) -> None:
    """Method, path, query, body, authentication, and whether it has an idempotency key."""
    for name, call in CALLS.items():
        client = RemoteClient("zep", f"{service.url}/api/v4", headers={"Authorization": "Api-Key k"})
        call(ZepClient(client))
        client.close()
        method, target, headers, body = service.requests[-1]
        parts = urlsplit(target)
        assert {
            "method": method,
            "path": parts.path,
            "query": dict(parse_qsl(parts.query)),
            "authorization": headers["Authorization"].split()[0],
            "idempotency_key": "Idempotency-Key" in headers,
            "body": json.loads(body) if body else None,
        } == SDK["requests"][name]


def test_the_double_answers_with_fields_that_zeps_client_knows() -> None:
    """In every object of every answer."""
    double, types = ZepDouble(), SDK["types"]
    user = _checked(double.answer("POST", "users", {"user_id": "u"}, {}), types["User"])["uuid"]
    _checked(double.answer("POST", "users/lookup", {"user_id": "u"}, {}), types["User"])
    _checked(double.answer("GET", "project", {}, {}), types["Project"])
    thread = _checked(double.answer("POST", "threads", {"user_uuid": user}, {}), types["Thread"])["uuid"]
    messages = build_messages("I drink tea.", "Noted.", "k1", "s1", "2026-11-16T08:00:00+00:00")
    added = _checked(
        double.answer("POST", f"threads/{thread}/messages", {"messages": messages}, {}), types["AddMessagesResult"]
    )
    assert set(messages[0]) <= set(types["AddMessage"])
    assert set(added["messages"][0]) <= set(types["Message"])
    assert set(added["task"]) <= set(types["Task"])
    options = {"order": "asc", "page_size": "5"}
    pages = {
        "Message": double.answer("GET", f"threads/{thread}/messages", {}, options),
        "Thread": double.answer("GET", "threads", {}, {"user_uuid": user}),
        "Episode": double.answer("GET", f"threads/{thread}/episodes", {}, {}),
        "Edge": double.answer("POST", f"graphs/{user}/search/edges", {"query": "tea"}, options),
    }
    for name, page in pages.items():
        items = _checked(page, types[f"{name}Page"])["items"]
        assert items and set(items[0]) <= set(types[name])
    _checked(double.answer("GET", f"threads/{thread}/context", {}, {}), types["ThreadContextResponse"])
    _checked(double.answer("POST", f"graphs/{user}/context", {"query": "tea"}, {}), types["GraphContextResponse"])
    episode = _checked(double.answer("POST", f"graphs/{user}/episodes", dict(EPISODE), {}), types["AddEpisodeResult"])
    assert set(episode["episode"]) <= set(types["Episode"])
    _checked(double.answer("DELETE", f"threads/{thread}", {}, {}), types["ThreadDeleteResult"])
    _checked(double.answer("DELETE", f"users/{user}", {}, {}), types["UserDeleteResult"])
    error = _checked(double.answer("POST", "users/lookup", {"user_id": "u"}, {}), types["ApiError"])
    assert set(error["error"]) <= set(types["ErrorBody"])


def _checked(answer: tuple[int, Any], fields: list[str]) -> dict[str, Any]:
    assert isinstance(answer[1], dict)
    assert set(answer[1]) <= set(fields)
    return answer[1]
