"""Keeps the provider's tools of a session the same when it is resumed, even if the provider is gone.

A request to a model begins with the tools, so a missing tool would invalidate the whole cached prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memoranda.tools import JsonObject, Tool, tool_refusal

# The column of a session's row that stores the provider's tools.
PROVIDER_TOOLS = "provider_tools"


def tools_as_columns(tools: Sequence[Tool]) -> dict[str, Any]:
    """The columns that store the provider's tools with a session."""
    if not tools:
        return {}
    stored = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools]
    return {PROVIDER_TOOLS: stored}


def restore_tools(stored: Any, tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The stored tools, executed by the provider's current ones; the current ones when none are stored."""
    stored_tools = [tool for tool in stored if _is_tool(tool)] if isinstance(stored, list) else []
    if not stored_tools:
        return tuple(tools)
    current = {tool.name: tool for tool in tools}
    return tuple(
        replace(current[tool["name"]], description=tool["description"], parameters=tool["parameters"])
        if tool["name"] in current
        else Tool(tool["name"], tool["description"], tool["parameters"], _unavailable)
        for tool in stored_tools
    )


def _is_tool(stored: Any) -> bool:
    return (
        isinstance(stored, Mapping)
        and isinstance(stored.get("name"), str)
        and isinstance(stored.get("description"), str)
        and isinstance(stored.get("parameters"), dict)
    )


def _unavailable(arguments: Mapping[str, Any]) -> JsonObject:
    return tool_refusal("unavailable", "The external memory that offered this tool is not available now.")
