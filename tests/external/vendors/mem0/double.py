"""Doubles of Mem0's server and platform: their wire formats over real sockets, with memories and recorded answers.

They extract a fact from every message of the user that is not small talk.
"""

import json
import time
import uuid
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.external.http_service import Exchange
from tests.external.vendors.vendor_contract import SECRET
from tests.external.vendors.vendor_service import HttpDouble

RECORDED = Path(__file__).with_name("recorded")
_COUNT = {"page": "1", "page_size": "100", "top_k": "100"}


class Mem0Double(HttpDouble):
    """The memories of the service."""

    key_header: ClassVar[tuple[str, str]]

    def __init__(self) -> None:
        super().__init__()
        self.memories: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.additions: list[dict[str, Any]] = []
        self.replies: list[tuple[int, Any]] = []
        """Answers that replace the next ones."""

    def texts(self, user_id: str = "default") -> list[str]:
        return [memory["memory"] for memory in self.memories if memory["user_id"] == user_id]

    def stored_texts(self) -> list[str]:
        for event in self.events:
            self.finish(event)
        return [memory["memory"] for memory in self.memories]

    def handle(self, exchange: Exchange) -> None:
        url = urlsplit(exchange.path)
        query = _COUNT | {name: values[0] for name, values in parse_qs(url.query).items()}
        header, value = self.key_header
        if self.replies:
            exchange.answer(*self.replies.pop(0))
        elif exchange.headers[header] != value:
            self.answer_recorded(exchange, "401")
        else:
            body = json.loads(exchange.body) if exchange.body else {}
            self.route(exchange, url.path.strip("/").split("/"), query, body)

    def route(self, exchange: Exchange, path: list[str], query: Any, body: Any) -> None:
        raise NotImplementedError

    def finish(self, event: dict[str, Any]) -> None:
        """Process a queued addition."""

    def add(self, body: Any, created_at: str) -> list[dict[str, Any]]:
        self.additions.append(body)
        texts = [
            message["content"]
            for message in body["messages"]
            if not body["infer"] or (message["role"] == "user" and "thanks" not in message["content"])
        ]
        new = [
            {
                "id": str(uuid.uuid4()),
                "memory": text,
                "user_id": body["user_id"],
                "agent_id": body.get("agent_id"),
                "app_id": body.get("app_id"),
                "metadata": dict(body["metadata"]),
                "created_at": created_at,
                "updated_at": created_at,
            }
            for text in texts
        ]
        self.memories += new
        return new

    def find(self, query: str, filters: dict[str, Any], limit: int, threshold: float) -> list[dict[str, Any]]:
        words = set(query.lower().split())
        found = []
        for memory in self.memories:
            own = set(memory["memory"].lower().split())
            score = len(words & own) / len(words | own)
            if _matches(memory, filters) and score >= threshold:
                found.append({**memory, "score": score})
        return sorted(found, key=lambda memory: -memory["score"])[:limit]

    def one_memory(self, exchange: Exchange, id_: str, body: Any, show: Any) -> None:
        memory = next((memory for memory in self.memories if memory["id"] == id_), None)
        method = exchange.command
        if memory is None:
            self.answer_recorded(exchange, "get_unknown" if method == "GET" else "delete_again")
        elif method == "GET":
            exchange.answer(200, show(memory))
        elif method == "PUT":
            memory["memory"] = body["text"]
            exchange.answer(200, {"message": "Memory updated successfully!"})
        else:
            self.memories.remove(memory)
            exchange.answer(200, {"message": "Memory deleted successfully"})


