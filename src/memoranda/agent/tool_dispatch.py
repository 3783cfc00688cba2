"""Carrying out what the model calls: whatever it asks for, and however, the answer is a JSON object."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memoranda.llm.model import ToolCall
from memoranda.support.shorten import shorten_middle
from memoranda.tools import JsonObject, Tool, tool_refusal

_log = logging.getLogger(__name__)


def execute_call(
    call: ToolCall, tools: Sequence[Tool], by_name: Callable[[str, Mapping[str, Any]], JsonObject] | None = None
) -> JsonObject:
    """The result of one call among the tools that the model was offered; `by_name` calls one in another way."""
    tool = next((each for each in tools if each.name == call.name), None)
    if tool is None:
        offered = ", ".join(each.name for each in tools) or "none"
        return tool_refusal("unavailable", f"There is no tool {call.name!r} here (offered: {offered}).")
    arguments = _arguments(call.arguments)
    if isinstance(arguments, str):
        return tool_refusal("invalid", f"The arguments of {call.name} {arguments} Call it again with valid ones.")
    try:
        result = tool.call(arguments) if by_name is None else by_name(call.name, arguments)
    except Exception as error:
        # A tool of the host's may raise anything; the model is told, and the turn goes on.
        _log.exception("The tool %s failed.", call.name)
        return tool_refusal("error", f"The tool {call.name} failed: {type(error).__name__}: {error}")
    return result if isinstance(result, dict) else {"success": True, "result": result}


def result_as_text(result: JsonObject, most: int) -> str:
    """A result as the model reads it; one that is too long keeps its beginning and its end, and says so."""
    text = json.dumps(result, ensure_ascii=False, default=str)
    if len(text) <= most:
        return text
    cut = {"success": bool(result.get("success", True)), "cut": True, "text": shorten_middle(text, most)}
    return json.dumps(cut, ensure_ascii=False)


def _arguments(text: str) -> JsonObject | str:
    """The arguments as an object, or what is wrong with them."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"are not valid JSON: {error}."
    return value if isinstance(value, dict) else f"must be a JSON object, not {type(value).__name__}."
