"""The reference of the MCP server says what is true."""

from pathlib import Path

import memoranda
from memoranda.integrations import tool_host as answer_size
from memoranda.integrations.mcp.protocol import HANDSHAKE, SELF_CONTAINED
from memoranda.integrations.mcp.server import McpServer, describe_tool
from memoranda.integrations.tool_host import ToolHost
from memoranda.service.remote_mcp.streamable_http import PATH
from memoranda.support.tool import Tool

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "mcp.md").read_text()


def test_every_tool_is_there_with_its_hints(tmp_path: Path) -> None:
    """In the order of the table's columns."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.count("|") == 6]
    documented = {row[0].strip("`"): row[1:] for row in rows[2:]}
    unknown = Tool("a provider's", "", {}, lambda given: {})
    with memoranda.open(tmp_path) as memory:
        tools = [*ToolHost(memory, source="mcp").tools(), unknown]
    assert list(documented) == [tool.name for tool in tools]
    for tool in tools:
        hints = describe_tool(tool)["annotations"]
        assert documented[tool.name] == [
            "yes" if hints["readOnlyHint"] else "no",
            "yes" if hints["destructiveHint"] else "no",
            "changes nothing" if hints["idempotentHint"] else "may differ",
            "yes" if hints["openWorldHint"] else "no",
        ]


def test_every_method_version_and_limit_is_there(tmp_path: Path) -> None:
    """So that readers need not look into the code."""
    with memoranda.open(tmp_path) as memory:
        methods = list(McpServer(ToolHost(memory, source="mcp"))._methods)
    names = [*methods, *HANDSHAKE, *SELF_CONTAINED]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
    assert f"{answer_size.MAX_BYTES:,} bytes" in PAGE and f"{answer_size.MAX_SEARCH_CHARS:,} characters" in PAGE
    assert f"`{PATH}`" in PAGE
