"""The tools of an external memory in a session that is taken up again: the same bytes, whether it is there or not.

Tools stand before everything else in what a model is sent, so one that is missing costs the whole cached prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memoranda.tools import JsonObject, Tool, tool_refusal

# Where a session's row keeps them.
PROVIDER_TOOLS = "provider_tools"


def tools_as_columns(tools: Sequence[Tool]) -> dict[str, Any]:
    """What is stored with a session."""
    if not tools:
        return {}
    return {PROVIDER_TOOLS: [{"name": each.name, "description": each.description, "parameters": each.parameters}
                    for each in tools]}  # fmt: skip


def restore_tools(kept: Any, tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The tools as they were offered before, answered by those there are now; without any, those there are."""
    before = [each for each in kept if _is_tool(each)] if isinstance(kept, list) else []
    if not before:
        return tuple(tools)
    now = {tool.name: tool for tool in tools}
    return tuple(
        replace(now[each["name"]], description=each["description"], parameters=each["parameters"])
        if each["name"] in now
        else Tool(each["name"], each["description"], each["parameters"], _unavailable)
        for each in before
    )


def _is_tool(kept: Any) -> bool:
    return (
        isinstance(kept, Mapping)
        and isinstance(kept.get("name"), str)
        and isinstance(kept.get("description"), str)
        and isinstance(kept.get("parameters"), dict)
    )


def _unavailable(arguments: Mapping[str, Any]) -> JsonObject:
    return tool_refusal("unavailable", "The external memory that offered this tool is not there at the moment.")
