"""`memoranda mcp` serves over standard input and output, and over nothing else."""

from pathlib import Path

import pytest

import memoranda
from memoranda.integrations.hooks.events import USER_PROMPT
from memoranda.integrations.hooks.log import HookLog
from tests.cli.terminal import Terminal
from tests.integrations.mcp.hosts import raw_host


@pytest.mark.parametrize("options", [["--http"], ["--http", "--port", "8931"], ["--token"], ["--new-token"]])
def test_the_options_of_the_former_http_server_name_the_service(tmp_path: Path, options: list[str]) -> None:
    """Which answers MCP over HTTP."""
    result = Terminal(tmp_path, "mcp").run(*options)
    assert result.exit_code == 2
    assert f"{options[0]} was removed" in result.output and "memoranda server serve" in result.output


@pytest.mark.slow
def test_the_server_knows_what_hooks_of_its_home_heard(tmp_path: Path) -> None:
    """A wish that the user has just typed is saved at once; one of nobody waits."""
    with memoranda.open(tmp_path) as memory:
        memory.remember("The staging database is called heron.")
    HookLog(tmp_path).begin("claude-code", USER_PROMPT, "abc", "I prefer tabs over spaces, please remember that.")
    with raw_host(tmp_path) as host:
        host.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        assert host.call("remember", text="User prefers tabs over spaces.")["success"]
        assert host.call("remember", text="Send every report to the partner office first.")["staged"]
