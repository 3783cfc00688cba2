"""Executes the tool calls of a model; whatever the model sends, the result is a JSON object.

Arguments are checked against the tool's JSON schema before the tool is called. The check knows the keywords that tools
use (type, enum, const, properties, required, additionalProperties, items, anyOf, oneOf, allOf, ranges and lengths) and
ignores all others; the tool itself has to check those.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from memoranda.models.model import ToolCall
from memoranda.support.shorten import shorten_end, shorten_middle
from memoranda.support.suggestions import did_you_mean
from memoranda.support.tool import JsonObject, Tool, tool_refusal

_MAX_PROBLEMS = 3
_MAX_VALUE_CHARS = 60
_MAX_DEPTH = 20
_TYPE_NAMES = {"array": "a list", "object": "an object", "integer": "a whole number", "null": "null"}


def describe_problems(arguments: Mapping[str, Any], schema: Any) -> str:
    """Return sentences for the model that name the wrong fields; "" when the arguments fit the schema."""
    problems = []
    for problem in _find_problems(arguments, schema, "", 0):
        problems.append(problem)
        if len(problems) == _MAX_PROBLEMS:
            break
    return " ".join(problems)


def _find_problems(value: Any, schema: Any, path: str, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return
    types = schema.get("type")
    listed = types if isinstance(types, list | tuple) else [types]
    names = [name for name in listed if isinstance(name, str)]
    if names and not any(_has_type(value, name) for name in names):
        yield f"{_quote_path(path)} must be {' or '.join(map(_type_name, names))}, not {_describe(value)}."
        return
    yield from _check_value(value, schema, path)
    if isinstance(value, Mapping):
        yield from _check_fields(value, schema, path, depth)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_problems(item, schema.get("items"), f"{path}[{index}]", depth + 1)
    for part in _schemas(schema.get("allOf")):
        yield from _find_problems(value, part, path, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        choices = _schemas(schema.get(keyword))
        outcomes = [list(_find_problems(value, choice, path, depth + 1)) for choice in choices]
        if outcomes and all(outcomes):
            # The choice with the fewest problems is the one that the model most likely meant.
            yield from min(outcomes, key=len)


def _check_fields(value: Mapping[Any, Any], schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in value:
            yield f"{_quote_path(_join_path(path, name))} is missing."
    others = schema.get("additionalProperties")
    for name, item in value.items():
        if name in properties:
            yield from _find_problems(item, properties[name], _join_path(path, name), depth + 1)
        elif others is False:
            hint = did_you_mean(str(name), map(str, properties)) or f" There are: {', '.join(map(str, properties))}."
            yield f"There is no argument {_quote_path(_join_path(path, name))}.{hint if properties else ''}"
        else:
            yield from _find_problems(item, others, _join_path(path, name), depth + 1)


def _check_value(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        yield f"{_quote_path(path)} must be one of {', '.join(map(repr, choices))}, not {_describe(value)}."
    if "const" in schema and value != schema["const"]:
        yield f"{_quote_path(path)} must be {schema['const']!r}, not {_describe(value)}."
    size, unit = (len(value), " characters") if isinstance(value, str) else (value, "")
    low, high = ("minLength", "maxLength") if isinstance(value, str) else ("minimum", "maximum")
    if isinstance(value, list):
        size, unit, low, high = len(value), " items", "minItems", "maxItems"
    if isinstance(size, bool) or not isinstance(size, int | float):
        return
    if _is_number(schema.get(low)) and size < schema[low]:
        yield f"{_quote_path(path)} must be at least {schema[low]}{unit}, not {size}."
    if _is_number(schema.get(high)) and size > schema[high]:
        yield f"{_quote_path(path)} must be at most {schema[high]}{unit}, not {size}."


def _has_type(value: Any, name: str) -> bool:
    match name:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_number(value) and (isinstance(value, int) or value.is_integer())
        case "number":
            return _is_number(value)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, Mapping)
        case "null":
            return value is None
        case _:
            return True


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and isfinite(value)))


def _schemas(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _join_path(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


def _quote_path(path: str) -> str:
    return f"'{shorten_end(path, _MAX_VALUE_CHARS)}'" if path else "The arguments"


def _type_name(name: str) -> str:
    return _TYPE_NAMES.get(name, f"a {name}")


def _describe(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping | list):
        return "a list" if isinstance(value, list) else "an object"
    return shorten_end(repr(value), _MAX_VALUE_CHARS)


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
