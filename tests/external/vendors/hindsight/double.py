"""A Hindsight server for tests: its state is small, its answers have the shapes that a real one recorded."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.external.http_service import Exchange
from tests.external.vendors.vendor_contract import SECRET
from tests.external.vendors.vendor_service import HttpDouble, read_recording


class HindsightDouble(HttpDouble):
    """Banks with documents and operations, as a server of version 1.1.0 has them.

    `model_works` says whether the server can process what it accepts.
    """

    recorded = Path(__file__).parent / "recorded"
    store_path = r"POST /v1/default/banks/[^/]+/memories$"

    def __init__(self) -> None:
        super().__init__()
        self.banks: dict[str, dict[str, dict[str, Any]]] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.missions: dict[str, dict[str, str]] = {}
        self.model_works = True

    def stored_texts(self) -> list[str]:
        """In the order of the times that the documents carry."""
        documents = [document for bank in self.banks.values() for document in bank.values()]
        return [document["content"] for document in sorted(documents, key=lambda document: document["timestamp"])]

    def handle(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.path)
        if parts.path == "/version":
            self.answer_recorded(exchange, "version")
        elif exchange.headers["Authorization"] != f"Bearer {SECRET}":
            self.answer_recorded(exchange, "401")
        else:
            names = [unquote(name) for name in parts.path.split("/")[4:]]
            body = json.loads(exchange.body) if exchange.body else {}
            self._answer(exchange, names, body, parse_qs(parts.query))

    def _answer_like(self, exchange: Exchange, name: str, **changes: Any) -> None:
        """Answer with a recording, whose body is changed in some parts."""
        recording = read_recording(self.recorded, name)
        exchange.answer(recording["status"], recording["body"] | changes)

    def _body(self, name: str) -> Any:
        return read_recording(self.recorded, name)["body"]

    def _answer(self, exchange: Exchange, names: list[str], body: Any, query: dict[str, list[str]]) -> None:
        bank, path = (names[0], names[1:]) if names else ("", [])
        if not path:
            self._answer_about_bank(exchange, bank, body)
        elif (exchange.command, *path) == ("POST", "memories"):
            self._retain(exchange, bank, body)
        elif bank not in self.banks:
            self.answer_recorded(exchange, "recall_unknown_bank")
        else:
            self._answer_within(exchange, bank, path, body, query)

    def _answer_about_bank(self, exchange: Exchange, bank: str, body: Any) -> None:
        if exchange.command == "PUT":
            self.missions[bank] = body
            self.answer_recorded(exchange, "set_missions")
        elif exchange.command == "DELETE":
            self.banks.pop(bank, None)
            self.operations = {id: found for id, found in self.operations.items() if found["bank"] != bank}
            self.answer_recorded(exchange, "delete_bank")
        else:
            self.answer_recorded(exchange, "banks")

    def _answer_within(
        self, exchange: Exchange, bank: str, path: list[str], body: Any, query: dict[str, list[str]]
    ) -> None:
        match (exchange.command, *path):
            case ("POST", "memories", "recall"):
                self._recall(exchange, bank, body)
            case ("POST", "reflect"):
                self.answer_recorded(exchange, "reflect")
            case ("GET", "operations"):
                self._list_operations(exchange, bank, query)
            case ("POST", "operations", operation_id, "retry"):
                self._retry(exchange, operation_id)
            case ("DELETE", "operations", operation_id, "delete"):
                found = self.operations.pop(operation_id, None)
                self.answer_recorded(exchange, "delete_operation" if found else "retry_unknown")
            case ("GET", "documents"):
                self._list_documents(exchange, bank, query)
            case ("DELETE", "documents", document_id):
                deleted = self.banks[bank].pop(document_id, None)
                self.answer_recorded(exchange, "delete_document" if deleted else "delete_unknown_document")
            case _:
                self.answer_recorded(exchange, "404")

    def _retain(self, exchange: Exchange, bank: str, body: Any) -> None:
        item, operation_id = body["items"][0], body["operation_id"]
        if not item["content"].strip():
            self.answer_recorded(exchange, "422")
            return
        known = self.operations.get(operation_id)
        if known is not None and known["bank"] != bank:
            self.answer_recorded(exchange, "409")
            return
        self.banks.setdefault(bank, {})
        if not body["async"]:
            self.banks[bank][item["document_id"]] = item
        elif known is None:
            # As the real server does, it accepts an operation again that it knows, and does nothing for it.
            self.operations[operation_id] = {"id": operation_id, "bank": bank, "item": item, "status": "pending"}
            self._run(self.operations[operation_id])
        name = "retain" if body["async"] else "retain_and_wait"
        self._answer_like(exchange, name, bank_id=bank, operation_id=operation_id if body["async"] else None)

    def _run(self, operation: dict[str, Any]) -> None:
        operation["status"] = "completed" if self.model_works else "failed"
        if self.model_works:
            self.banks[operation["bank"]][operation["item"]["document_id"]] = operation["item"]

    def _recall(self, exchange: Exchange, bank: str, body: Any) -> None:
        words = set(body["query"].lower().split())
        if not any(character.isalnum() for character in body["query"]):
            self.answer_recorded(exchange, "recall_invalid")
            return
        shape = self._body("recall")["results"][0]
        results = []
        for document in self.banks[bank].values():
            if words & set(document["content"].lower().replace(".", "").split()):
                results.append(deepcopy(shape) | {"text": document["content"], "mentioned_at": document["timestamp"]})
        self._answer_like(exchange, "recall", results=results)

    def _list_operations(self, exchange: Exchange, bank: str, query: dict[str, list[str]]) -> None:
        failed = self._body("operations_failed")["operations"]
        shape = next(entry for entry in failed if entry["operation_type"] == "batch_retain")
        wanted = query.get("status", ["completed", "failed"])
        found = [
            shape | {"id": found["id"], "status": found["status"], "document_id": found["item"]["document_id"]}
            for found in self.operations.values()
            if found["bank"] == bank and found["status"] in wanted
        ]
        first = int(query.get("offset", ["0"])[0])
        page = found[::-1][first : first + int(query["limit"][0])]
        self._answer_like(exchange, "operations_failed", operations=page, total=len(found))

    def _retry(self, exchange: Exchange, operation_id: str) -> None:
        found = self.operations.get(operation_id)
        if found is None:
            self.answer_recorded(exchange, "retry_unknown")
        elif found["status"] != "failed":
            self.answer_recorded(exchange, "retry_not_failed")
        else:
            self._run(found)
            self.answer_recorded(exchange, "retry")

    def _list_documents(self, exchange: Exchange, bank: str, query: dict[str, list[str]]) -> None:
        shape = self._body("documents")["items"][0]
        tags = set(query.get("tags", ()))
        found = [
            shape | {"id": document["document_id"], "tags": document.get("tags", [])}
            for document in self.banks[bank].values()
            if not tags or tags & set(document.get("tags", ()))
        ]
        first = int(query["offset"][0])
        page = found[first : first + int(query["limit"][0])]
        self._answer_like(exchange, "documents", items=page, total=len(found))
