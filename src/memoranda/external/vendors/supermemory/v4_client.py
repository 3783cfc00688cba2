"""The interface that client 3.50 of Supermemory uses: `/v3/documents`, `/v4/search`, `/v4/profile` and others.

Documents have a `customId`. Adding one with the id of another updates that one, so a repeated delivery adds nothing.
"""

from collections.abc import Sequence
from urllib.parse import quote

from memoranda.external.message_text import plain_text
from memoranda.external.provider import Message
from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.http_answers import unless_refused
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.supermemory.client import Document, document_id, recalled_items

_ROLES = ("user", "assistant")


class V4Client:
    """The calls of this interface."""

    name = "v4"

    def __init__(self, http: RemoteClient) -> None:
        self._http = http

    def check_access(self) -> None:
        self._http.post("v3/documents/list", {"limit": 1}, retry_safe=True)

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
        found = answer.get("id") if isinstance(answer, dict) else None
        return found if isinstance(found, str) and found else document.id

    def search(self, container: str, query: str, mode: str, limit: int, timeout: float) -> list[RecalledItem]:
        body = {"q": query, "containerTag": container, "limit": limit, "searchMode": mode}
        return recalled_items(self._http.post("v4/search", body, timeout=timeout, retry_safe=True))

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
