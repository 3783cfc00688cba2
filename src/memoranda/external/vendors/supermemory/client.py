"""The clients for Supermemory's two interfaces, with the documents, settings and containers that both have in common.

Client 3.50 of Supermemory for Python uses one interface (`V4Client`), client 5.0 another with other paths and names
(`NamespaceClient`). A container separates the data of one user from all others: a container tag in the older one, a
namespace in the newer one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any
from urllib.parse import quote

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.message_text import plain_text
from memoranda.external.provider import Message
from memoranda.external.remote import RemoteClient, confirmed, unless_refused
from memoranda.external.vendors.scope import VendorScope, encode_name
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import ALLOW_HTTP, MODE, TIMEOUT
from memoranda.support.lazy_dataclass import dataclass

# Both services accept as many ids in one request.
_MAX_IDS = 100

_MAX_CONTAINER_CHARS = 100
_CONTAINER = re.compile(r"[A-Za-z0-9_.-]+")
_IDENTITY = "{identity}"

FIELDS = (
    ConfigField(
        "api_key", "API key", secret=True, required=True, env_var="SUPERMEMORY_API_KEY",
        url="https://console.supermemory.ai",
    ),
    ConfigField(
        "base_url", "Address of the service", default="https://api.supermemory.ai", env_var="SUPERMEMORY_BASE_URL"
    ),
    ConfigField(
        "api_version", "Interface of the service: that of client 5 (v5), of client 3 (v4), or ask the service (auto)",
        default="auto", choices=("auto", "v5", "v4"),
    ),
    ALLOW_HTTP,
    ConfigField(
        "container_tag", "Name of a user's container; {identity} stands for profile and user",
        default="memoranda_{identity}", env_var="SUPERMEMORY_CONTAINER_TAG",
    ),
    MODE,
    ConfigField("auto_recall", "Recall before each turn", default=True),
    ConfigField("auto_capture", "Store each turn", default=True),
    ConfigField(
        "capture_mode", "Store each turn when it is complete (all), or one conversation when a session ends (session)",
        default="all", choices=("all", "everything", "session"),
    ),
    ConfigField("max_recall_results", "Maximum number of results per turn", default=10, minimum=1, maximum=20),
    ConfigField("profile_frequency", "Recall the profile every so many turns", default=50, minimum=1, maximum=500),
    ConfigField(
        "search_mode", "What to search: memories, documents (passages of what was stored), or both (hybrid)",
        default="hybrid", choices=("hybrid", "memories", "documents"),
    ),
    ConfigField("entity_context", "What Supermemory should know about the user, at most 1,500 characters", default=""),
    ConfigField("enable_custom_container_tags", "Let the model choose among more containers", default=False),
    ConfigField("custom_containers", "Names of these containers, separated by commas", default=""),
    ConfigField("custom_container_instructions", "When the model should use which of them", default=""),
    replace(TIMEOUT, key="api_timeout", default=10.0, minimum=0.5),
)  # fmt: skip

# The older interface says "documents" for what is called chunks here.
_MODES = {"documents": "chunks"}

_ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Document:
    """A text for a container. A document with the id of an earlier one is the same document."""

    id: str
    content: str
    date: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: str = ""
    """What helps Supermemory to extract memories, at most 1,500 characters."""


def _recalled_items(answer: object) -> list[RecalledItem]:
    """The results of a search, which both interfaces describe in nearly the same way."""
    found = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise TemporaryProviderError("Supermemory answered a search without results.")
    items = [_recalled(entry) for entry in found if isinstance(entry, dict)]
    return [item for item in items if item.text]


def _recalled(entry: Mapping[str, Any]) -> RecalledItem:
    memory, passage = entry.get("memory"), entry.get("chunk")
    system = entry.get("system")
    details = system if isinstance(system, dict) else entry
    similarity = entry.get("similarity")
    return RecalledItem(
        text=memory if isinstance(memory, str) else passage if isinstance(passage, str) else "",
        time=details.get("updatedAt") if isinstance(details.get("updatedAt"), str) else None,
        score=similarity if isinstance(similarity, int | float) else None,
        id=str(entry.get("id") or ""),
        kind="memory" if isinstance(memory, str) else "passage",
    )


def document_id(answer: object) -> str:
    return str(confirmed(answer, "Supermemory", "id"))


def _batches(ids: Sequence[str]) -> list[list[str]]:
    """Ids in groups that fit into one request."""
    return [list(ids[first : first + _MAX_IDS]) for first in range(0, len(ids), _MAX_IDS)]


def container_name(scope: VendorScope, settings: Mapping[str, Any], custom: str = "") -> str:
    """The container of a user, or one of the user's others. Users and profiles never get the same one by default.

    A name without `{identity}` belongs to the owner of the home; other users get it with `__<user>` added. Raises
    PermanentProviderError for a name that Supermemory does not accept.
    """
    template = custom or str(settings["container_tag"])
    if _IDENTITY in template:
        room = _MAX_CONTAINER_CHARS - len(template) + len(_IDENTITY)
        name = template.replace(_IDENTITY, scope.peer(max_chars=room, keep=""))
    else:
        name = f"{template}__{encode_name(scope.user_id, keep='')}" if scope.user_id else template
    if not _CONTAINER.fullmatch(name) or len(name) > _MAX_CONTAINER_CHARS:
        raise PermanentProviderError(
            f"supermemory: {name[:60]!r} cannot be a container: only letters, digits, '_', '-' and '.', "
            f"and at most {_MAX_CONTAINER_CHARS} characters. 'memoranda provider setup supermemory' sets container_tag."
        )
    return name


def custom_containers(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The other containers that the model may choose; empty unless they are enabled."""
    if not settings["enable_custom_container_tags"]:
        return ()
    value = settings["custom_containers"]
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(name for part in parts if (name := str(part).strip()))


