"""Repairs tool calls before they are sent back to a service: invalid names, and arguments that are not a JSON object.

A model may call a tool that does not exist or write invalid JSON, and a service refuses every later request that
repeats the call. The repair changes only the request, never the record.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from memoranda.support.tool import JsonObject

_MAX_NAME_CHARS = 64
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def repair_name(name: Any) -> str:
    """The tool name without the characters that services refuse."""
    return _INVALID_IN_NAME.sub("_", str(name or ""))[:_MAX_NAME_CHARS] or "unnamed"


def repair_arguments(arguments: Any) -> JsonObject:
    """The arguments as an object; arguments that are not JSON become the text of one field."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) and arguments.strip() else arguments or {}
    except (ValueError, RecursionError):
        value = None
    return dict(value) if isinstance(value, Mapping) else {"unreadable_arguments": str(arguments)}


def repair_call(call: Mapping[str, Any]) -> JsonObject:
    """The call in OpenAI's form; valid arguments stay byte-identical."""
    function = call.get("function") or {}
    original = function.get("arguments")
    valid = isinstance(original, str) and "unreadable_arguments" not in repair_arguments(original) and original.strip()
    arguments = original if valid else json.dumps(repair_arguments(original), ensure_ascii=False)
    return {**call, "function": {"name": repair_name(function.get("name")), "arguments": arguments}}
