"""The interface that client 5.0 of Supermemory uses: everything below `/ns/<namespace>`.

A document has the caller's id. Adding one with a known id and the same content changes nothing; with other content it
appends, so a document that may be stored is looked up first.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from memoranda.external.provider import Message
from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.http_answers import unless_refused
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.supermemory.client import Document, batches, document_id, recalled_items

# The older interface says "documents" for what is called chunks here.
_MODES = {"documents": "chunks"}


class NamespaceClient:
    """The calls of this interface."""

    name = "v5"

    def __init__(self, http: RemoteClient) -> None:
        self._http = http

    def check_access(self) -> None:
        self._http.get("ns", query={"limit": 1})

    def add(self, container: str, document: Document, *, may_be_stored: bool) -> str:
        if may_be_stored and self._is_stored(container, document.id):
            return document.id
        body = {"id": document.id, **_fields(document)}
        return document_id(self._http.post(f"{_namespace(container)}/document", body))

    def replace_conversation(self, container: str, document: Document, messages: Sequence[Message]) -> str:
        path = f"{_namespace(container)}/document"
        if self._is_stored(container, document.id):
            return document_id(self._http.request("PATCH", f"{path}/{quote(document.id, safe='')}", _fields(document)))
        return document_id(self._http.post(path, {"id": document.id, **_fields(document)}))

    def search(self, container: str, query: str, mode: str, limit: int, timeout: float) -> list[RecalledItem]:
        body = {"query": query, "limit": limit, "searchMode": _MODES.get(mode, mode)}
        path = f"{_namespace(container)}/search"
        found = unless_refused(lambda: self._http.post(path, body, timeout=timeout, retry_safe=True), {"results": []})
        return recalled_items(found)

    def profile(self, container: str, timeout: float) -> list[RecalledItem]:
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
        answer = self._http.request("DELETE", f"{_namespace(container)}/memories", {"ids": [memory_id]})
        return isinstance(answer, dict) and answer.get("count") == 1

    def delete_documents(self, container: str, ids: Sequence[str]) -> None:
        for group in batches(ids):
            self._delete(f"{_namespace(container)}/document", {"ids": group})

    def delete_container(self, container: str) -> None:
        self._delete(_namespace(container), None)

    def _is_stored(self, container: str, document: str) -> bool:
        path = f"{_namespace(container)}/document/{quote(document, safe='')}"
        return unless_refused(lambda: self._http.get(path), None) is not None

    def _delete(self, path: str, body: Any) -> None:
        unless_refused(lambda: self._http.request("DELETE", path, body), None)


def _namespace(container: str) -> str:
    return f"ns/{quote(container, safe='')}"


def _fields(document: Document) -> dict[str, Any]:
    fields = {"content": document.content, "metadata": dict(document.metadata), "date": document.date}
    return {**fields, "supportingContext": document.context} if document.context else fields