class ServerDouble(Mem0Double):
    """The self-hosted server."""

    recorded = RECORDED / "server"
    store_path = r"^POST /memories$"
    key_header = ("X-API-Key", SECRET)

    def __init__(self) -> None:
        super().__init__()
        self.embedder_fails = False

    def route(self, exchange: Exchange, path: list[str], query: Any, body: Any) -> None:
        if path == ["search"] and self.embedder_fails:
            self.answer_recorded(exchange, "search_model_down")
        elif path == ["search"]:
            found = self.find(body["query"], body["filters"], body["top_k"], body["threshold"])
            exchange.answer(200, {"results": [_server_memory(memory) for memory in found]})
        elif path == ["memories"] and exchange.command == "GET":
            wanted = {name: value for name, value in query.items() if name in ("user_id", "agent_id")}
            found = [memory for memory in self.memories if wanted.items() <= memory.items()][: int(query["top_k"])]
            exchange.answer(200, {"results": [_server_memory(memory) for memory in found]})
        elif path == ["memories"]:
            new = self.add(body, body["metadata"].pop("created_at"))
            results = [{"id": memory["id"], "memory": memory["memory"], "event": "ADD"} for memory in new]
            exchange.answer(200, {"results": results})
        else:
            self.one_memory(exchange, path[1], body, _server_memory)


class PlatformDouble(Mem0Double):
    """The platform, which queues additions with `infer`."""

    recorded = RECORDED / "platform"
    store_path = r"^POST /v3/memories/add/$"
    key_header = ("Authorization", f"Token {SECRET}")
    stalled = False
    """Whether queued additions stay queued."""

    def route(self, exchange: Exchange, path: list[str], query: Any, body: Any) -> None:
        if path == ["v1", "ping"]:
            self.answer_recorded(exchange, "ping")
        elif path == ["v3", "memories", "add"]:
            self._queue(exchange, body)
        elif path == ["v3", "memories", "search"]:
            found = self.find(body["query"], body["filters"], body["top_k"], body["threshold"])
            exchange.answer(200, {"results": found})
        elif path == ["v3", "memories"]:
            self._list(exchange, query, body["filters"])
        elif path == ["v1", "events"]:
            exchange.answer(200, {"count": len(self.events), "next": None, "previous": None, "results": self.events})
        elif path[:2] == ["v1", "event"]:
            event = next(event for event in self.events if event["id"] == path[2])
            self.finish(event)
            exchange.answer(200, event)
        else:
            self.one_memory(exchange, path[2], body, dict)

    def finish(self, event: dict[str, Any]) -> None:
        if event["status"] != "PENDING" or self.stalled:
            return
        body = event["payload"]
        new = self.add(body, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(body["timestamp"])))
        event["results"] = [
            {"id": memory["id"], "data": {"memory": memory["memory"]}, "event": "ADD"} for memory in new
        ]
        event["status"] = "SUCCEEDED"

    def _queue(self, exchange: Exchange, body: Any) -> None:
        event = {"id": str(uuid.uuid4()), "status": "PENDING", "payload": body, "results": []}
        self.events.append(event)
        if not body["infer"]:
            self.finish(event)
        answer = {"event_id": event["id"], "status": event["status"]}
        exchange.answer(200, answer if body["infer"] else {**answer, "results": event["results"]})

    def _list(self, exchange: Exchange, query: Any, filters: Any) -> None:
        conditions = filters.get("AND", [filters])
        wanted: dict[str, Any] = {}
        for condition in conditions:
            wanted |= condition.get("metadata", condition)
        found = [memory for memory in self.memories if _matches(memory, wanted)]
        page, size = int(query["page"]), int(query["page_size"])
        shown = found[(page - 1) * size : page * size]
        following = f"page={page + 1}" if page * size < len(found) else None
        exchange.answer(200, {"count": len(found), "next": following, "previous": None, "results": shown})


def _matches(memory: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(value in (memory.get(name), memory["metadata"].get(name)) for name, value in wanted.items())


def _server_memory(memory: dict[str, Any]) -> dict[str, Any]:
    """A memory as the server shows it: it has no applications, and leaves out what is empty."""
    return {"hash": "0" * 32, **{name: value for name, value in memory.items() if value is not None}}
