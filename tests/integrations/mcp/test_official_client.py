"""The official client of the protocol gets what it should, in both eras of the protocol."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import TextContent, TextResourceContents

import memoranda
from tests.external.diary import diary_home
from tests.integrations.mcp.official_client import Era, client, run

pytestmark = pytest.mark.slow

_in_both_eras = pytest.mark.parametrize("era", ["auto", "legacy"])


async def _call(connected: Client, name: str, **given: Any) -> dict[str, Any]:
    result = await connected.call_tool(name, given)
    (content,) = result.content
    assert isinstance(content, TextContent)
    answer: dict[str, Any] = json.loads(content.text)
    assert result.is_error is not answer["success"]
    return answer


async def _memory(connected: Client) -> list[str]:
    contents = (await connected.read_resource("memoranda://memory")).contents
    return [each.text for each in contents if isinstance(each, TextResourceContents)]


@_in_both_eras
def test_a_host_knows_a_saved_fact_when_it_starts_again(tmp_path: Path, era: Era) -> None:
    """The fact is in the memory resource, the prompt and the instructions, and the old conversation is found."""
    with (
        memoranda.open(tmp_path) as memory,
        memory.session(source="cli") as session,
        session.turn("Why does the nightly job hang?") as turn,
    ):
        turn.done("Two migrations wait for each other: a deadlock.")

    async def first() -> None:
        async with client(tmp_path, era) as connected:
            assert (await _call(connected, "remember", text="The staging database is called heron."))["success"]

    async def second() -> None:
        async with client(tmp_path, era) as connected:
            assert ["heron" in text for text in await _memory(connected)] == [True]
            prompt = await connected.get_prompt("memory")
            assert isinstance(prompt.messages[0].content, TextContent)
            assert "heron" in prompt.messages[0].content.text
            assert "heron" in (connected.instructions or "")
            (found,) = (await _call(connected, "session_search", query="deadlock"))["results"]
            assert "migrations" in found["snippet"]

    run(first)
    run(second)


def test_the_memory_text_does_not_change_during_a_connection(tmp_path: Path) -> None:
    """Later changes follow as a separate part, and a new connection has them in the block."""
    with memoranda.open(tmp_path) as memory:
        memory.remember("CI runs on Debian 12.")

    async def host() -> None:
        async with client(tmp_path, "legacy") as connected:
            before = await _memory(connected)
            await _call(connected, "remember", text="The staging database is called heron.")
            frozen, changes = await _memory(connected)
            assert [frozen] == before
            assert "New in MEMORY.md> The staging database is called heron." in changes

    run(host)


@_in_both_eras
def test_tools_say_what_they_do(tmp_path: Path, era: Era) -> None:
    """Search only reads, remember only adds, memory can remove; none of them leaves the machine."""

    async def host() -> None:
        async with client(tmp_path, era) as connected:
            hints = {tool.name: tool.annotations for tool in (await connected.list_tools()).tools}
            told = {
                name: (each.read_only_hint, each.destructive_hint, each.open_world_hint)
                for name, each in hints.items()
                if each
            }
            assert told == {
                "memory": (False, True, False),
                "session_search": (True, False, False),
                "remember": (False, False, False),
            }
            (resource,) = (await connected.list_resources()).resources
            (prompt,) = (await connected.list_prompts()).prompts
            assert (str(resource.uri), prompt.name) == ("memoranda://memory", "memory")
            assert connected.server_info is not None and connected.server_info.name == "memoranda"

    run(host)


def test_the_tools_of_the_active_provider_are_offered_and_answer(tmp_path: Path) -> None:
    """With the hints of a tool about which nothing is known."""
    home = diary_home(tmp_path)

    async def host() -> None:
        async with client(home, "auto") as connected:
            tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
            assert list(tools) == ["memory", "session_search", "remember", "diary_read"]
            assert tools["diary_read"].annotations and tools["diary_read"].annotations.destructive_hint is True
            assert (await _call(connected, "diary_read"))["success"] is True

    run(host)


@_in_both_eras
def test_what_does_not_exist_is_an_error_of_the_protocol(tmp_path: Path, era: Era) -> None:
    """And what a tool refuses is an answer that the model can read; the connection stays open after both."""

    async def host() -> None:
        async with client(tmp_path, era) as connected:
            for wrong in (
                connected.call_tool("nonsense", {}),
                connected.read_resource("memoranda://nonsense"),
                connected.get_prompt("nonsense"),
            ):
                with pytest.raises(MCPError):
                    await wrong
            answer = await _call(connected, "memory", target="memory", action="remove", old_text="no such thing")
            assert answer["reason"] == "no_match"
            assert (await _call(connected, "remember"))["reason"] == "invalid"
            assert (await _call(connected, "session_search"))["success"] is True

    run(host)


def test_two_users_of_a_home_know_nothing_of_each_other(tmp_path: Path) -> None:
    """A server serves the user it was started for."""

    async def ana() -> None:
        async with client(tmp_path, "auto", "--user", "ana") as connected:
            await _call(connected, "remember", text="Ana keeps bees.")

    async def ben() -> None:
        async with client(tmp_path, "auto", "--user", "ben") as connected:
            assert "bees" not in str(await _memory(connected)) + str(connected.instructions)

    run(ana)
    run(ben)
