"""Calls a tool by its name, and saves a fact for a person, inside a session or outside any."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from memoranda.errors import HomeError
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.support.origin import Origin
from memoranda.support.tool import JsonObject, Tool, tool_refusal

if TYPE_CHECKING:
    from memoranda.types import MemoryAnswer


def call_tool(
    tools: Sequence[Tool], name: str, arguments: Mapping[str, Any], require_open: Callable[[], None]
) -> JsonObject:
    """Call one of the tools; an unknown name, or a home that was closed, returns a refusal and raises nothing."""
    try:
        require_open()
    except HomeError as error:
        return tool_refusal("unavailable", str(error))
    for tool in tools:
        if tool.name == name:
            return tool.call(arguments)
    offered = ", ".join(tool.name for tool in tools) or "none: memory is switched off"
    return tool_refusal("unavailable", f"There is no tool {name!r} here (offered: {offered}).")


def remember(store: MemoryStore, text: str, target: Target, session_id: str) -> "MemoryAnswer":
    """Save a fact at a person's request and return a receipt."""
    person = Origin("person", session_id, explicit=True)
    answer = MemoryTool(store, person).call({"target": target, "action": "add", "content": text})
    return cast("MemoryAnswer", answer)
