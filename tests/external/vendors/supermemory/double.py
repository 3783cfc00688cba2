"""Doubles of Supermemory's two interfaces. Their answers have the fields that the clients 3.50.0 and 5.0.1 read."""

import json
from abc import abstractmethod
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.external.http_service import Exchange
from tests.external.vendors.vendor_contract import SECRET
from tests.external.vendors.vendor_service import HttpDouble, read_recording

_SHAPES = Path(__file__).parent / "shapes"


class SupermemoryDouble(HttpDouble):
    """Containers with documents; every document is also one memory, whose id starts with `mem_`."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[str, dict[str, Any]] = {}
        """By their id; each has container, text, date and the request's body."""
        self.forgotten: set[str] = set()

    def stored_texts(self) -> list[str]:
        return [found["text"] for found in sorted(self.documents.values(), key=lambda found: found["date"])]

    def handle(self, exchange: Exchange) -> None:
        if exchange.headers["Authorization"] != f"Bearer {SECRET}":
            self.answer_recorded(exchange, "401")
            return
        body = json.loads(exchange.body) if exchange.body else {}
        names = [unquote(name) for name in urlsplit(exchange.path).path.split("/")[1:]]
        self.answer(exchange, names, body)

    @abstractmethod
    def answer(self, exchange: Exchange, names: list[str], body: Any) -> None:
        """Answer a request to a path, which is given in parts."""

    def put(self, document_id: str, container: str, text: str, date: str, body: Any) -> None:
        self.documents[document_id] = {"container": container, "text": text, "date": date, "body": body}

    def answer_like(self, exchange: Exchange, name: str, **changes: Any) -> None:
        recording = read_recording(self.recorded, name)
        exchange.answer(recording["status"], recording["body"] | changes)

    def answer_search(self, exchange: Exchange, container: str, query: str, limit: int) -> None:
        words = set(query.lower().split())
        shape = read_recording(self.recorded, "search")["body"]["results"][0]
        found = [
            shape | {"id": f"mem_{document_id}", "memory": document["text"]}
            for document_id, document in self.documents.items()
            if document["container"] == container
            and f"mem_{document_id}" not in self.forgotten
            and words & set(document["text"].lower().replace(".", "").split())
        ]
        self.answer_like(exchange, "search", results=found[:limit])

    def forget(self, container: str, memory_id: str) -> bool:
        document = self.documents.get(memory_id.removeprefix("mem_"))
        found = document is not None and document["container"] == container and memory_id not in self.forgotten
        if found:
            self.forgotten.add(memory_id)
        return found

    def delete_container(self, container: str) -> None:
        self.documents = {id: found for id, found in self.documents.items() if found["container"] != container}


class V4Double(SupermemoryDouble):
    """The interface of client 3.50.0; a document with a known `customId` is updated."""

    recorded = _SHAPES / "v4"
    store_path = r"POST /v3/documents$"

    def answer(self, exchange: Exchange, names: list[str], body: Any) -> None:
        match (exchange.command, *names):
            case ("POST", "v3", "documents"):
                self.put(body["customId"], body["containerTag"], body["content"], body["metadata"]["date"], body)
                self.answer_like(exchange, "add", id=f"doc_{body['customId']}")
            case ("POST", "v4", "conversations"):
                text = "\n".join(message["content"] for message in body["messages"])
                self.put(body["conversationId"], body["containerTags"][0], text, body["metadata"]["date"], body)
                self.answer_like(exchange, "conversation", conversationId=body["conversationId"])
            case ("POST", "v4", "search"):
                self.answer_search(exchange, body["containerTag"], body["q"], body["limit"])
            case ("POST", "v4", "profile"):
                self.answer_recorded(exchange, "profile")
            case ("POST", "v3", "documents", "list"):
                self.answer_recorded(exchange, "list")
            case ("DELETE", "v4", "memories"):
                found = self.forget(body["containerTag"], body["id"])
                self.answer_recorded(exchange, "forget" if found else "404")
            case ("DELETE", "v3", "documents", "bulk"):
                self.delete_container(body["containerTags"][0])
                self.answer_recorded(exchange, "bulk")
            case ("DELETE", "v3", "documents", document_id):
                self._delete(exchange, document_id.removeprefix("doc_"))
            case _:
                self.answer_recorded(exchange, "404")

    def _delete(self, exchange: Exchange, document_id: str) -> None:
        if self.documents.pop(document_id, None) is None:
            self.answer_recorded(exchange, "404")
        else:
            exchange.answer(204, b"")


class NamespaceDouble(SupermemoryDouble):
    """The interface of client 5.0.1; another text for a known document is appended to it."""

    recorded = _SHAPES / "v5"
    store_path = r"POST /ns/[^/]+/document$"

    def answer(self, exchange: Exchange, names: list[str], body: Any) -> None:
        namespace = names[1] if len(names) > 1 else ""
        match (exchange.command, *names[2:]):
            case _ if names[0] != "ns":
                self.answer_recorded(exchange, "404")
            case ("GET",):
                self.answer_recorded(exchange, "namespaces")
            case ("POST", "document"):
                self._add(exchange, namespace, body)
            case ("POST", "search"):
                self.answer_search(exchange, namespace, body["query"], body["limit"])
            case ("POST", "profile"):
                self.answer_recorded(exchange, "profile")
            case ("DELETE",):
                self.delete_container(namespace)
                self.answer_recorded(exchange, "delete_namespace")
            case ("DELETE", "document"):
                for document_id in body["ids"]:
                    self.documents.pop(document_id, None)
                self.answer_recorded(exchange, "delete")
            case ("DELETE", "memories"):
                found = self.forget(namespace, body["ids"][0])
                self.answer_recorded(exchange, "forget" if found else "forget_missing")
            case (_, "document", document_id):
                self._answer_about(exchange, namespace, document_id, body)
            case _:
                self.answer_recorded(exchange, "404")

    def _add(self, exchange: Exchange, namespace: str, body: Any) -> None:
        known = self.documents.get(body["id"])
        if known is None:
            self.put(body["id"], namespace, body["content"], body["date"], body)
        elif known["text"] != body["content"]:
            known["text"] += f"\n{body['content']}"
        self.answer_like(exchange, "document" if known is None else "duplicate", id=body["id"])

    def _answer_about(self, exchange: Exchange, namespace: str, document_id: str, body: Any) -> None:
        known = self.documents.get(document_id)
        if known is None or known["container"] != namespace:
            self.answer_recorded(exchange, "404")
        elif exchange.command == "PATCH":
            self.put(document_id, namespace, body["content"], body["date"], body)
            self.answer_like(exchange, "document", id=document_id)
        else:
            self.answer_like(exchange, "get", id=document_id)
