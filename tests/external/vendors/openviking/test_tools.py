"""The tools of OpenViking, as a model calls them."""

import json
from typing import Any

import pytest

from memoranda.external.vendors.openviking.vendor import OpenVikingProvider
from tests.external.vendors.openviking.conftest import Start
from tests.external.vendors.openviking.double import VikingDouble

pytestmark = pytest.mark.slow

MEMORIES = "viking://user/default/memories"


def _call(provider: OpenVikingProvider, name: str, **args: Any) -> dict[str, Any]:
    answer = json.loads(provider.handle_tool_call(name, args, session_id="s1"))
    assert isinstance(answer, dict)
    return answer


def test_the_tools_have_the_names_and_arguments_of_the_design(start: Start) -> None:
    """Prompts and habits of models depend on them."""
    tools = {schema["name"]: schema["parameters"] for schema in start().get_tool_schemas()}
    assert {name: (list(tool["properties"]), tool["required"]) for name, tool in tools.items()} == {
        "viking_search": (["query", "mode", "scope", "limit"], ["query"]),
        "viking_read": (["uri", "uris", "level"], []),
        "viking_browse": (["action", "path"], ["action"]),
        "viking_remember": (["content", "category"], ["content"]),
        "viking_forget": (["uri"], ["uri"]),
        "viking_add_resource": (["url", "reason", "to", "parent", "instruction", "wait", "timeout"], ["url"]),
    }


def test_a_memory_is_remembered_found_read_and_forgotten(start: Start, server: VikingDouble) -> None:
    """The address that one tool returns is what the next one accepts."""
    provider = start()
    uri = _call(provider, "viking_remember", content="The build server is called Hephaistos.", category="entity")["uri"]
    assert uri.startswith(f"{MEMORIES}/entities/")
    for mode in ("auto", "fast", "deep"):
        [hit] = _call(provider, "viking_search", query="build server called", mode=mode)["results"]
        assert (hit["uri"], hit["type"], hit["abstract"]) == (uri, "entity", "The build server is called Hephaistos.")
    assert _call(provider, "viking_read", uri=uri)["content"] == "The build server is called Hephaistos."
    found = _call(provider, "viking_browse", action="stat", path=uri)
    assert found["entry"]["isDir"] is False
    assert _call(provider, "viking_forget", uri=uri) == {"status": "deleted", "uri": uri}
    assert _call(provider, "viking_forget", uri=uri) == {"error": f"There is nothing at {uri}."}
    assert _call(provider, "viking_read", uri=uri) == {"error": f"There is nothing at {uri}."}
    assert server.files == {}


def test_the_same_memory_is_stored_once(start: Start, server: VikingDouble) -> None:
    """A model that repeats itself does not fill the memory."""
    provider = start()
    for content in ("Uses tabs.", " Uses tabs. "):
        _call(provider, "viking_remember", content=content)
    assert list(server.files.values()) == ["Uses tabs."]


def test_directories_are_browsed_and_read_as_overviews(start: Start) -> None:
    """`~` and paths without a scheme mean the user's own directory."""
    provider = start()
    _call(provider, "viking_remember", content="Uses tabs.", category="pattern")
    assert [entry["uri"] for entry in _call(provider, "viking_browse", action="list")["entries"]] == [
        f"{MEMORIES}/patterns"
    ]
    assert len(_call(provider, "viking_browse", action="tree", path="viking://~/memories")["entries"]) == 2
    assert "overview" in _call(provider, "viking_read", uri="memories/patterns")["content"]


def test_several_addresses_are_read_at_once(start: Start) -> None:
    """At most three, each shortened more than a single one."""
    provider = start()
    uris = [_call(provider, "viking_remember", content=f"{n} {'x' * 9_000}")["uri"] for n in range(3)]
    found = _call(provider, "viking_read", uris=uris)["results"]
    assert [len(entry["content"]) for entry in found] == [2_500] * 3
    assert len(_call(provider, "viking_read", uri=uris[0])["content"]) == 8_000
    assert "one to 3 uris" in _call(provider, "viking_read", uris=[*uris, uris[0]])["error"]
    assert "one to 3 uris" in _call(provider, "viking_read")["error"]


def test_addresses_outside_the_users_own_are_refused(start: Start) -> None:
    """By every tool that takes one; the server is not asked."""
    for path in [
        "viking://",
        "viking://user/default/peers/default__ana/memories/turns/a.md",
        "viking://user/ana/memories/a.md",
        "viking://user/default/memories/../peers/x/memories/a.md",
        "viking://user/default/memories/%2e%2e/a.md?x",
        "viking://user/default/sessions/s1",
        "viking://user/default/memoriesandmore/a.md",
        "viking://~other/memories/a.md",
        "../peers/default__ana/memories",
    ]:
        provider = start()
        for name, args in (
            ("viking_read", {"uri": path}),
            ("viking_forget", {"uri": path}),
            ("viking_browse", {"action": "list", "path": path}),
            ("viking_search", {"query": "x", "scope": path}),
            ("viking_add_resource", {"url": "https://example.org", "to": path}),
            ("viking_add_resource", {"url": "https://example.org", "parent": path}),
        ):
            assert "is outside" in _call(provider, name, **args)["error"]


@pytest.mark.parametrize("path", [MEMORIES, f"{MEMORIES}/turns/.overview.md", f"{MEMORIES}/a.txt"])
def test_only_memories_can_be_forgotten(start: Start, path: str) -> None:
    """No directory, no summary that the server writes, and no other file."""
    assert "is not a memory" in _call(start(), "viking_forget", uri=path)["error"]


def test_shared_resources_can_be_read_but_not_forgotten(start: Start, server: VikingDouble) -> None:
    """They belong to all users of the account."""
    provider = start("ana")
    uri = "viking://resources/handbook/a.md"
    server.files[uri] = "The handbook of the company."
    assert _call(provider, "viking_read", uri=uri)["content"] == "The handbook of the company."
    assert _call(provider, "viking_search", query="handbook of the company")["total"] == 1
    assert "is outside" in _call(provider, "viking_forget", uri=uri)["error"]


def test_a_resource_is_private_unless_the_model_says_otherwise(start: Start, server: VikingDouble) -> None:
    """It goes to the user's own resources; `to` may name a shared place."""
    provider = start("ana")
    added = _call(provider, "viking_add_resource", url="https://example.org/a.md", reason="Useful.")
    assert added["uri"] == "viking://user/default/peers/default__ana/resources/a"
    shared = _call(provider, "viking_add_resource", url="https://example.org/a.md", to="viking://resources/a")
    assert shared["uri"] == "viking://resources/a"
    both = _call(provider, "viking_add_resource", url="https://example.org", to="memories/a", parent="memories")
    assert "not both" in both["error"]


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "~/.ssh/id_rsa"])
def test_files_of_this_machine_are_not_uploaded(start: Start, url: str) -> None:
    """A model must not be able to send them away."""
    assert "not uploaded" in _call(start(), "viking_add_resource", url=url)["error"]
