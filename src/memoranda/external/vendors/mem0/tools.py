"""The tools of Mem0, under the names and with the arguments that the design and Hermes's plugin give them."""

import re
from collections.abc import Callable
from typing import Any

from memoranda.external.vendors.mem0.client import Mem0Client, Mem0Memory
from memoranda.external.vendors.vendor_tool import VendorTool

_MEMORY_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PROFILE_LIMIT = 100
_ID = {"type": "string", "description": "The id of a memory, as mem0_search shows it."}

Remember = Callable[[str, str], None]
Search = Callable[[str, int, bool | None], list[Mem0Memory]]


class Mem0Tools:
    """The tools of one user. `remember` stores a text for a session; `search` finds memories of the user."""

    def __init__(self, store: Mem0Client, user_id: str, remember: Remember, search: Search) -> None:
        self._client = store
        self._user_id = user_id
        self._remember = remember
        self._search = search

    def tools(self) -> tuple[VendorTool, ...]:
        return (
            VendorTool("mem0_profile", "Show everything that Mem0 remembers about the user.", {}, self._profile),
            VendorTool(
                "mem0_search",
                "Search Mem0 for what was said before, by meaning.",
                {
                    "query": {"type": "string", "description": "What to look for."},
                    "top_k": {
                        "type": "integer",
                        "description": "Maximum number of results.",
                        "minimum": 1,
                        "maximum": 50,
                        "default": 10,
                    },
                    "rerank": {"type": "boolean", "description": "Order the results more carefully, which is slower."},
                },
                self._find,
                required=("query",),
            ),
            VendorTool(
                "mem0_conclude",
                "Store a conclusion about the user in Mem0, word for word.",
                {"conclusion": {"type": "string", "description": "One fact that stays true."}},
                lambda args, session_id: self._add(args["conclusion"], session_id),
                required=("conclusion",),
                writes=True,
            ),
            VendorTool(
                "mem0_add",
                "Store a text in Mem0, word for word.",
                {"content": {"type": "string", "description": "The text."}},
                lambda args, session_id: self._add(args["content"], session_id),
                required=("content",),
                writes=True,
            ),
            VendorTool(
                "mem0_update",
                "Replace the text of a memory in Mem0.",
                {"memory_id": _ID, "text": {"type": "string", "description": "The new text."}},
                self._update,
                required=("memory_id", "text"),
                writes=True,
            ),
            VendorTool(
                "mem0_delete",
                "Delete a memory in Mem0.",
                {"memory_id": _ID},
                self._delete,
                required=("memory_id",),
                writes=True,
            ),
        )

    def _profile(self, args: dict[str, Any], session_id: str) -> Any:
        memories = sorted(self._client.memories(self._user_id, _PROFILE_LIMIT), key=lambda memory: memory.time or "")
        if not memories:
            return {"result": "Mem0 remembers nothing about the user yet."}
        return {"memories": [_shown(memory) for memory in memories], "count": len(memories)}

    def _find(self, args: dict[str, Any], session_id: str) -> Any:
        found = self._search(args["query"], args["top_k"], args.get("rerank"))
        if not found:
            return {"result": "No relevant memories found."}
        return {"results": [{**_shown(memory), "score": memory.score} for memory in found], "count": len(found)}

    def _add(self, text: str, session_id: str) -> Any:
        self._remember(text, session_id)
        return {"result": "Stored in Mem0."}

    def _update(self, args: dict[str, Any], session_id: str) -> Any:
        if self._own_memory(args["memory_id"]) is None:
            return _unknown(args["memory_id"])
        self._client.update(args["memory_id"], args["text"])
        return {"result": "Updated in Mem0."}

    def _delete(self, args: dict[str, Any], session_id: str) -> Any:
        if self._own_memory(args["memory_id"]) is None or not self._client.delete(args["memory_id"]):
            return _unknown(args["memory_id"])
        return {"result": "Deleted from Mem0."}

    def _own_memory(self, memory_id: str) -> Mem0Memory | None:
        """A memory of this user: an id alone is no permission to change what belongs to another user."""
        if not _MEMORY_ID.fullmatch(memory_id):
            return None
        memory = self._client.get(memory_id)
        return memory if memory is not None and memory.user_id == self._user_id else None


def _shown(memory: Mem0Memory) -> dict[str, Any]:
    return {"id": memory.id, "memory": memory.text} | ({"time": memory.time} if memory.time else {})


def _unknown(memory_id: str) -> dict[str, str]:
    return {"error": f"The user has no memory with the id {memory_id[:60]!r}; mem0_search shows ids."}
