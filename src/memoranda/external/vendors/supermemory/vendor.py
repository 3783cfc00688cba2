"""Supermemory as a vendor: one container per user, one document per turn.

The tools have the names and the arguments that models and users know.
"""

import logging
import threading
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError
from memoranda.external.message_text import plain_text
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.supermemory.client import (
    FIELDS,
    Document,
    NamespaceClient,
    SupermemoryClient,
    V4Client,
    container_name,
    custom_containers,
    owns_container,
)
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import (
    Delivery,
    MemoryWrite,
    SessionEnd,
    ToolArgumentError,
    Turn,
    Vendor,
    VendorTool,
    digest,
    integer,
    text,
    tool,
)
from memoranda.support.tool import JsonObject

_log = logging.getLogger(__name__)

_ABOUT = "# Supermemory"
_RECALL = (
    "Memories of earlier conversations that match a message are added to it; at times also what is known of the user."
)
_TOOLS = (
    "Use supermemory_search to search these memories, supermemory_profile for what is known of the user, "
    "supermemory_store for what should be remembered, and supermemory_forget for what is wrong or outdated."
)

# A memory that matches less is not deleted by a query.
_MIN_SIMILARITY = 0.5
_TOOL_LIMIT = 5
_MAX_CONTEXT_CHARS = 1_500
_MAX_PROFILE_ITEMS = 10