def owns_container(settings: Mapping[str, Any]) -> bool:
    """Whether the container has a name that only Memoranda gives, so that all of its content is ours."""
    return str(settings["container_tag"]) == "memoranda_{identity}"


class NamespaceClient:
    """The interface that client 5.0 of Supermemory uses: everything below `/ns/<namespace>`.

    A document has the caller's id. Adding one with a known id and the same content changes nothing; with other content
    it appends, so a document that may be stored is looked up first.
    """

    name = "v5"

    def __init__(self, http: RemoteClient) -> None:
        self._http = http

    def check_access(self, timeout: float | None = None) -> None:
        """Make a cheap call that needs the key, and that only this interface answers as expected."""
        confirmed(self._http.get("ns", query={"limit": 1}, timeout=timeout), "Supermemory", "namespaces")

    def add(self, container: str, document: Document, *, may_be_stored: bool) -> str:
        """Store a document once, and return the service's id for it."""
        if may_be_stored and self._is_stored(container, document.id):
            return document.id
        body = {"id": document.id, **_fields(document)}
        return document_id(self._http.post(f"{_namespace(container)}/document", body))

    def replace_conversation(self, container: str, document: Document, messages: Sequence[Message]) -> str:
        """Store a conversation; one with the same id replaces it. `document` has it as text."""
        path = f"{_namespace(container)}/document"
        if self._is_stored(container, document.id):
            return document_id(self._http.request("PATCH", f"{path}/{quote(document.id, safe='')}", _fields(document)))
        return document_id(self._http.post(path, {"id": document.id, **_fields(document)}))

    def search(self, container: str, query: str, mode: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Memories and passages that match, best first. `mode` is hybrid, memories or documents."""
        body = {"query": query, "limit": limit, "searchMode": _MODES.get(mode, mode)}
        path = f"{_namespace(container)}/search"
        found = unless_refused(lambda: self._http.post(path, body, timeout=timeout, retry_safe=True), {"results": []})
        return _recalled_items(found)

    def profile(self, container: str, timeout: float) -> list[RecalledItem]:
        """What Supermemory knows about the user, lasting facts first."""
        path = f"{_namespace(container)}/profile"
        answer = unless_refused(lambda: self._http.post(path, {}, timeout=timeout, retry_safe=True), {})
        found = answer.get("profile") if isinstance(answer, dict) else None
        sections = found if isinstance(found, dict) else {}
        return [
            RecalledItem(fact["memory"], id=str(fact.get("id") or ""), kind=kind)
            for name, kind in (("static", "profile"), ("dynamic", "recent"))
            for fact in sections.get(name) or ()
            if isinstance(fact, dict) and isinstance(fact.get("memory"), str)
        ]

    def forget_memory(self, container: str, memory_id: str) -> bool:
        """Remove one memory from recall; False if there is no such memory."""
        answer = self._http.request("DELETE", f"{_namespace(container)}/memories", {"ids": [memory_id]})
        return isinstance(answer, dict) and answer.get("count") == 1

    def delete_documents(self, container: str, ids: Sequence[str]) -> None:
        """Delete documents with what was derived from them; unknown ids are ignored."""
        for group in _batches(ids):
            self._delete(f"{_namespace(container)}/document", {"ids": group})

    def delete_container(self, container: str) -> None:
        self._delete(_namespace(container), None)

    def _is_stored(self, container: str, document: str) -> bool:
        path = f"{_namespace(container)}/document/{quote(document, safe='')}"
        answer = unless_refused(lambda: self._http.get(path), None)
        return answer is not None and bool(document_id(answer))

    def _delete(self, path: str, body: Any) -> None:
        unless_refused(lambda: self._http.request("DELETE", path, body), None)


def _namespace(container: str) -> str:
    return f"ns/{quote(container, safe='')}"


def _fields(document: Document) -> dict[str, Any]:
    fields = {"content": document.content, "metadata": dict(document.metadata), "date": document.date}
    return {**fields, "supportingContext": document.context} if document.context else fields


class V4Client:
    """The interface that client 3.50 of Supermemory uses: `/v3/documents`, `/v4/search`, `/v4/profile` and others.

    Documents have a `customId`. Adding one with the id of another updates that one, so a repeated delivery adds
    nothing.
    """

    name = "v4"

    def __init__(self, http: RemoteClient) -> None:
        self._http = http

    def check_access(self, timeout: float | None = None) -> None:
        answer = self._http.post("v3/documents/list", {"limit": 1}, retry_safe=True, timeout=timeout)
        confirmed(answer, "Supermemory", "memories", "documents")

    def add(self, container: str, document: Document, *, may_be_stored: bool) -> str:
        body = {
            "content": document.content,
            "containerTag": container,
            "customId": document.id,
            "metadata": {**document.metadata, "date": document.date},
            **({"entityContext": document.context} if document.context else {}),
        }
        return document_id(self._http.post("v3/documents", body))

    def replace_conversation(self, container: str, document: Document, messages: Sequence[Message]) -> str:
        spoken = [
            {"role": message["role"], "content": text}
            for message in messages
            if message.get("role") in _ROLES and (text := plain_text(message.get("content")).strip())
        ]
        body = {
            "conversationId": document.id,
            "messages": spoken,
            "containerTags": [container],
            "metadata": {**document.metadata, "date": document.date},
        }
        answer = self._http.post("v4/conversations", body)
        # What it answers is documented nowhere; the id of the conversation is an id of its document, too.
        return str(confirmed(answer, "Supermemory", "id", "documentId", "conversationId"))

    def search(self, container: str, query: str, mode: str, limit: int, timeout: float) -> list[RecalledItem]:
        body = {"q": query, "containerTag": container, "limit": limit, "searchMode": mode}
        return _recalled_items(self._http.post("v4/search", body, timeout=timeout, retry_safe=True))

    def profile(self, container: str, timeout: float) -> list[RecalledItem]:
        body = {"containerTag": container}
        answer = self._http.post("v4/profile", body, timeout=timeout, retry_safe=True)
        found = answer.get("profile") if isinstance(answer, dict) else None
        sections = found if isinstance(found, dict) else {}
        return [
            RecalledItem(fact, kind=kind)
            for name, kind in (("static", "profile"), ("dynamic", "recent"))
            for fact in sections.get(name) or ()
            if isinstance(fact, str)
        ]

    def forget_memory(self, container: str, memory_id: str) -> bool:
        body = {"containerTag": container, "id": memory_id}
        answer = unless_refused(lambda: self._http.request("DELETE", "v4/memories", body), {})
        return isinstance(answer, dict) and answer.get("forgotten") is True

    def delete_documents(self, container: str, ids: Sequence[str]) -> None:
        for path in (f"v3/documents/{quote(document, safe='')}" for document in ids):
            unless_refused(lambda path=path: self._http.request("DELETE", path), None)  # type: ignore[misc]

    def delete_container(self, container: str) -> None:
        self._http.request("DELETE", "v3/documents/bulk", {"containerTags": [container]})


SupermemoryClient = NamespaceClient | V4Client
"""One of the two interfaces. Every call raises a subclass of ProviderError if it does not succeed."""
