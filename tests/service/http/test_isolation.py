"""One user's key against every route with every id of another user: generated from the table of routes."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memoranda.memory.record.scope import Scope
from memoranda.service.http.route import JSON, JSON_LINES, Route
from memoranda.service.http.routes import ROUTES
from memoranda.service.http.routes.memory import entry_id
from memoranda.support.origin import PERSON, Origin
from tests.service.http.running_service import RunningService

# What a stranger may ask for, and what only the answers of its owner have.
MARK, SECRET = "zanzibar", "stonetown"
CHECKED = [route for route in ROUTES if route.scope is not None and route.name != "metrics"]
# The ids that a request may carry: in the path, in the query, in the body.
_PATH_IDS = {"session_id", "message_id", "entry_id", "proposal_id", "key"}


@dataclass(frozen=True)
class Victim:
    """A user with one of everything."""

    user: str
    ids: dict[str, str]


@pytest.fixture(scope="module", params=["default", "acme"])
def tenant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def victim(shared_service: RunningService, tenant: str) -> Victim:
    return add_victim(shared_service, tenant)


def add_victim(running: RunningService, tenant: str) -> Victim:
    """Ana, whose every text has a mark."""
    name = f"ana-{tenant}"
    stored = name if tenant == "default" else f"{tenant}/{name}"
    memory = running.service.memory_of(stored)
    session_id = f"{MARK}-session-{tenant}"
    memory.sessions.create_session(session_id, "http", title=f"{MARK} and {SECRET} {tenant}")
    message_id = memory.sessions.append_message(session_id, "user", f"We sail to {MARK} by way of {SECRET}.")
    entry = f"Was born in {SECRET}, {MARK}."
    memory.curated.add("memory", entry, PERSON)
    memory.items.put(("notes",), "hours", {"text": f"{MARK} opens when {SECRET} does"})
    proposal = memory.curated.proposals.add("memory", [], Origin("agent"), [])
    return Victim(
        name,
        {
            "session_id": session_id,
            "message_id": str(message_id),
            "entry_id": entry_id(entry),
            "proposal_id": proposal.id,
            "target": "memory",
            "tool": "session_search",
            "key": "hours",
        },
    )


@pytest.fixture(scope="module")
def stranger(shared_service: RunningService, tenant: str, victim: Victim) -> httpx.Client:
    """Another user of the same tenant, with every scope."""
    return shared_service.client(shared_service.key(tenant=tenant, user="bob"))


def build_request(route: Route, victim: Victim, **query: str) -> dict[str, Any]:
    """A valid request of a route, with the ids of the victim wherever it takes an id."""
    path = route.path
    for name in route.path_names:
        # A stranger may store an item of the same name.
        value = "own" if route.name == "put_item" else victim.ids[name]
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    example = route.example.query if route.example is not None else {}
    required = {field.name for field in route.query if field.required}
    asked: dict[str, Any] = {name: value for name, value in example.items() if name in required} | query
    if any(field.name == "session" for field in route.query):
        asked["session"] = victim.ids["session_id"]
    if any(field.name == "namespace" for field in route.query):
        asked["namespace"] = "notes"
    request: dict[str, Any] = {"method": route.method, "url": path, "params": asked}
    if route.body_type == JSON_LINES:
        line = f'{{"id":"{victim.ids["session_id"]}","source":"http","messages":[]}}\n'
        return request | {"content": line, "headers": {"Content-Type": JSON_LINES}}
    if route.body is not None:
        body = dict(route.example.body) if route.example is not None else {}
        if route.name == "create_session":
            body = {"id": victim.ids["session_id"]}
        if route.name in ("search", "recall"):
            body = {"query": MARK} if route.name == "search" else {"question": MARK}
        if route.name == "forget":
            body = {"session": victim.ids["session_id"]}
        if route.name == "undo_change":
            body = {"change": 1}
        request["json"] = body
    return request


# A stream does not end; its events come from the same function as the feed's. Forgetting has a test of its own below.
@pytest.mark.slow
def test_no_route_shows_or_changes_what_belongs_to_another_user(
    shared_service: RunningService, victim: Victim, stranger: httpx.Client
) -> None:
    """A foreign id is as unknown as one that does not exist, and nothing else has the other user's texts."""
    for route in [route for route in CHECKED if route.name not in ("feed_stream", "forget")]:
        check_stranger(stranger, victim, route)


@pytest.mark.slow
def test_forgetting_neither_shows_nor_changes_what_belongs_to_another_user(
    victim: Victim, stranger: httpx.Client
) -> None:
    """It reads every byte of the home in another process, so it takes long."""
    check_stranger(stranger, victim, next(route for route in CHECKED if route.name == "forget"))


def check_stranger(stranger: httpx.Client, victim: Victim, route: Route) -> None:
    """Send a request of a route with the ids of the victim, and compare the answer with what a stranger may see."""
    answer = stranger.request(**build_request(route, victim))
    takes_id = bool(_PATH_IDS & set(route.path_names)) and route.name != "put_item"
    has_foreign_id = takes_id or route.name in ("create_session", "prompt")
    if has_foreign_id:
        assert answer.status_code in (403, 404), (route.name, answer.text)
    else:
        assert answer.status_code < 500, (route.name, answer.text)
    if answer.status_code < 300:
        assert SECRET not in answer.text, route.name


@pytest.mark.slow
def test_a_key_that_is_bound_to_a_user_names_no_other_user(victim: Victim, stranger: httpx.Client) -> None:
    """Every route refuses the other user's name."""
    for route in [route for route in CHECKED if route.for_user]:
        answer = stranger.request(**build_request(route, victim, user=victim.user))
        assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden")


def test_the_other_user_has_lost_nothing(shared_service: RunningService, victim: Victim, tenant: str) -> None:
    """After all of these requests."""
    check_victim(shared_service, victim, tenant)


def check_victim(running: RunningService, victim: Victim, tenant: str) -> None:
    """Everything is as `add_victim` left it."""
    stored = victim.user if tenant == "default" else f"{tenant}/{victim.user}"
    memory = running.service.memory_of(stored)
    assert [message["content"] for message in memory.sessions.get_messages(victim.ids["session_id"])] == [
        f"We sail to {MARK} by way of {SECRET}."
    ]
    assert memory.entries("memory") == (f"Was born in {SECRET}, {MARK}.",)
    item = memory.items.get(("notes",), "hours")
    assert item is not None and (item.version, SECRET in item.value["text"]) == (1, True)
    assert memory.curated.proposals.get(victim.ids["proposal_id"]) is not None
    everyone = memory.sessions.scoped(Scope.everyone())
    row = everyone.get_session(victim.ids["session_id"])
    assert row is not None and row["user_id"] == stored


@pytest.mark.slow
def test_every_route_needs_a_key_and_its_scope(shared_service: RunningService, victim: Victim) -> None:
    """401 without a key; 403 with a key that has all other scopes."""
    for route in CHECKED:
        request = build_request(route, victim)
        assert shared_service.client().request(**request).status_code == 401
        others = [scope for scope in ("read", "append", "curate", "admin") if scope != route.scope]
        refused = shared_service.client(shared_service.key(*others, user="carl")).request(**request)
        assert (refused.status_code, refused.json()["reason"]) == (403, "forbidden")


def test_the_shapes_of_bodies_are_json_or_json_lines() -> None:
    """So that the requests above fit every route."""
    assert {route.body_type for route in CHECKED} == {JSON, JSON_LINES}
