"""Calls of tools as services accept them back: a model may have called what does not exist, or written broken JSON.

Only what is sent is mended, never the record: one bad call would make every request after it fail.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from memoranda.tools import JsonObject

_LONGEST_NAME = 64
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def repair_name(name: Any) -> str:
    """A tool's name with nothing in it that services refuse."""
    return _NOT_IN_A_NAME.sub("_", str(name or ""))[:_LONGEST_NAME] or "unnamed"


def repair_arguments(arguments: Any) -> JsonObject:
    """The arguments as an object; what a model left broken is passed on as text."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) and arguments.strip() else arguments or {}
    except (ValueError, RecursionError):
        value = None
    return dict(value) if isinstance(value, Mapping) else {"unreadable_arguments": str(arguments)}


def repair_call(call: Mapping[str, Any]) -> JsonObject:
    """A call in OpenAI's form; one that can be read is left as it is, to the byte."""
    function = call.get("function") or {}
    given = function.get("arguments")
    readable = isinstance(given, str) and "unreadable_arguments" not in repair_arguments(given) and given.strip()
    arguments = given if readable else json.dumps(repair_arguments(given), ensure_ascii=False)
    return {**call, "function": {"name": repair_name(function.get("name")), "arguments": arguments}}
