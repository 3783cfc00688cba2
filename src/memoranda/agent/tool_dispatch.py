"""Executes the tool calls of a model; whatever the model sends, the result is a JSON object."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memoranda.agent.schema_check import describe_problems
from memoranda.models.model import ToolCall
from memoranda.support.shorten import shorten_middle
from memoranda.support.tool import JsonObject, Tool, tool_refusal

_log = logging.getLogger(__name__)


def execute_call(
    call: ToolCall, tools: Sequence[Tool], by_name: Callable[[str, Mapping[str, Any]], JsonObject] | None = None
) -> JsonObject:
    """Execute one call of an offered tool, by the tool's own function or, if passed, by `by_name`.

    The arguments of a tool's own function are checked against its schema first; `by_name` checks them itself.
    """
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        offered = ", ".join(tool.name for tool in tools) or "none"
        return tool_refusal("unavailable", f"There is no tool {call.name!r} here (offered: {offered}).")
    arguments = _parse_arguments(call.arguments)
    if isinstance(arguments, str):
        return tool_refusal("invalid", f"The arguments of {call.name} {arguments} Call it again with valid ones.")
    if by_name is None and (problems := describe_problems(arguments, tool.parameters)):
        return tool_refusal("invalid", f"{problems} {call.name} was not called.")
    try:
        result = tool.call(arguments) if by_name is None else by_name(call.name, arguments)
    except Exception as error:
        # A tool of the host may raise anything; the model gets the error as a result, and the turn continues.
        _log.exception("The tool %s failed.", call.name)
        return tool_refusal("error", f"The tool {call.name} failed: {type(error).__name__}: {error}")
    return result if isinstance(result, dict) else {"success": True, "result": result}


def result_as_text(result: JsonObject, limit: int) -> str:
    """A result as the model reads it; a result over the limit is shortened in the middle and marked as cut."""
    text = json.dumps(result, ensure_ascii=False, default=str)
    if len(text) <= limit:
        return text
    shortened = {"success": bool(result.get("success", True)), "cut": True, "text": shorten_middle(text, limit)}
    return json.dumps(shortened, ensure_ascii=False)


def _parse_arguments(text: str) -> JsonObject | str:
    """The arguments as an object, or a text that says what is wrong with them."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"are not valid JSON: {error}."
    return value if isinstance(value, dict) else f"must be a JSON object, not {type(value).__name__}."
