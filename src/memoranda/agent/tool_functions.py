"""`tool`: makes a tool for a model from a typed Python function.

    @memoranda.tool
    def weather(place: str, days: Annotated[int, "How many days ahead."] = 1) -> str:
        "How the weather will be at a place."

The name and the docstring are what the model reads; the annotations become the JSON schema. Arguments are checked
against it before the function is called, and an error in the function becomes a result that the model can read.
A coroutine function runs in the event loop of the asyncio interface, or in one of its own.
"""

import contextvars
import enum
import inspect
import json
import logging
import types
from collections.abc import Callable, Coroutine, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    overload,
)

from memoranda.agent.tool_dispatch import describe_problems
from memoranda.support.tool import JsonObject, Tool, tool_refusal

if TYPE_CHECKING:
    # Only programs that use it import it, which takes a while.
    from asyncio import AbstractEventLoop

_log = logging.getLogger(__name__)

run_async_tools_in: "contextvars.ContextVar[AbstractEventLoop]" = contextvars.ContextVar("run_async_tools_in")
"""The event loop that runs the coroutines of tools which are called in this context, from another thread."""

_JSON_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LIST_TYPES = (list, tuple, set, frozenset, Sequence, AbstractSet)
_CALLABLE_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, name: str = "", description: str = "") -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str = "", description: str = ""
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool from a function: `@tool`, `@tool(name="…", description="…")` or `tool(function)`.

    Raises TypeError when the function has no docstring, or a parameter that a model could not pass.
    """
    if function is None:
        return lambda function: _make_tool(function, name, description)
    return _make_tool(function, name, description)


def _make_tool(function: Callable[..., Any], name: str, description: str) -> Tool:
    name = name or function.__name__
    description = description or inspect.getdoc(function) or ""
    if not description:
        raise TypeError(f"The tool {name} needs a docstring: the model reads it to know when to call the tool.")
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.kind not in _CALLABLE_BY_NAME:
            raise TypeError(f"The parameter {parameter} of {name} cannot be passed by name, so no model can pass it.")
        if parameter.name not in hints:
            raise TypeError(f"The parameter {parameter.name} of {name} has no type, which the model needs to know.")
    properties = {each: _schema(hints[each], f"{name}({each})") | _default(parameters[each]) for each in parameters}
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": [each for each in parameters if parameters[each].default is inspect.Parameter.empty],
        "additionalProperties": False,
    }

    def call(arguments: Any) -> JsonObject:
        if not isinstance(arguments, Mapping):
            return tool_refusal("invalid", f"The arguments of {name} must be a JSON object.")
        if problems := describe_problems(arguments, schema):
            return tool_refusal("invalid", f"{problems} {name} was not called.")
        try:
            result = function(**{each: _convert(value, hints[each]) for each, value in arguments.items()})
            if inspect.iscoroutine(result):
                result = _run_coroutine(result)
        except Exception as error:
            # A tool promises to answer and never to raise; the model may try something else.
            _log.exception("The tool %s failed.", name)
            return tool_refusal("error", f"The tool {name} failed: {type(error).__name__}: {error}")
        if isinstance(result, Mapping):
            return {"success": True, **result}
        return {"success": True} if result is None else {"success": True, "result": result}

    return Tool(name, description, schema, call)


def _run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run the coroutine of a tool to its end, in the loop of the asyncio interface or in a new one."""
    import asyncio  # noqa: PLC0415

    if asyncio._get_running_loop() is not None:
        coroutine.close()
        raise RuntimeError("it is async, and would block the event loop. Open the memory with memoranda.open_async().")
    loop = run_async_tools_in.get(None)
    return asyncio.run(coroutine) if loop is None else asyncio.run_coroutine_threadsafe(coroutine, loop).result()


def _default(parameter: inspect.Parameter) -> JsonObject:
    """Return the default of a parameter for its schema, if JSON can express it; the type already includes None."""
    if parameter.default in (inspect.Parameter.empty, None):
        return {}
    try:
        json.dumps(parameter.default)
    except (TypeError, ValueError):
        return {}
    return {"default": parameter.default}


def _schema(hint: Any, where: str) -> JsonObject:
    """Return the JSON schema of an annotation; raises TypeError for a type that JSON cannot express."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        description = next((each for each in inner[1:] if isinstance(each, str)), "")
        return _schema(inner[0], where) | ({"description": description} if description else {})
    if hint is Any:
        return {}
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    if origin is Literal or _is_enum(hint):
        values = list(inner) if origin is Literal else [member.value for member in hint]
        return {"enum": values} | _common_type(values)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(each, where) for each in inner]}
    schema = _container_schema(hint, where)
    if schema is None:
        raise TypeError(
            f"{where} has the type {hint}, which JSON cannot express. Use str, int, float, bool, list, dict, Literal, "
            "an Enum, a TypedDict or a union of these."
        )
    return schema


def _container_schema(hint: Any, where: str) -> JsonObject | None:
    """Return the JSON schema of a TypedDict, a mapping or a list; None for any other type."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if is_typeddict(hint):
        fields = get_type_hints(hint)
        return {
            "type": "object",
            "properties": {name: _schema(each, f"{where}.{name}") for name, each in fields.items()},
            "required": sorted(hint.__required_keys__),
        }
    if kind in (dict, Mapping):
        return {"type": "object"} | ({"additionalProperties": _schema(inner[1], where)} if inner else {})
    items = [each for each in inner if each is not ...]
    if kind in _LIST_TYPES and len(items) <= 1:
        return {"type": "array"} | ({"items": _schema(items[0], where)} if items else {})
    return None


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def _common_type(values: Sequence[Any]) -> JsonObject:
    found = {_JSON_TYPES.get(type(value)) for value in values}
    return {"type": found.pop()} if len(found) == 1 and None not in found else {}


def _convert(value: Any, hint: Any) -> Any:
    """Convert a value that fits its schema to the type of the parameter: an Enum member, a set, a tuple, a float."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _convert(value, inner[0])
    if _is_enum(hint):
        return hint(value)
    if hint in (int, float) and isinstance(value, int | float) and not isinstance(value, bool):
        return hint(value)
    if origin in (set, frozenset, tuple, AbstractSet) and isinstance(value, list):
        items = [_convert(item, inner[0]) if inner else item for item in value]
        return tuple(items) if origin is tuple else frozenset(items) if origin is frozenset else set(items)
    if origin in (list, Sequence) and inner and isinstance(value, list):
        return [_convert(item, inner[0]) for item in value]
    if origin in (Union, types.UnionType):
        fitting = [each for each in inner if not describe_problems({"value": value}, _wrap_schema(each))]
        return _convert(value, fitting[0]) if fitting else value
    return value


def _wrap_schema(hint: Any) -> JsonObject:
    return {"properties": {"value": _schema(hint, "value")}}
