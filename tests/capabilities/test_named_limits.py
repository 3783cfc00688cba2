"""What the design names as its own limits or as future work, as far as Memoranda goes beyond it."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

import memoranda
from memoranda.cli.provider import command as providers
from memoranda.external.loading.discovery import BUNDLED
from memoranda.external.provider import MemoryProvider
from memoranda.home.config.config import find_key
from memoranda.integrations.tool_host import ToolHost, open_for_hosts
from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer
from tests.capabilities.conversations import take_turn
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "capabilities.md"


def test_a_fact_is_remembered_on_request_everywhere(tmp_path: Path) -> None:
    """In Python, on the command line and for a host; each says where it is stored, and from when it is visible."""
    terminal = Terminal(tmp_path)
    assert "MEMORY.md" in terminal.ok("remember", "The port is 8443.")
    with memoranda.open(tmp_path) as memory:
        assert memory.remember("The host is heron.")["stored_in"].endswith("MEMORY.md")
    with open_for_hosts(str(tmp_path)) as memory:
        answer = ToolHost(memory, source="test").call("remember", {"text": "The user is ann."})
        assert answer is not None and answer["success"]
        assert memory.entries() == ("The port is 8443.", "The host is heron.", "The user is ann.")


def test_a_search_is_narrowed_by_time_and_source(tmp_path: Path) -> None:
    """In Python, and with the same words on the command line."""
    now = datetime.now(UTC)
    with memoranda.open(tmp_path) as memory:
        for name, source, days in (("old", "cli", 40), ("new", "cli", 2), ("chat", "telegram", 2)):
            then = (now - timedelta(days=days)).timestamp()
            memory.sessions.create_session(name, source=source, started_at=then)
            memory.sessions.append_message(name, "user", content="The walrus.", timestamp=then)
        found = {hit["session_id"] for hit in memory.search("walrus", since="30d", source="cli")["results"]}
        assert found == {"new"}
    terminal = Terminal(tmp_path)
    until = (now - timedelta(days=30)).date().isoformat()
    assert [hit["session_id"] for hit in terminal.json("search", "walrus", "--until", until)["results"]] == ["old"]
    found = {hit["session_id"] for hit in terminal.json("search", "walrus", "--source", "telegram")["results"]}
    assert found == {"chat"}


def test_facts_lose_weight_with_age_where_that_is_wanted(tmp_path: Path) -> None:
    """Holographic memory has a half-life; nothing is deleted."""
    terminal = Terminal(tmp_path)
    terminal.ok("provider", "setup", "holographic", "--set", "half_life_days=10")
    status = json.dumps(terminal.json("provider", "status"))
    assert "half_life_days" in status


def test_old_entries_are_listed_and_confirmed(tmp_path: Path) -> None:
    """Nothing vanishes by itself; a person decides about what was not touched for a while."""
    terminal = Terminal(tmp_path)
    terminal.ok("memory", "add", "The port is 8443.")
    assert terminal.json("memory", "stale")["entries"] == []
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    (entry,) = terminal.json("memory", "stale", "--older-than", tomorrow)["entries"]
    assert entry["text"] == "The port is 8443."
    terminal.ok("memory", "confirm", entry["handle"])
    assert entry["checked_at"] <= terminal.json("memory", "stale", "--older-than", tomorrow)["entries"][0]["checked_at"]


def test_the_limits_of_the_files_are_settings(tmp_path: Path) -> None:
    """A larger memory costs more of every prompt, so a person decides."""
    terminal = Terminal(tmp_path)
    terminal.ok("config", "set", "memory.memory_char_limit", "5000")
    terminal.ok("memory", "add", "x" * 3_000)
    with memoranda.open(tmp_path) as memory:
        assert "[60% — 3,000/5,000 chars]" in memory.session().prompt


@pytest.mark.usefixtures("model_sdks")
def test_models_that_summarize_are_compared_on_real_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coverage of names and numbers, unsupported claims and tokens, for each model."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with memoranda.open(tmp_path) as memory, memory.session(source="cli") as session:
        for _ in range(3):
            take_turn(session, "Which port does Heron use?", "Heron uses port 5433 on Staging.")
    terminal = Terminal(tmp_path)
    with ScriptedServer(lambda request: Reply("Heron uses port 5433.")) as server:
        for key, value in (("provider", "openai"), ("name", "helper"), ("base_url", server.openai_url)):
            terminal.ok("config", "set", f"model.{key}", value)
        report = json.dumps(terminal.json("eval", "summaries", "--sample", "1"))
    for word in ("coverage", "unsupported", "tokens"):
        assert word in report


def test_the_page_names_the_tests_of_every_capability() -> None:
    """Every file of tests is named, and every file that is named exists."""
    named = set(re.findall(r"tests/capabilities/(test_\w+\.py)", PAGE.read_text("utf-8")))
    assert named == {path.name for path in Path(__file__).parent.glob("test_*.py")}


def test_the_page_names_commands_and_settings_that_exist(tmp_path: Path) -> None:
    """What it says about a limit of the design is in the product."""
    limits = PAGE.read_text("utf-8").partition("## Limits")[2]
    for words in re.findall(r"`memoranda ([a-z ]+)", limits):
        Terminal(tmp_path).ok(*words.split(), "--help")
    settings = re.findall(r"`((?:search|memory|curate)\.[a-z_]+)[`:]", limits)
    assert [find_key(name).name for name in settings] == settings and settings


def test_the_reference_lists_the_bundled_providers() -> None:
    """All of them, in the order in which they are looked for."""
    line = re.search(r"Bundled: (.*)", (PAGE.parents[1] / "reference" / "providers.md").read_text("utf-8"))
    assert line is not None
    assert re.findall(r"`(\w+)`", line[1]) == [provider.name for provider in BUNDLED]


def test_the_page_names_every_command_of_providers() -> None:
    """A command that is added or removed changes the list."""
    listed = re.search(r"\| `provider (list`, .*?) \|", PAGE.read_text("utf-8"))
    assert listed is not None
    assert re.findall(r"(\w+)`", listed[1]) == list(providers.list_commands(click.Context(providers)))


def test_the_reference_lists_the_members_of_a_provider() -> None:
    """Every member that a subclass may have, and no other."""
    page = (PAGE.parents[1] / "reference" / "providers.md").read_text("utf-8").partition("What is *delivered*")[0]
    named = re.findall(r"^\| `(\w+)", page, re.MULTILINE)
    assert sorted(named) == sorted(name for name in vars(MemoryProvider) if not name.startswith("_"))
