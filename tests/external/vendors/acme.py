"""A small vendor for tests of what all vendors share: a provider of the size of the example, and its service."""

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from memoranda.errors import PermanentProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.remote import confirmed
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import COMMON_FIELDS, MemoryWrite, Turn, Vendor, integer, text, tool
from tests.external.http_service import Exchange
from tests.external.vendors.vendor_contract import SECRET
from tests.external.vendors.vendor_service import HttpDouble


class AcmeVendor(Vendor):
    """Keeps each turn as one memory; a key finds it again."""

    name = "acme"
    label = "Acme"
    fields = (
        ConfigField("url", "Address of the service", required=True, env_var="ACME_URL"),
        ConfigField("api_key", "API key", secret=True, required=True, env_var="ACME_API_KEY"),
        *COMMON_FIELDS,
    )

    def open(self) -> None:
        self._client = self.connect(self.settings["url"], self.settings["api_key"])

    def test_connection(self) -> str:
        return f"Acme {self._client.get('/version')['version']} answered."

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        body = {"q": query, "user": self.scope.peer(), "limit": limit}
        found = self._client.post("/search", body, timeout=timeout, retry_safe=True)
        return [RecalledItem(hit["text"], hit["at"], hit["score"], hit["id"]) for hit in found["hits"]]

    def store_turn(self, turn: Turn) -> str:
        return self._store(turn, f"{turn.user} {turn.assistant}")

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        return self._store(write, write.content) if write.action != "remove" else None

    def delete_sent(self, session_ids: Any) -> tuple[list[SentItem], list[str]]:
        items = [item for item in self.sent.items() if session_ids is None or item.session_id in session_ids]
        for item in items:
            if item.remote_id:
                self._delete(item.remote_id)
        return items, []

    def _store(self, delivery: Turn | MemoryWrite, text: str) -> str:
        if delivery.may_be_stored:
            known = confirmed(self._client.get("/memories", query={"key": delivery.key}), self.label, "ids")
            if known:
                return str(known[0])
        body = {"text": text, "user": self.scope.peer(), "key": delivery.key, "at": delivery.time}
        return str(confirmed(self._client.post("/memories", body), self.label, "id"))

    def _delete(self, remote_id: str) -> None:
        try:
            self._client.request("DELETE", f"/memories/{remote_id}")
        except PermanentProviderError as error:
            if error.status != 404:
                raise

    @tool("acme_search", "Search Acme.", ("query",), query=text("What to look for."), limit=integer(1, 20, 5))
    def _search_tool(self, args: dict[str, Any], session_id: str) -> dict[str, Any]:
        items = self.search(args["query"], args["limit"], self.settings["timeout"])
        return {"results": [{"id": item.id, "text": item.text} for item in items]}

    @tool("acme_add", "Store a fact.", ("content",), writes=True, content=text("What to remember."))
    def _add_tool(self, args: dict[str, Any], session_id: str) -> dict[str, Any]:
        return {"id": self._client.post("/memories", {"text": args["content"], "user": self.scope.peer()})["id"]}


class AcmeProvider(VendorProvider):
    vendor_class = AcmeVendor


class AcmeDouble(HttpDouble):
    """The state of the service. It stores the same key twice if it is sent twice."""

    recorded = Path(__file__).parent / "recorded"
    store_path = "POST /memories"

    def __init__(self) -> None:
        super().__init__()
        self.memories: list[dict[str, Any]] = []
        self.search_seconds = 0.0

    def stored_texts(self) -> list[str]:
        return [memory["text"] for memory in self.memories]

    def handle(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.path)
        if exchange.headers["Authorization"] != f"Bearer {SECRET}":
            exchange.answer(401, {"error": "unknown key"})
        elif parts.path == "/version":
            exchange.answer(200, {"version": "1.0"})
        elif parts.path == "/search":
            time.sleep(self.search_seconds)
            exchange.answer(200, {"hits": self._find(json.loads(exchange.body))})
        elif exchange.command == "GET":
            key = parse_qs(parts.query)["key"][0]
            exchange.answer(200, {"ids": [memory["id"] for memory in self.memories if memory.get("key") == key]})
        elif exchange.command == "DELETE":
            number = parts.path.rpartition("/")[2]
            before = len(self.memories)
            self.memories = [memory for memory in self.memories if memory["id"] != number]
            exchange.answer(200 if len(self.memories) < before else 404, {})
        else:
            memory = json.loads(exchange.body) | {"id": f"m{len(self.memories) + 1}"}
            self.memories.append(memory)
            exchange.answer(201, {"id": memory["id"]})

    def _find(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        words = set(body["q"].lower().split())
        found = [
            {"id": memory["id"], "text": memory["text"], "at": memory.get("at"), "score": 0.5}
            for memory in self.memories
            if memory["user"] == body["user"] and words & set(memory["text"].lower().split())
        ]
        return found[: body["limit"]]
