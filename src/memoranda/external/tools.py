"""The tools of a provider: which of them a model sees, and calling them."""

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from memoranda.external.guarded_call import GuardedProvider
from memoranda.external.settings import CORE_TOOLS, ProviderSettings
from memoranda.external.tool_answer import ToolAnswer, ToolOrigin, answer_failure, answer_reply, failure
from memoranda.support.tool import JsonObject, Tool

_log = logging.getLogger(__name__)

# What the strictest APIs accept; they refuse a whole request because of one bad name.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ProviderTools:
    """The tools of one provider; they may change after it has started."""

    def __init__(
        self,
        calls: GuardedProvider,
        settings: ProviderSettings,
        clean: Callable[[str], str],
    ) -> None:
        self.settings = settings
        self._calls = calls
        self._clean = clean
        self._schemas: dict[str, JsonObject] = {}
        self._logged_refusals: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools as the provider last reported them."""
        return () if self.settings.mode == "context" else tuple(self._schemas)

    def refresh(self) -> None:
        """Ask the provider for its tools; they stay as they were when it fails to answer."""
        result = self._calls.call("get_tool_schemas", within=self.settings.call_seconds)
        if result.ok:
            self._schemas, refusals = usable_schemas(result.value, CORE_TOOLS)
            for refusal in refusals:
                if refusal not in self._logged_refusals:
                    self._logged_refusals.add(refusal)
                    _log.warning("Memory provider %s: %s", self._calls.name, refusal)

    def for_model(self, call: Callable[[str, Mapping[str, Any]], JsonObject]) -> list[Tool]:
        return [
            Tool(
                name,
                self._schemas[name]["description"],
                self._schemas[name]["parameters"],
                partial(call, name),
                screened=True,
            )
            for name in self.names
        ]

    def call(self, name: str, args: Mapping[str, Any], session_id: str) -> ToolAnswer:
        """Call a tool under the deadline for tools; the answer always has a JSON object for the model."""
        if name not in self.names:
            self.refresh()
        if name not in self.names:
            return ToolAnswer(failure(f"No memory provider has a tool {name!r}."))
        origin = ToolOrigin(self._calls.name, name, self.settings.tool_chars)
        result = self._calls.call(
            "handle_tool_call",
            {"tool_name": name, "args": dict(args)},
            {"session_id": session_id},
            within=self.settings.tool_seconds,
        )
        if not result.ok:
            return answer_failure(f"Memory tool {name!r} failed: {result.error}", origin)
        return answer_reply(result.value, origin, self._clean)


def usable_schemas(schemas: object, reserved: Collection[str]) -> tuple[dict[str, JsonObject], list[str]]:
    """The schemas that an API accepts, by name, and the reasons why others are refused."""
    if not isinstance(schemas, list | tuple):
        return {}, [f"It returned {type(schemas).__name__} instead of a list of tools."]
    usable: dict[str, JsonObject] = {}
    refusals: list[str] = []
    for schema in schemas:
        plain = _unwrap(schema)
        name = plain.get("name") if plain else None
        reason = _refusal(name, usable, reserved)
        if plain is None or reason:
            refusals.append(f"The tool {name!r} is refused: {reason}.")
        else:
            usable[str(name)] = plain
    return usable, refusals


def _unwrap(schema: object) -> JsonObject | None:
    """A schema without the wrapper of some APIs, with a description and parameters; None when it is not JSON."""
    if isinstance(schema, Mapping) and isinstance(schema.get("function"), Mapping):
        schema = schema["function"]
    if not isinstance(schema, Mapping):
        return None
    try:
        plain = json.loads(json.dumps(dict(schema)))
    except (TypeError, ValueError, RecursionError):
        return None
    assert isinstance(plain, dict)
    if not isinstance(plain.get("description"), str):
        plain["description"] = ""
    if not isinstance(plain.get("parameters"), dict):
        plain["parameters"] = {"type": "object", "properties": {}}
    return plain


def _refusal(name: object, usable: Mapping[str, Any], reserved: Collection[str]) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "it has no usable name"
    if name in reserved:
        return "a tool of the agent has that name"
    if name in usable:
        return "another tool has that name"
    return ""
