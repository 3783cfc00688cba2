"""API keys over HTTP: which header, which scope, which user, and what the service does without any."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.errors import AccessError
from memoranda.service.http.callers import CACHE_SECONDS, Authenticator
from memoranda.service.http.problems import Problem
from memoranda.service.http.server import refuse_open_address
from memoranda.service.http.settings import ServerSettings
from tests.service.http.running_service import RunningService, run_service


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningService]:
    """A service of its own."""
    with run_service(tmp_path / "home") as started:
        yield started


@pytest.mark.parametrize("header", ["Authorization: Bearer {}", "Authorization: Token {}", "X-API-Key: {}"])
def test_a_key_is_accepted_in_three_headers(shared_service: RunningService, header: str) -> None:
    """So that the clients of other products work."""
    name, value = header.format(shared_service.key("read")).split(": ")
    assert shared_service.client().get("/v1/sessions", headers={name: value}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Basic abc"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer mk_000000000000_" + "x" * 43},
        {"X-API-Key": "nonsense"},
    ],
)
def test_without_a_valid_key_nothing_is_answered(shared_service: RunningService, headers: dict[str, str]) -> None:
    """401, with the scheme that the service wants."""
    answer = shared_service.client().get("/v1/sessions", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_key_with_a_changed_secret_is_refused(shared_service: RunningService) -> None:
    """The id alone opens nothing."""
    key = shared_service.key("read")
    wrong = key[:-1] + ("a" if key[-1] != "a" else "b")
    assert shared_service.client(wrong).get("/v1/sessions").status_code == 401


def test_a_scope_that_is_missing_refuses(shared_service: RunningService) -> None:
    """A key that may only read changes nothing."""
    client = shared_service.client(shared_service.key("read", user="reader"))
    assert client.get("/v1/sessions").status_code == 200
    refused = client.post("/v1/sessions", json={})
    assert (refused.status_code, refused.json()["reason"]) == (403, "forbidden")
    assert client.delete("/v1/sessions/x").status_code == 403


def test_a_key_that_is_bound_to_a_user_names_no_other(shared_service: RunningService) -> None:
    """Its own user may be named or left out."""
    client = shared_service.client(shared_service.key(user="bound"))
    assert client.get("/v1/sessions", params={"user": "bound"}).status_code == 200
    assert client.get("/v1/sessions", params={"user": "other"}).status_code == 403


def test_tenants_with_users_of_the_same_name_share_nothing(shared_service: RunningService) -> None:
    """A user of a tenant is stored under the tenant's name, which the default tenant may not use."""
    clients = {name: shared_service.client(shared_service.key(tenant=name)) for name in ("acme", "globex", "default")}
    for name in ("acme", "globex"):
        sent = clients[name].post("/v1/memory/user/entries", params={"user": "ana"}, json={"text": f"Works at {name}."})
        assert sent.status_code == 201
    for name in ("acme", "globex"):
        entries = clients[name].get("/v1/memory/user/entries", params={"user": "ana"}).json()["entries"]
        assert [entry["text"] for entry in entries] == [f"Works at {name}."]
    unnamed = clients["acme"].get("/v1/memory/user/entries")
    assert (unnamed.status_code, unnamed.json()["reason"]) == (422, "no_user")
    crossing = clients["default"].get("/v1/memory/user/entries", params={"user": "acme/ana"})
    assert crossing.status_code == 403


def test_a_revoked_key_is_refused(shared_service: RunningService) -> None:
    """At the latest when the service asks its database again, a second later; then it is not known any more either."""
    keys, now = shared_service.service.keys, [0.0]
    authenticator = Authenticator(keys, clock=lambda: now[0])
    key, token = keys.create(["read"])
    assert authenticator.identify(token).key_id == key.id
    keys.revoke(key.id)
    now[0] += CACHE_SECONDS
    assert authenticator.cached(token) is None
    assert authenticator.known(token) is not None
    with pytest.raises(Problem, match="revoked"):
        authenticator.identify(token)
    assert authenticator.known(token) is None


def test_a_key_that_was_recognised_is_known_for_hours_but_not_after_its_end(shared_service: RunningService) -> None:
    """So that the metrics can be read while the database is away; a key that was never recognised stays unknown."""
    keys, now = shared_service.service.keys, [0.0]
    authenticator = Authenticator(keys, clock=lambda: now[0])
    (_, lasting), (_, ending) = keys.create(["admin"]), keys.create(["admin"], expires_at=time.time() + 60)
    for token in (lasting, ending):
        assert authenticator.known(token) is None
        authenticator.identify(token)
    now[0] += 61
    assert authenticator.cached(lasting) is None
    assert authenticator.known(lasting) is not None
    assert authenticator.known(ending) is None
    now[0] += 12 * 3600
    assert authenticator.known(lasting) is None


def test_without_any_key_the_owner_uses_the_service_on_this_machine(running: RunningService) -> None:
    """Pages of other sites do not, however a browser gets there."""
    client = running.client()
    assert client.post("/v1/sessions", json={"id": "mine"}).status_code == 201
    assert running.service.memory.sessions.get_session("mine") is not None
    assert client.get("/v1/sessions", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/v1/sessions", headers={"Origin": "https://evil.example"}).status_code == 403
    typed = client.post("/v1/sessions", content=b"{}", headers={"Content-Type": "text/plain"})
    assert typed.status_code == 415


def test_an_open_address_needs_a_key(running: RunningService) -> None:
    """Otherwise the service does not start."""
    with pytest.raises(AccessError, match="memoranda server key create"):
        refuse_open_address("0.0.0.0", running.service)
    running.key("read")
    refuse_open_address("0.0.0.0", running.service)


def test_a_key_that_sends_too_much_waits(tmp_path: Path) -> None:
    """429 with the seconds to wait; another key is not affected."""
    with run_service(tmp_path / "home", ServerSettings(rate=0.001, burst=2)) as limited:
        client, other = limited.client(limited.key("read")), limited.client(limited.key("read"))
        assert [client.get("/v1/sessions").status_code for _ in range(3)] == [200, 200, 429]
        assert int(client.get("/v1/sessions").headers["retry-after"]) > 0
        assert other.get("/v1/sessions").status_code == 200
