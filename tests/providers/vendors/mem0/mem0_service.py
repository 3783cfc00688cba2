"""A service that speaks Mem0's two wire formats, for tests: the platform's below `/v1` and `/v3`, else the server's.

It keeps memories, extracts a fact from every user message that is not small talk, and answers as the recorded answers
in `recorded/` do. `refuse` replaces its next answers; `lose_answers` drops that many after an addition was stored.
"""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.providers.http_service import Exchange, Service, serving

KEY = "m0-key-0123456789abcdef"
_RECORDED = Path(__file__).with_name("recorded")


def recorded(file: str, name: str) -> dict[str, Any]:
    """One recorded exchange: request, status, headers, answer."""
    exchanges = json.loads((_RECORDED / f"{file}.json").read_text("utf-8"))["exchanges"]
    return next(exchange for exchange in exchanges if exchange["name"] == name)


class Mem0Service:
    """The memories of the service."""

    def __init__(self) -> None:
        self.memories: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.additions: list[dict[str, Any]] = []
        self.lose_answers = 0
        self.refuse: list[dict[str, Any]] = []
        self.embedder_fails = 0
        self.polls_until_done = 1
        self._lock = threading.Lock()

    def texts(self, user_id: str = "default") -> list[str]:
        return [memory["memory"] for memory in self.memories if memory["user_id"] == user_id]

    def respond(self, exchange: Exchange) -> None:
        url = urlsplit(exchange.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        platform = url.path.startswith(("/v1/", "/v3/"))
        sent = exchange.headers["Authorization"] if platform else exchange.headers["X-API-Key"]
        with self._lock:
            if self.refuse:
                answer = self.refuse.pop(0)
                exchange.answer(answer["status"], answer["answer"], **answer.get("headers", {}))
            elif sent != (f"Token {KEY}" if platform else KEY):
                refusal = recorded("platform" if platform else "server", "wrong_key")
                exchange.answer(refusal["status"], refusal["answer"])
            else:
                body = json.loads(exchange.body) if exchange.body else {}
                handle = self._platform if platform else self._server
                handle(exchange, exchange.command, url.path.strip("/").split("/"), query, body)

    # The self-hosted server

    def _server(self, exchange: Exchange, method: str, path: list[str], query: Any, body: Any) -> None:
        if path == ["search"]:
            if self.embedder_fails:
                self.embedder_fails -= 1
                exchange.answer(502, recorded("server", "search_model_down")["answer"])
                return
            found = self._search(body["query"], body["filters"], body["top_k"], body["threshold"])
            exchange.answer(200, {"results": [_server_memory(memory) for memory in found]})
        elif path == ["memories"] and method == "GET":
            wanted = {name: value for name, value in query.items() if name in ("user_id", "agent_id")}
            found = [memory for memory in self.memories if wanted.items() <= memory.items()][: int(query["top_k"])]
            exchange.answer(200, {"results": [_server_memory(memory) for memory in found]})
        elif path == ["memories"]:
            new = self._add(body, body["metadata"].pop("created_at"))
            results = [{"id": memory["id"], "memory": memory["memory"], "event": "ADD"} for memory in new]
            self._answer_addition(exchange, {"results": results})
        else:
            self._one_memory(exchange, method, path[1], body, _server_memory, "server")

    # The platform

    def _platform(self, exchange: Exchange, method: str, path: list[str], query: Any, body: Any) -> None:
        if path == ["v1", "ping"]:
            exchange.answer(200, recorded("platform", "ping")["answer"])
        elif path == ["v3", "memories", "add"]:
            self._platform_add(exchange, body)
        elif path == ["v3", "memories", "search"]:
            found = self._search(body["query"], body["filters"], body["top_k"], body["threshold"])
            exchange.answer(200, {"results": found})
        elif path == ["v3", "memories"]:
            self._platform_list(exchange, query, body["filters"])
        elif path == ["v1", "events"]:
            exchange.answer(200, {"count": len(self.events), "next": None, "previous": None, "results": self.events})
        elif path[:2] == ["v1", "event"]:
            event = next(event for event in self.events if event["id"] == path[2])
            event["polls"] += 1
            if event["status"] == "PENDING" and event["polls"] >= self.polls_until_done:
                self._finish(event)
            exchange.answer(200, event)
        else:
            self._one_memory(exchange, method, path[2], body, dict, "platform")

    def _platform_add(self, exchange: Exchange, body: Any) -> None:
        event = {"id": str(uuid.uuid4()), "status": "PENDING", "payload": body, "results": [], "polls": 0}
        self.events.append(event)
        if not body["infer"]:
            self._finish(event)
        answer = {"event_id": event["id"], "status": event["status"]}
        self._answer_addition(exchange, answer if body["infer"] else {**answer, "results": event["results"]})

    def _finish(self, event: dict[str, Any]) -> None:
        body = event["payload"]
        new = self._add(body, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(body["timestamp"])))
        event["results"] = [
            {"id": memory["id"], "data": {"memory": memory["memory"]}, "event": "ADD"} for memory in new
        ]
        event["status"] = "SUCCEEDED"

    def _platform_list(self, exchange: Exchange, query: Any, filters: Any) -> None:
        conditions = filters.get("AND", [filters])
        wanted: dict[str, Any] = {}
        for condition in conditions:
            wanted |= condition.get("metadata", condition)
        found = [memory for memory in self.memories if _matches(memory, wanted)]
        page, size = int(query["page"]), int(query["page_size"])
        shown = found[(page - 1) * size : page * size]
        following = f"page={page + 1}" if page * size < len(found) else None
        exchange.answer(200, {"count": len(found), "next": following, "previous": None, "results": shown})

    # Both

    def _add(self, body: Any, created_at: str) -> list[dict[str, Any]]:
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

    def _answer_addition(self, exchange: Exchange, answer: Any) -> None:
        if self.lose_answers:
            self.lose_answers -= 1
            exchange.reset()
        else:
            exchange.answer(200, answer)

    def _search(self, query: str, filters: dict[str, Any], limit: int, threshold: float) -> list[dict[str, Any]]:
        words = set(query.lower().split())
        found = []
        for memory in self.memories:
            own = set(memory["memory"].lower().split())
            score = len(words & own) / len(words | own)
            if _matches(memory, filters) and score >= threshold:
                found.append({**memory, "score": score})
        return sorted(found, key=lambda memory: -memory["score"])[:limit]

    def _one_memory(self, exchange: Exchange, method: str, id_: str, body: Any, show: Any, wire: str) -> None:
        memory = next((memory for memory in self.memories if memory["id"] == id_), None)
        if memory is None and wire == "server" and method == "GET":
            exchange.answer(200, None)
        elif memory is None:
            missing = recorded(wire, "delete_again" if wire == "server" else "get_unknown")
            exchange.answer(missing["status"], missing["answer"])
        elif method == "GET":
            exchange.answer(200, show(memory))
        elif method == "PUT":
            memory["memory"] = body["text"]
            exchange.answer(200, {"message": "Memory updated successfully!"})
        else:
            self.memories.remove(memory)
            exchange.answer(200, {"message": "Memory deleted successfully"})


def _matches(memory: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(value in (memory.get(name), memory["metadata"].get(name)) for name, value in wanted.items())


def _server_memory(memory: dict[str, Any]) -> dict[str, Any]:
    """A memory as the server shows it: it has no applications, and leaves out what is empty."""
    return {"hash": "0" * 32, **{name: value for name, value in memory.items() if value is not None}}


@contextmanager
def mem0_service() -> Iterator[tuple[Mem0Service, Service]]:
    state = Mem0Service()
    with serving(state.respond) as service:
        yield state, service


def settings_for(deployment: str, service: Service, **others: Any) -> dict[str, Any]:
    """The settings of a provider that uses the service as one of its deployments."""
    url = {"server": "host", "platform": "platform_url"}[deployment]
    return {
        "deployment": deployment,
        url: service.url,
        **{"server": {"server_key": KEY}, "platform": {"api_key": KEY}}[deployment],
        **others,
    }
