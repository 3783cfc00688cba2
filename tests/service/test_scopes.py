"""A key with one scope against every route and every kind of imported line: it changes only what its scope guards."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from memoranda.home.access.keys import SCOPES
from memoranda.service.http.route import JSON_LINES
from memoranda.service.http.routes import ROUTES
from memoranda.service.mounts import COMPATIBLE
from tests.service.compatible.test_isolation import COMPATIBLE_ROUTES, Belongings, send_request
from tests.service.http.running_service import RunningService, run_service
from tests.service.http.test_isolation import SECRET, Victim, add_victim, build_request

# A stream does not end, and forgetting reads the whole home.
_OWN_ROUTES = {route.name: route for route in ROUTES if route.name not in ("feed_stream", "forget")}
_NEW = {"version": 2, "created_at": 1e9, "updated_at": 9e9}
_EXISTING = {"namespace": ["notes"], "key": "hours"}
_SESSION = {"id": "zanzibar-session-default", "source": "http"}
_MESSAGE = {"role": "user", "content": "imported", "timestamp": 1e9}
_LINES: dict[str, Any] = {
    "a new session": {"id": "imported", "source": "http", "messages": [_MESSAGE]},
    "messages of an existing session": _SESSION | {"messages": [_MESSAGE]},
    "a title and a prompt of an existing session": _SESSION | {"title": "t", "system_prompt": "p", "messages": []},
    "a new item": {"item": {"namespace": ["n"], "key": "k", "versions": [_NEW | {"event": "add", "value": {"a": 1}}]}},
    "a new version of an item": {"item": _EXISTING | {"versions": [_NEW | {"event": "update", "value": {"a": 1}}]}},
    "the deletion of an item": {"item": _EXISTING | {"versions": [_NEW | {"event": "delete"}]}},
    "an item of another user": {"item": _EXISTING | {"versions": [_NEW | {"event": "delete"}]}, "user_id": "ana"},
}


class State(NamedTuple):
    """What the scopes guard in a home."""

    memory: list[Any]
    conversations: list[Any]
    session_ids: set[str]


class _Target(NamedTuple):
    running: RunningService
    home: Path
    victim: Victim
    belongings: Belongings

    def client(self, scope: str) -> httpx.Client:
        return self.running.client(self.running.key(scope, user=self.victim.user))

    def state(self) -> State:
        with sqlite3.connect(self.home / "state.db") as connection:
            items, sessions, messages = (
                connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
                for table in ("memory_items", "sessions", "messages")
            )
            ids = {row[0] for row in connection.execute("SELECT id FROM sessions")}
        connection.close()
        memory = self.running.service.memory_of(self.victim.user)
        curated = [memory.entries("memory"), memory.entries("user"), memory.curated.proposals.all()]
        return State([items, curated], [sessions, messages], ids)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Target]:
    """A service where one user has something of everything, items with an end among them."""
    home = tmp_path_factory.mktemp("scopes") / "home"
    with run_service(home, mounts=tuple(COMPATIBLE.values())) as running:
        victim = add_victim(running, "default")
        belongings = Belongings(running.client(running.key(user=victim.user)))
        running.service.memory_of(victim.user).items.put(("private",), "k", {"text": "a"}, ttl=3_600)
        with sqlite3.connect(home / "state.db") as connection:
            # Most of its time has passed, so that a read may start it again.
            connection.execute("UPDATE memory_items SET expires_at = expires_at - 1800 WHERE ttl IS NOT NULL")
        connection.close()
        yield _Target(running, home, victim, belongings)


def _check(scope: str, before: State, after: State) -> None:
    """Only `curate` changes memory and items, only `append` conversations; `admin` may remove either."""
    if scope not in ("curate", "admin"):
        assert after.memory == before.memory
    if scope not in ("append", "admin"):
        assert after.conversations == before.conversations
    if scope != "admin":
        assert before.session_ids <= after.session_ids


@pytest.mark.slow
def test_no_key_changes_what_another_scope_guards(target: _Target) -> None:
    """Through none of the routes, with ids that exist and belong to the key's own user; `append` shows nothing."""
    for scope, name in [(scope, name) for scope in SCOPES for name in (*_OWN_ROUTES, *COMPATIBLE_ROUTES)]:
        before = target.state()
        client = target.client(scope)
        if name in _OWN_ROUTES:
            answer = client.request(**build_request(_OWN_ROUTES[name], target.victim))
            # Who ends a session sees its title.
            assert scope != "append" or name == "end_session" or SECRET not in answer.text
        else:
            send_request(client, COMPATIBLE_ROUTES[name], target.belongings.ids)
        _check(scope, before, target.state())


def test_no_key_imports_what_another_scope_guards(target: _Target) -> None:
    """Whatever kind of line it is; together with lines that the key may import, nothing is."""
    for scope, line in [(scope, line) for scope in SCOPES for line in _LINES.values()]:
        before = target.state()
        content = json.dumps(_LINES["a new session"] | {"id": "first"}) + "\n" + json.dumps(line)
        answer = target.client(scope).post("/v1/import", content=content, headers={"Content-Type": JSON_LINES})
        after = target.state()
        _check(scope, before, after)
        is_allowed = scope == "append" and "item" not in line
        assert answer.status_code == (200 if is_allowed else 403)
        if not is_allowed:
            assert after == before
