"""Two users' keys against every route of the compatible API: nothing of one is seen or changed by the other."""

from typing import Any

import httpx
import pytest

from memoranda.service.compatible import mem0
from memoranda.service.http.route import Route
from memoranda.service.mounts import COMPATIBLE
from tests.service.http.running_service import RunningService

COMPATIBLE_ROUTES = {route.name: route for mount in COMPATIBLE.values() for route in mount.routes}
_SECRET = "the wombat of ana"
_UNSUPPORTED = 501
# Their answer is the same for everyone.
_WITHOUT_USER = {"mem0_ping", *(name for name, route in COMPATIBLE_ROUTES.items() if route.handler is mem0.refuse)}
# For each route: the body of a request that tries to reach what belongs to the other user.
_BODIES: dict[str, Any] = {
    "mem0_add": {"messages": [{"role": "user", "content": "hello"}], "user_id": "ana"},
    "mem0_list": {"filters": {"user_id": "*"}},
    "mem0_search": {"query": "wombat", "filters": {"user_id": "ana"}},
    "mem0_update": {"text": "changed"},
    "mem0_update_batch": {"memories": [{"memory_id": "{memory_id}", "text": "changed"}]},
    "mem0_delete_batch": {"memories": [{"memory_id": "{memory_id}"}]},
    "mem0_feedback": {"memory_id": "{memory_id}", "feedback": "NEGATIVE"},
}
_QUERIES = {"mem0_delete_all": {"user_id": "*"}}
# These name no foreign id; their answers must have nothing of the other user.
_LISTS = ("mem0_ping", "mem0_add", "mem0_list", "mem0_search", "mem0_delete_all", "mem0_entities")


class Belongings:
    """What one user has, and a picture of it to compare."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        body = {"messages": [{"role": "user", "content": _SECRET}], "user_id": "ana"}
        (event,) = client.post("/v3/memories/add/", json=body).json()["results"]
        self.ids = {
            "memory_id": event["id"], "type": "user", "name": "ana", "org_id": "default", "project_id": "default",
        }  # fmt: skip

    def picture(self) -> list[Any]:
        everything = self.client.post("/v3/memories/", json={"filters": {"user_id": "*"}})
        return [self.client.get(f"/v1/memories/{self.ids['memory_id']}/").json(), everything.json()]


def send_request(client: httpx.Client, route: Route, ids: dict[str, str], **headers: str) -> httpx.Response:
    body = _BODIES.get(route.name, {}) if route.body is not None else None
    if body is not None:
        body = _fill(body, ids)
    path = route.path.format(**ids)
    return client.request(route.method, path, json=body, params=_QUERIES.get(route.name), headers=headers)


def _fill(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _fill(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, ids) for each in value]
    return value.format(**ids) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def ana(compatible: RunningService) -> Belongings:
    return Belongings(compatible.client(compatible.key(user="isolated-ana")))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMPATIBLE_ROUTES))
def test_a_foreign_id_is_not_found(compatible: RunningService, ana: Belongings, name: str) -> None:
    """Every route answers another user's key as if the id did not exist, and changes nothing."""
    before = ana.picture()
    bo = compatible.client(compatible.key(user=f"isolated-bo-{name}"))
    answer = send_request(bo, COMPATIBLE_ROUTES[name], ana.ids)
    if name in _LISTS:
        assert answer.status_code in (200, 204), answer.text
    else:
        assert answer.status_code in (403, 404, _UNSUPPORTED), answer.text
    assert _SECRET not in answer.text
    assert ana.picture() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(COMPATIBLE_ROUTES) - _WITHOUT_USER))
def test_a_bound_key_cannot_name_another_user(compatible: RunningService, ana: Belongings, name: str) -> None:
    """Not even by the header: the request is refused before anything is done."""
    bo = compatible.client(compatible.key(user="isolated-bo"))
    assert send_request(bo, COMPATIBLE_ROUTES[name], ana.ids, **{"X-Memoranda-User": "isolated-ana"}).status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMPATIBLE_ROUTES))
def test_every_route_needs_a_key_with_its_scope(compatible: RunningService, name: str) -> None:
    """Without a key 401, with a key that lacks the scope 403, in the form of the API."""
    route, ids = COMPATIBLE_ROUTES[name], dict.fromkeys(_IDS, "x")
    anonymous = send_request(compatible.client(), route, ids)
    assert anonymous.status_code == 401
    assert anonymous.headers["content-type"] == "application/json"
    other = "append" if route.scope == "read" else "read"
    assert send_request(compatible.client(compatible.key(other, user="scoped")), route, ids).status_code == 403


_IDS = ("memory_id", "type", "name", "org_id", "project_id")


def test_a_key_of_a_tenant_names_its_user_in_a_header(compatible: RunningService) -> None:
    """A key that is bound to no user works for each of its tenant's users, and for no other tenant's."""
    client = compatible.client(compatible.key(tenant="acme"))
    everything = {"filters": {"user_id": "*"}}
    assert client.post("/v3/memories/", json=everything).status_code == 422
    for user in ("u1", "u2"):
        body = {"messages": [{"role": "user", "content": f"I am {user}."}], "user_id": "me"}
        client.post("/v3/memories/add/", json=body, headers={"X-Memoranda-User": user}).raise_for_status()
    for tenant, texts in (("acme", ["I am u1."]), ("other", [])):
        of_tenant = compatible.client(compatible.key(tenant=tenant))
        listed = of_tenant.post("/v3/memories/", json=everything, headers={"X-Memoranda-User": "u1"}).json()
        assert [memory["memory"] for memory in listed["results"]] == texts
