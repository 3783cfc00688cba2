"""A tool of a vendor, and the check of the arguments that a model passes to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class ToolArgumentError(ValueError):
    """The arguments of a tool call are not usable; the message says which and why, for the model."""


@dataclass(frozen=True, slots=True)
class VendorTool:
    """A tool: `run` gets checked arguments and the id of the session, and returns a JSON value.

    `properties` is that of a JSON schema. A number outside `minimum` and `maximum` is moved to the nearest of them, and
    `default` is filled in. `writes`: only sessions that may write can call it.
    """

    name: str
    description: str
    properties: Mapping[str, JsonObject]
    run: Callable[[JsonObject, str], Any]
    required: tuple[str, ...] = ()
    writes: bool = False

    def schema(self) -> JsonObject:
        """The tool as `get_tool_schemas` reports it."""
        parameters = {"type": "object", "properties": dict(self.properties), "required": list(self.required)}
        return {"name": self.name, "description": self.description, "parameters": parameters}

    def check(self, args: Mapping[str, Any]) -> JsonObject:
        """The arguments that the schema names, checked; raises ToolArgumentError. Others are ignored."""
        checked: JsonObject = {}
        for name, schema in self.properties.items():
            value = args.get(name)
            blank = value is None or (isinstance(value, str) and not value.strip())
            if blank and name in self.required:
                raise ToolArgumentError(f"{self.name} needs {name}: {schema.get('description', 'it is required')}")
            if blank:
                if "default" in schema:
                    checked[name] = schema["default"]
                continue
            checked[name] = _check_value(name, value, schema)
        return checked


def _check_value(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    kind = str(schema.get("type", "string"))
    value = _as_number(value, kind)
    if not isinstance(value, _KINDS.get(kind, (object,))) or (isinstance(value, bool) and kind != "boolean"):
        raise ToolArgumentError(f"{name} must be of the type {kind}, not {type(value).__name__}.")
    choices = schema.get("enum")
    if choices is not None and value not in choices:
        raise ToolArgumentError(f"{name} must be one of {', '.join(map(str, choices))}.")
    if kind in ("integer", "number"):
        value = max(schema.get("minimum", value), min(schema.get("maximum", value), value))
    if kind == "array":
        item_kind = str((schema.get("items") or {}).get("type"))
        if not all(isinstance(item, _KINDS.get(item_kind, (object,))) for item in value):
            raise ToolArgumentError(f"{name} must be a list of the type {item_kind}.")
    return value


def _as_number(value: Any, kind: str) -> Any:
    """A number that a model wrote as text, or with a fraction of zero."""
    try:
        if kind == "integer" and isinstance(value, str | float) and float(value) == int(float(value)):
            return int(float(value))
        if kind == "number" and isinstance(value, str):
            return float(value)
    except (ValueError, OverflowError):
        return value
    return value
