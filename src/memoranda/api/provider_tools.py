"""Keeps the providers' tools of a session the same when it is resumed, even if a provider is gone or one was added.

A request to a model begins with the tools, so a missing tool would invalidate the whole cached prefix.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memoranda.support.tool import JsonObject, Tool, tool_refusal

# The column of a session's row that stores the providers' tools.
PROVIDER_TOOLS = "provider_tools"

# Finds the tool that an earlier session knew, by its name there and its provider; the provider may be unknown.
FindTool = Callable[[str, str], Tool | None]


def tools_as_columns(tools: Sequence[Tool], provider_of: Callable[[str], str]) -> dict[str, Any]:
    """The columns that store the providers' tools with a session."""
    if not tools:
        return {}
    stored = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "provider": provider_of(tool.name),
        }
        for tool in tools
    ]
    return {PROVIDER_TOOLS: stored}


def restore_tools(stored: Any, tools: Sequence[Tool], find_tool: FindTool) -> tuple[Tool, ...]:
    """The stored tools, executed by the providers' current ones; the current ones when none are stored."""
    stored_tools = [tool for tool in stored if _is_tool(tool)] if isinstance(stored, list) else []
    return tuple(_restore(tool, find_tool) for tool in stored_tools) if stored_tools else tuple(tools)


def _restore(stored: Mapping[str, Any], find_tool: FindTool) -> Tool:
    name, description, parameters = stored["name"], stored["description"], stored["parameters"]
    current = find_tool(name, str(stored.get("provider") or ""))
    if current is None:
        return Tool(name, description, parameters, _unavailable)
    return replace(current, description=description, parameters=parameters)


def _is_tool(stored: Any) -> bool:
    return (
        isinstance(stored, Mapping)
        and isinstance(stored.get("name"), str)
        and isinstance(stored.get("description"), str)
        and isinstance(stored.get("parameters"), dict)
    )


def _unavailable(arguments: Mapping[str, Any]) -> JsonObject:
    return tool_refusal("unavailable", "This tool is not available: its memory provider is not in use now.")
