"""The tools of a provider: which of them a model may see, and what comes back when it calls one."""

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from memoranda.providers.guarded_call import GuardedProvider
from memoranda.providers.settings import ProviderSettings
from memoranda.providers.text import clean_texts
from memoranda.support.shorten import shorten_end
from memoranda.tools import JsonObject, Tool

_log = logging.getLogger(__name__)

# What the strictest APIs accept; one bad name makes them refuse the whole request.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ProviderTools:
    """The tools of one provider, as they are now: a provider may have others after it was started, or later."""

    def __init__(
        self,
        calling: GuardedProvider,
        settings: ProviderSettings,
        reserved: Collection[str],
        clean: Callable[[str], str],
    ) -> None:
        self.settings = settings
        self._calling = calling
        self._reserved = reserved
        self._clean = clean
        self._schemas: dict[str, JsonObject] = {}
        self._said: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The tools as they were when the provider was last asked."""
        return () if self.settings.mode == "context" else tuple(self._schemas)

    def refresh(self) -> None:
        """Ask the provider for its tools; if it cannot say, they stay as they were."""
        answer = self._calling.call("get_tool_schemas", within=self.settings.call_seconds)
        if answer.ok:
            self._schemas, refusals = usable_schemas(answer.value, self._reserved)
            for refusal in refusals:
                if refusal not in self._said:
                    self._said.add(refusal)
                    _log.warning("Memory provider %s: %s", self._calling.name, refusal)

    def for_model(self, call: Callable[[str, Mapping[str, Any]], JsonObject]) -> list[Tool]:
        """Every tool that a model may call."""
        return [
            Tool(name, self._schemas[name]["description"], self._schemas[name]["parameters"], partial(call, name))
            for name in self.names
        ]

    def call(self, name: str, args: Mapping[str, Any], session_id: str) -> JsonObject:
        """Call one, under the deadline for tools; whatever happens, the answer is a JSON object."""
        if name not in self.names:
            self.refresh()
        if name not in self.names:
            return failure(f"No memory provider has a tool {name!r}.")
        answer = self._calling.call(
            "handle_tool_call",
            {"tool_name": name, "args": dict(args)},
            {"session_id": session_id},
            within=self.settings.tool_seconds,
        )
        if not answer.ok:
            return failure(f"Memory tool {name!r} failed: {answer.error}")
        return as_result(answer.value, self.settings.tool_chars, self._clean)


def usable_schemas(schemas: object, reserved: Collection[str]) -> tuple[dict[str, JsonObject], list[str]]:
    """Schemas by name, as an API takes them, and why others were left out."""
    if not isinstance(schemas, list | tuple):
        return {}, [f"{type(schemas).__name__} was given instead of a list of tools."]
    usable: dict[str, JsonObject] = {}
    refusals: list[str] = []
    for schema in schemas:
        bare = _bare(schema)
        name = bare.get("name") if bare else None
        reason = _refusal(name, usable, reserved)
        if bare is None or reason:
            refusals.append(f"The tool {name!r} is left out: {reason}.")
        else:
            usable[str(name)] = bare
    return usable, refusals


def _bare(schema: object) -> JsonObject | None:
    """A schema without the wrapping that some APIs want, and with everything that they all want."""
    if isinstance(schema, Mapping) and isinstance(schema.get("function"), Mapping):
        schema = schema["function"]
    if not isinstance(schema, Mapping):
        return None
    try:
        bare = json.loads(json.dumps(dict(schema)))
    except (TypeError, ValueError, RecursionError):
        return None
    assert isinstance(bare, dict)
    if not isinstance(bare.get("description"), str):
        bare["description"] = ""
    if not isinstance(bare.get("parameters"), dict):
        bare["parameters"] = {"type": "object", "properties": {}}
    return bare


def _refusal(name: object, usable: Mapping[str, Any], reserved: Collection[str]) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "it has no usable name"
    if name in reserved:
        return "a tool of the agent has that name"
    if name in usable:
        return "there is another one of that name"
    return ""


def has_memory_toolset(toolsets: Collection[str] | None, resolve: Callable[[str], Collection[str]] | None) -> bool:
    """Whether a platform has the memory toolset: by name, or in a set that holds it. No platform means yes."""
    if toolsets is None:
        return True
    if "memory" in toolsets:
        return True
    if resolve is None:
        return False
    try:
        return any("memory" in resolve(toolset) for toolset in toolsets)
    except (LookupError, ValueError, TypeError) as error:
        _log.warning("The toolsets of this platform cannot be told, so provider tools are left out: %s", error)
        return False


def as_result(reply: object, most: int, clean: Callable[[str], str]) -> JsonObject:
    """A provider's reply as a JSON object with a `success` key, cleaned and of a bounded size, whatever it was."""
    if not isinstance(reply, str):
        # Many answer with the value itself.
        try:
            reply = json.dumps(reply)
        except (TypeError, ValueError, RecursionError):
            return failure(f"answered with {type(reply).__name__}, which is not JSON")
    if len(reply) > most:
        return {"success": True, "truncated": True, "result": shorten_end(clean(reply), most, whole_lines=True)}
    try:
        value = json.loads(reply)
    except (ValueError, RecursionError):
        value = reply
    if value is None:
        return failure("gave no answer")
    value = clean_texts(value, clean)
    if not isinstance(value, dict):
        return {"success": True, "result": value}
    return {"success": "error" not in value, **value}


def failure(error: str) -> JsonObject:
    return {"success": False, "error": error}