class SupermemoryVendor(Vendor):
    """Turns become documents, from which the service learns memories and a profile of the user."""

    name = "supermemory"
    label = "Supermemory"
    fields = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)

    def open(self) -> None:
        settings = self.settings
        self._service = self.connect(settings["base_url"], settings["api_key"], {"x-sm-source": "memoranda"})
        self._container = container_name(self.scope, settings)
        self._containers = {name: container_name(self.scope, settings, name) for name in custom_containers(settings)}
        self._client: SupermemoryClient | None = None
        self._choosing = threading.Lock()
        self._searches = 0

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {"container": container_name(scope, settings)}

    @property
    def mode(self) -> str:
        return super().mode if self.settings["auto_recall"] else "tools"

    @property
    def recall_limit(self) -> int:
        return int(self.settings["max_recall_results"])

    @property
    def timeout(self) -> float:
        return float(self.settings["api_timeout"])

    def prompt_block(self) -> str:
        block = super().prompt_block()
        instructions = str(self.settings["custom_container_instructions"]) if self._containers else ""
        return f"{block}\n{instructions}" if instructions and self.mode != "context" else block

    def test_connection(self) -> str:
        client = self._choose_client()
        client.check_access()
        return (
            f"Supermemory at {self.settings['base_url']} answers, with the interface {client.name}; "
            f"the container is {self._container}."
        )

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        deadline = time.monotonic() + timeout
        client = self._choose_client(timeout)
        found = client.search(self._container, query, self.settings["search_mode"], limit, deadline - time.monotonic())
        due = self._searches % self.settings["profile_frequency"] == 0
        self._searches += 1
        return [*found, *self._profile(client, deadline)] if due else found

    def store_turn(self, turn: Turn) -> str | None:
        if not self.settings["auto_capture"] or self.settings["capture_mode"] == "session":
            return None
        text = "\n".join(
            f"{name}: {words}" for name, words in (("User", turn.user), ("Assistant", turn.assistant)) if words.strip()
        )
        return self._add(turn, f"turn-{turn.uuid}", text, "conversation_turn") if text else None

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror an entry as a document of its own; a replaced or removed entry is deleted with its memories."""
        if write.action in ("replace", "remove") and write.old_text:
            self._choose_client().delete_documents(self._container, [self._entry_id(write.target, write.old_text)])
        if write.action == "remove" or not write.content.strip():
            return None
        # A document that is an address would be fetched by Supermemory.
        about = "About the user" if write.target == "user" else "Note"
        return self._add(write, self._entry_id(write.target, write.content), f"{about}: {write.content}", "memory")

    def end_session(self, end: SessionEnd) -> None:
        """Store the whole conversation, if turns are not stored one by one."""
        if not self.settings["auto_capture"] or self.settings["capture_mode"] != "session":
            return
        spoken = [
            (message, text)
            for message in end.messages
            if message.get("role") in ("user", "assistant") and (text := plain_text(message.get("content")).strip())
        ]
        if not spoken:
            return
        text = "\n".join(f"{str(message['role']).title()}: {words}" for message, words in spoken)
        document = self._document(end, f"session-{digest(self._container, end.session_id)}", text, "conversation")
        remote = self._choose_client().replace_conversation(
            self._container, document, [message for message, _ in spoken]
        )
        self.sent.add("session", end.session_id, remote, end.session_id)

    def tools(self) -> Sequence[VendorTool]:
        if not self._containers:
            return super().tools()
        choice = text("Which container to use; without it, the user's own.", enum=list(self._containers))
        return [replace(tool, properties={**tool.properties, "container_tag": choice}) for tool in super().tools()]

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        client = self._choose_client()
        items = self.sent.of_sessions(session_ids)
        by_container: dict[str, list[str]] = {}
        for item in items:
            if item.remote_id:
                by_container.setdefault(self._container_of(item), []).append(item.remote_id)
        if session_ids is None and owns_container(self.settings):
            by_container.pop(self._container, None)
            client.delete_container(self._container)
        for container, ids in by_container.items():
            client.delete_documents(container, ids)
        return items, []

    def _choose_client(self, timeout: float | None = None) -> SupermemoryClient:
        """The interface that the settings name, or the newer one if the service has it; asked until one answers."""
        with self._choosing:
            if self._client is None:
                self._client = self._find_client(self.settings["api_version"], timeout)
            return self._client

    def _find_client(self, version: str, timeout: float | None) -> SupermemoryClient:
        newer, older = NamespaceClient(self._service), V4Client(self._service)
        if version != "auto":
            return newer if version == "v5" else older
        try:
            newer.check_access(timeout)
        except PermanentProviderError as error:
            if error.status not in (404, 405):
                raise
            # Whatever fails at the address answers 404, too: the other interface must answer as its own.
            older.check_access(timeout)
            return older
        return newer

    def _profile(self, client: SupermemoryClient, deadline: float) -> list[RecalledItem]:
        try:
            return client.profile(self._container, deadline - time.monotonic())[:_MAX_PROFILE_ITEMS]
        except ProviderError as error:
            _log.info("Supermemory recalls without the profile: %s", error)
            return []

    def _add(self, delivery: Delivery, document_id: str, text: str, kind: str) -> str:
        document = self._document(delivery, document_id, text, kind)
        return self._choose_client().add(self._container, document, may_be_stored=delivery.may_be_stored)

    def _document(
        self, delivery: Delivery, document_id: str, text: str, kind: str, metadata: Mapping[str, Any] | None = None
    ) -> Document:
        known = {"sm_source": "memoranda", "type": kind, "session_id": delivery.session_id}
        return Document(
            document_id,
            text,
            delivery.iso_time,
            {**(metadata or {}), **{name: value for name, value in known.items() if value}},
            str(self.settings["entity_context"])[:_MAX_CONTEXT_CHARS],
        )

    def _named(self, container: str) -> str:
        return self._containers[container] if container else self._container

    def _container_of(self, item: SentItem) -> str:
        """Where an item was stored; the containers of the model may have been disabled since."""
        name = item.kind.partition(" ")[2]
        return container_name(self.scope, self.settings, name) if name else self._container

    def _entry_id(self, target: str, text: str) -> str:
        """The document of an entry of curated memory; ids are unique across containers."""
        return f"entry-{digest(self._container, target, text.strip())}"

    @tool(
        "supermemory_store",
        "Store a fact, a preference or a decision in long-term memory.",
        ("content",),
        writes=True,
        content=text("What to remember, in full sentences."),
        metadata={"type": "object", "description": "Labels: names with texts, numbers or true and false."},
    )
    def _store_tool(self, args: JsonObject, session_id: str) -> Any:
        metadata = {name: value for name, value in args.get("metadata", {}).items() if _is_plain(value)}
        container = args.get("container_tag", "")
        delivery = Delivery(uuid.uuid4().hex, 1, time.time(), session_id)
        document = self._document(delivery, f"tool-{delivery.uuid}", args["content"], "explicit_memory", metadata)
        stored = self._choose_client().add(self._named(container), document, may_be_stored=False)
        self.sent.add(f"tool {container}".strip(), delivery.key, stored, session_id)
        return {"result": "Stored. Supermemory extracts memories in the background.", "id": stored}

    @tool(
        "supermemory_search",
        "Search long-term memory by meaning.",
        ("query",),
        query=text("What to search for."),
        limit=integer(1, 20, _TOOL_LIMIT, description="Maximum number of results."),
    )
    def _search_tool(self, args: JsonObject, session_id: str) -> Any:
        return {"results": _listed(self._find(args["query"], args["limit"], args.get("container_tag", "")))}

    @tool(
        "supermemory_forget",
        "Remove one memory: the one with this id, or the one that matches the query best.",
        writes=True,
        id=text("The id of a memory, from supermemory_search."),
        query=text("Words of the memory, if its id is not known."),
    )
    def _forget_tool(self, args: JsonObject, session_id: str) -> Any:
        container = args.get("container_tag", "")
        if memory_id := args.get("id", ""):
            if self._forget_memory(memory_id, container):
                return {"result": "Forgotten.", "id": memory_id}
            return {"error": f"There is no memory with the id {memory_id}."}
        if not args.get("query"):
            raise ToolArgumentError("supermemory_forget needs id or query.")
        found = self._find(args["query"], 1, container, "memories")
        if not found or (found[0].score or 0.0) < _MIN_SIMILARITY:
            return {"error": "No memory matches well enough. Search for it, and pass its id."}
        if not self._forget_memory(found[0].id, container):
            return {"error": f"The memory {found[0].id} could not be forgotten."}
        return {"result": "Forgotten.", "id": found[0].id, "content": found[0].text}

    @tool(
        "supermemory_profile",
        "What long-term memory knows about the user: lasting facts and recent ones.",
        query=text("Also search for this."),
    )
    def _profile_tool(self, args: JsonObject, session_id: str) -> Any:
        container = args.get("container_tag", "")
        known = self._choose_client().profile(self._named(container), self.timeout)
        facts = [{"content": item.text, "kind": item.kind} for item in known]
        if not args.get("query"):
            return {"profile": facts}
        return {"profile": facts, "results": _listed(self._find(args["query"], _TOOL_LIMIT, container))}

    def _find(self, query: str, limit: int, container: str, mode: str = "") -> list[RecalledItem]:
        mode = mode or self.settings["search_mode"]
        return self._choose_client().search(self._named(container), query, mode, limit, self.timeout)

    def _forget_memory(self, memory_id: str, container: str) -> bool:
        return self._choose_client().forget_memory(self._named(container), memory_id)


class SupermemoryProvider(VendorProvider):
    vendor_class = SupermemoryVendor


def _is_plain(value: object) -> bool:
    """Whether Supermemory accepts a value in metadata."""
    return isinstance(value, str | int | float | bool)


def _listed(items: Sequence[RecalledItem]) -> list[JsonObject]:
    return [
        {"id": item.id, "content": item.text, "kind": item.kind, "similarity": item.score, "updated_at": item.time}
        for item in items
    ]
