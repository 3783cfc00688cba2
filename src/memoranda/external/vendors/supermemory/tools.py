"""The tools of Supermemory, under the names and with the arguments that models and users know."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.supermemory import guidance
from memoranda.external.vendors.vendor_tool import JsonObject, ToolArgumentError, VendorTool

_TEXT: JsonObject = {"type": "string"}
_LIMIT: JsonObject = {
    "type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": guidance.LIMIT,
}  # fmt: skip
# A memory that matches less is not deleted by a query.
_MIN_SIMILARITY = 0.5


class ToolCalls(Protocol):
    """What the tools need of the vendor; `container` is empty for the user's own."""

    def store(self, content: str, metadata: Mapping[str, Any], key: str, session_id: str, container: str) -> str: ...

    def find(self, query: str, limit: int, container: str, mode: str = "") -> list[RecalledItem]: ...

    def known_facts(self, container: str) -> list[RecalledItem]: ...

    def forget_memory(self, memory_id: str, container: str) -> bool: ...


class SupermemoryTools:
    """The four tools. With other containers, each has the argument `container_tag`."""

    def __init__(self, calls: ToolCalls, containers: Sequence[str]) -> None:
        self._calls = calls
        self._containers = containers

    def tools(self) -> Sequence[VendorTool]:
        content, query = _described(guidance.CONTENT), _described(guidance.QUERY)
        metadata = {"type": "object", "description": guidance.METADATA}
        which = {"id": _described(guidance.FORGET_ID), "query": _described(guidance.FORGET_QUERY)}
        return (
            self._tool(
                "supermemory_store",
                guidance.STORE_TOOL,
                {"content": content, "metadata": metadata},
                self._store,
                required=("content",),
                writes=True,
            ),
            self._tool(
                "supermemory_search",
                guidance.SEARCH_TOOL,
                {"query": query, "limit": _LIMIT},
                self._search,
                required=("query",),
            ),
            self._tool("supermemory_forget", guidance.FORGET_TOOL, which, self._forget, writes=True),
            self._tool(
                "supermemory_profile",
                guidance.PROFILE_TOOL,
                {"query": _described(guidance.PROFILE_QUERY)},
                self._profile,
            ),
        )

    def _tool(
        self,
        name: str,
        description: str,
        properties: Mapping[str, JsonObject],
        run: Callable[[JsonObject, str], Any],
        *,
        required: tuple[str, ...] = (),
        writes: bool = False,
    ) -> VendorTool:
        choice = {**_TEXT, "enum": list(self._containers), "description": guidance.CONTAINER}
        more = {"container_tag": choice} if self._containers else {}
        return VendorTool(name, description, {**properties, **more}, run, required, writes=writes)

    def _store(self, args: JsonObject, session_id: str) -> Any:
        metadata = {name: value for name, value in args.get("metadata", {}).items() if _is_plain(value)}
        container = args.get("container_tag", "")
        stored = self._calls.store(args["content"], metadata, uuid.uuid4().hex, session_id, container)
        return {"result": "Stored. Supermemory extracts memories in the background.", "id": stored}

    def _search(self, args: JsonObject, session_id: str) -> Any:
        return {"results": _listed(self._calls.find(args["query"], args["limit"], args.get("container_tag", "")))}

    def _forget(self, args: JsonObject, session_id: str) -> Any:
        container = args.get("container_tag", "")
        if memory_id := args.get("id", ""):
            if self._calls.forget_memory(memory_id, container):
                return {"result": "Forgotten.", "id": memory_id}
            return {"error": f"There is no memory with the id {memory_id}."}
        if not args.get("query"):
            raise ToolArgumentError("supermemory_forget needs id or query.")
        found = self._calls.find(args["query"], 1, container, "memories")
        if not found or (found[0].score or 0.0) < _MIN_SIMILARITY:
            return {"error": "No memory matches well enough. Search for it, and pass its id."}
        if not self._calls.forget_memory(found[0].id, container):
            return {"error": f"The memory {found[0].id} could not be forgotten."}
        return {"result": "Forgotten.", "id": found[0].id, "content": found[0].text}

    def _profile(self, args: JsonObject, session_id: str) -> Any:
        container = args.get("container_tag", "")
        facts = [{"content": item.text, "kind": item.kind} for item in self._calls.known_facts(container)]
        if not args.get("query"):
            return {"profile": facts}
        return {"profile": facts, "results": _listed(self._calls.find(args["query"], _LIMIT["default"], container))}


def _described(description: str) -> JsonObject:
    return {**_TEXT, "description": description}


def _is_plain(value: object) -> bool:
    """Whether Supermemory accepts a value in metadata."""
    return isinstance(value, str | int | float | bool)


def _listed(items: Sequence[RecalledItem]) -> list[JsonObject]:
    return [
        {"id": item.id, "content": item.text, "kind": item.kind, "similarity": item.score, "updated_at": item.time}
        for item in items
    ]
