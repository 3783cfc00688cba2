"""Mem0 as a vendor: facts that a model extracts from turns, searched by meaning.

A delivery is stored once: its key is in the metadata of every memory that comes from it, and is looked up before a
second attempt. A turn without facts leaves no memory, so a second attempt may ask Mem0's model again, and stores
nothing twice either.

The tools have the names and the arguments that the design and Hermes's plugin give them.
"""

import re
import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from memoranda.errors import PermanentProviderError
from memoranda.external.vendors.mem0.client import (
    ENTRY,
    KEY,
    KIND,
    SESSION,
    Addition,
    ChatMessage,
    Mem0Memory,
    PlatformClient,
    ServerClient,
)
from memoranda.external.vendors.mem0.library import (
    LibraryClient,
    SharedLibrary,
    StillLoadingError,
    library_is_installed,
)
from memoranda.external.vendors.mem0.settings import FIELDS, address, library_config, local_folder
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import RecalledItem, clean_text
from memoranda.external.vendors.vendor import Delegation, Delivery, MemoryWrite, Turn, Vendor, integer, text, tool
from memoranda.support.durable_files import make_private_directory
from memoranda.support.shorten import shorten_middle

_MEMORY_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PROFILE_LIMIT = 100
_ID = text("The id of a memory, as mem0_search shows it.")

# Two of them are less than 8,192 tokens, the limit of OpenAI's embedders, in most languages.
_MAX_MESSAGE_CHARS = 8_000
_ABOUT = "# Mem0\nMem0 stores facts from past conversations with the user."
_RECALL = "Facts that fit a message are added to it."
_TOOLS = "mem0_search searches all of them; mem0_conclude stores a fact that should stay."


class Mem0Vendor(Vendor):
    """Mem0's platform, its self-hosted server, or its library in this process."""

    name = "mem0"
    label = "Mem0"
    fields = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        if settings["deployment"] != "oss" or library_is_installed():
            return ""
        return "Mem0's library is not installed. Install it with: pip install 'memoranda[mem0]'"

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {"user_at_vendor": _user_id(scope, settings), "address": address(settings)}

    def open(self) -> None:
        self._user_id = _user_id(self.scope, self.settings)
        self._client = self._open_client()

    def close(self) -> None:
        self._client.close()

    def test_connection(self) -> str:
        return self._client.test()

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        try:
            found = self._find(query, limit, None, timeout)
        except StillLoadingError:
            # In the first turns of a process. It is no failure, and the next turn asks again.
            return []
        return [RecalledItem(memory.text, memory.time, memory.score, memory.id) for memory in found]

    def store_turn(self, turn: Turn) -> str:
        messages = [{"role": "user", "content": turn.user}, {"role": "assistant", "content": turn.assistant}]
        return self._deliver(turn, "turn", messages, infer=self.settings["infer"])

    def store_memory_write(self, write: MemoryWrite) -> str:
        if write.action in ("replace", "remove") and write.old_text:
            self._delete_entry(write)
        if write.action == "remove":
            return ""
        entry = {ENTRY: write.entry_id}
        return self._deliver(write, "entry", [{"role": "user", "content": write.content}], infer=False, extra=entry)

    def store_delegation(self, delegation: Delegation) -> str:
        task, result = f"Delegated task: {delegation.task}", delegation.result
        messages = [{"role": "user", "content": task}, {"role": "assistant", "content": result}]
        return self._deliver(delegation, "delegation", messages, infer=self.settings["infer"])

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        items = self.sent.of_sessions(session_ids)
        # The record has the ids that Mem0 reported; the metadata finds what it did not report.
        ids = dict.fromkeys(memory_id for item in items for memory_id in item.remote_id.split())
        for memory_id in ids:
            self._client.delete(memory_id)
        for memory in self._client.sent_memories(self._user_id):
            if session_ids is None or memory.metadata.get(SESSION) in session_ids:
                ids[memory.id] = None
                self._client.delete(memory.id)
        self._client.erase_history(self._user_id, list(ids))
        return items, [self._client.remains] if ids and self._client.remains else []

    def _open_client(self) -> PlatformClient | ServerClient | LibraryClient:
        settings = self.settings
        if settings["deployment"] == "oss":
            config = library_config(settings, self.scope.home)
            make_private_directory(self.scope.home / "mem0")
            return LibraryClient(SharedLibrary.acquire(config), settings["agent_id"])
        if settings["deployment"] == "server":
            headers = {"X-API-Key": settings["server_key"]} if settings["server_key"] else {}
            client = self.connect(settings["host"], headers=headers)
            return ServerClient(client, settings["agent_id"], settings["add_seconds"])
        headers = {"Authorization": f"Token {settings['api_key']}"}
        client = self.connect(settings["platform_url"], headers=headers)
        return PlatformClient(client, settings["agent_id"])

    def _deliver(
        self,
        delivery: Delivery,
        kind: str,
        messages: Iterable[ChatMessage],
        *,
        infer: bool,
        extra: Mapping[str, str] | None = None,
    ) -> str:
        """Store messages unless an earlier attempt did; returns the ids of the memories, separated by spaces."""
        metadata = {KEY: delivery.key, SESSION: delivery.session_id, KIND: kind, "channel": self.scope.platform}
        cleaned = [clean for message in messages if (clean := _clean(message))["content"]]
        addition = Addition(cleaned, self._user_id, {**metadata, **(extra or {})}, delivery.time, infer)
        found: list[str] = []
        if delivery.may_be_stored and addition.messages:
            earlier = self._client.find_attempt(addition)
            found = [memory.id for memory in earlier.memories]
            addition = _without_stored(addition, earlier.memories, everything=earlier.accepted)
        if addition.messages:
            found += self._client.add(addition)
        return " ".join(found)

    def _delete_entry(self, write: MemoryWrite) -> None:
        for memory in self._client.find_by_metadata(self._user_id, ENTRY, write.old_entry_id, write.old_text):
            self._client.delete(memory.id)

    def _remember(self, fact: str, session_id: str) -> dict[str, str]:
        delivery = Delivery(uuid.uuid4().hex, 1, time.time(), session_id)
        ids = self._deliver(delivery, "tool", [{"role": "user", "content": fact}], infer=False)
        self.sent.add("tool", delivery.key, ids, session_id)
        return {"result": "Stored in Mem0."}

    def _find(self, query: str, limit: int, rerank: bool | None, timeout: float) -> list[Mem0Memory]:
        chosen = bool(self.settings["rerank"]) if rerank is None else rerank
        score = self.settings["min_score"]
        return self._client.search(query, self._user_id, limit, min_score=score, rerank=chosen, timeout=timeout)

    @tool("mem0_profile", "Show everything that Mem0 remembers about the user.")
    def _profile_tool(self, args: dict[str, Any], session_id: str) -> Any:
        memories = sorted(self._client.memories(self._user_id, _PROFILE_LIMIT), key=lambda memory: memory.time or "")
        if not memories:
            return {"result": "Mem0 remembers nothing about the user yet."}
        return {"memories": [_shown(memory) for memory in memories], "count": len(memories)}

    @tool(
        "mem0_search",
        "Search Mem0 for what was said before, by meaning.",
        ("query",),
        query=text("What to look for."),
        top_k=integer(1, 50, 10, description="Maximum number of results."),
        rerank={"type": "boolean", "description": "Order the results more carefully, which is slower."},
    )
    def _search_tool(self, args: dict[str, Any], session_id: str) -> Any:
        found = self._find(args["query"], args["top_k"], args.get("rerank"), self.timeout)
        if not found:
            return {"result": "No relevant memories found."}
        return {"results": [{**_shown(memory), "score": memory.score} for memory in found], "count": len(found)}

    @tool(
        "mem0_conclude",
        "Store a conclusion about the user in Mem0, word for word.",
        ("conclusion",),
        writes=True,
        conclusion=text("One fact that stays true."),
    )
    def _conclude_tool(self, args: dict[str, Any], session_id: str) -> Any:
        return self._remember(args["conclusion"], session_id)

    @tool("mem0_add", "Store a text in Mem0, word for word.", ("content",), writes=True, content=text("The text."))
    def _add_tool(self, args: dict[str, Any], session_id: str) -> Any:
        return self._remember(args["content"], session_id)

    @tool(
        "mem0_update",
        "Replace the text of a memory in Mem0.",
        ("memory_id", "text"),
        writes=True,
        memory_id=_ID,
        text=text("The new text."),
    )
    def _update_tool(self, args: dict[str, Any], session_id: str) -> Any:
        if self._own_memory(args["memory_id"]) is None:
            return _unknown(args["memory_id"])
        self._client.update(args["memory_id"], args["text"])
        return {"result": "Updated in Mem0."}

    @tool("mem0_delete", "Delete a memory in Mem0.", ("memory_id",), writes=True, memory_id=_ID)
    def _delete_tool(self, args: dict[str, Any], session_id: str) -> Any:
        if self._own_memory(args["memory_id"]) is None or not self._client.delete(args["memory_id"]):
            return _unknown(args["memory_id"])
        return {"result": "Deleted from Mem0."}

    def _own_memory(self, memory_id: str) -> Mem0Memory | None:
        """A memory of this user: an id alone is no permission to change what belongs to another user."""
        if not _MEMORY_ID.fullmatch(memory_id):
            return None
        memory = self._client.get(memory_id)
        return memory if memory is not None and memory.user_id == self._user_id else None


