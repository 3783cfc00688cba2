"""The bundled providers: each is offered, says what it needs, and has the tools that people know it by."""

import os
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.external.loading.discovery import BUNDLED, DiscoveredProvider
from memoranda.external.loading.loader import load
from memoranda.external.loading.setup import fields_of
from tests.capabilities.conversations import take_turn
from tests.cli.terminal import Terminal
from tests.timing import wait_until

pytestmark = pytest.mark.slow

# The tools of each provider in the design of Hermes Agent's memory; a provider may have more.
TOOLS: dict[str, set[str]] = {
    "honcho": {"honcho_profile", "honcho_search", "honcho_context", "honcho_reasoning", "honcho_conclude"},
    "openviking": {"viking_search", "viking_read", "viking_browse", "viking_remember", "viking_add_resource"},
    "mem0": {"mem0_profile", "mem0_search", "mem0_conclude"},
    "hindsight": {"hindsight_retain", "hindsight_recall", "hindsight_reflect"},
    "holographic": {"fact_store", "fact_feedback"},
    "retaindb": {
        *("retaindb_profile", "retaindb_search", "retaindb_context", "retaindb_remember", "retaindb_forget"),
    },
    "byterover": {"brv_query", "brv_curate", "brv_status"},
    "supermemory": {"supermemory_store", "supermemory_search", "supermemory_forget", "supermemory_profile"},
}


@pytest.fixture
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs that a provider needs, as far as looking for them goes."""
    program = tmp_path / "bin" / "brv"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("_programs")
@pytest.mark.parametrize("bundled", BUNDLED, ids=lambda provider: provider.name)
def test_a_bundled_provider_is_offered_with_its_settings_and_tools(tmp_path: Path, bundled: DiscoveredProvider) -> None:
    """Its service is not asked for any of that."""
    home = tmp_path / "home"
    listed = {item["name"]: item for item in Terminal(home).json("provider", "list")["providers"]}
    assert (listed[bundled.name]["origin"], listed[bundled.name]["problem"]) == ("bundled", None)
    assert bundled.description
    provider = load(bundled, home, {})
    assert provider.name == bundled.name
    fields = fields_of(provider)
    assert fields and all(field.key and field.description for field in fields)
    assert all(field.env_var for field in fields if field.secret)
    secrets = {field.env_var: "a-test-key" for field in fields if field.secret}
    provider.initialize("s1", hermes_home=str(home), platform="cli", agent_context="primary", secrets=secrets)
    tools = {schema["name"] for schema in provider.get_tool_schemas()}
    provider.shutdown()
    assert tools and tools >= TOOLS.get(bundled.name, set())


def test_every_provider_of_the_design_is_bundled() -> None:
    """Eight of them; others may be added."""
    assert TOOLS.keys() <= {provider.name for provider in BUNDLED}


def test_holographic_memory_stores_finds_relates_and_judges_facts(tmp_path: Path) -> None:
    """A file on this machine: search, questions about entities, contradictions, feedback, and recall into a turn."""
    Terminal(tmp_path).ok("provider", "setup", "holographic", "--set", "auto_extract=yes")
    with memoranda.open(tmp_path) as memory:
        session = memory.session(source="cli")

        def call(action: str, **arguments: Any) -> dict[str, Any]:
            return session.call("fact_store", {"action": action, **arguments})

        added = call("add", content="Anna Berg maintains Project Atlas.", category="project")
        assert added["success"], added
        call("add", content="Project Atlas is deployed on Hetzner.")
        call("add", content="Project Atlas is deployed on Azure.")
        assert "Anna Berg" in str(call("search", query="who maintains Atlas"))
        assert "Atlas" in str(call("probe", entity="Anna Berg"))
        assert "Anna Berg" in str(call("related", entity="Project Atlas"))
        assert call("reason", entities=["Anna Berg", "Project Atlas"])["success"]
        assert "Azure" in str(call("contradict"))
        assert len(str(call("list"))) > 0
        fact = added.get("fact_id") or added.get("id") or added["fact"]["id"]
        assert session.call("fact_feedback", {"fact_id": fact, "action": "helpful"})["success"]
        with session.turn("Who maintains Project Atlas?") as turn:
            assert "Anna Berg" in str(turn.messages[-1]["content"])
            turn.done("Anna Berg.")
        take_turn(session, "I prefer dark mode in every editor.")
        session.end()
    with memoranda.open(tmp_path) as memory, memory.session(source="cli") as session:
        wait_until(lambda: "dark mode" in str(session.call("fact_store", {"action": "search", "query": "dark mode"})))