class Mem0Provider(VendorProvider):
    vendor_class = Mem0Vendor

    def backup_paths(self) -> list[str]:
        """The folder of a local store that is not in the home."""
        settings = self._resolve(self._home)
        if self._home is None or (settings["deployment"], settings["oss_vector"]) != ("oss", "local"):
            return []
        folder = local_folder(settings, self._home)
        return [] if folder.is_relative_to(self._home) else [str(folder)]


def _user_id(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The configured id for the home's owner, and a name of its own for every other user."""
    chosen = str(settings.get("user_id") or "")
    if scope.user_id or not chosen:
        return scope.peer()
    if "__" in chosen or any(character.isspace() for character in chosen):
        # `__` separates profile and user in the names of the others.
        raise PermanentProviderError("user_id of Mem0 must not contain spaces or two underscores in a row.")
    return chosen


def _clean(message: ChatMessage) -> ChatMessage:
    """A message that every store and embedder accepts.

    Mem0 embeds the messages of a turn as one text. A refusal would park a long turn, so its middle is left out.
    """
    return {"role": message["role"], "content": shorten_middle(clean_text(message["content"]), _MAX_MESSAGE_CHARS)}


def _without_stored(addition: Addition, memories: Iterable[Mem0Memory], *, everything: bool) -> Addition:
    """What is left to send after an earlier attempt: nothing, or the messages that are not stored word for word."""
    stored = [memory.text for memory in memories]
    if everything or (addition.infer and stored):
        messages: list[ChatMessage] = []
    else:
        messages = [message for message in addition.messages if message["content"] not in stored]
    return Addition(messages, addition.user_id, addition.metadata, addition.time, addition.infer)


def _shown(memory: Mem0Memory) -> dict[str, Any]:
    return {"id": memory.id, "memory": memory.text} | ({"time": memory.time} if memory.time else {})


def _unknown(memory_id: str) -> dict[str, str]:
    return {"error": f"The user has no memory with the id {memory_id[:60]!r}; mem0_search shows ids."}
