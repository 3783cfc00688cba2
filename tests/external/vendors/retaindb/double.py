"""Doubles of RetainDB: its local program as recorded, and its server, which queues turns, knows keys and has files."""

import json
import re
import uuid
from email import message_from_bytes
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.external.http_service import Exchange
from tests.external.vendors.vendor_contract import SECRET
from tests.external.vendors.vendor_service import HttpDouble

RECORDED = Path(__file__).with_name("recorded")
# The local program never lists more.
_PAGE = 200
_TIME = "2026-01-15T10:30:00.000Z"


class LocalDouble(HttpDouble):
    """RetainDB's local program: stores at once, needs no key, and has neither jobs nor files."""

    recorded = RECORDED / "local"
    shows_times = True
    store_path = r"^POST /v1/memory(/ingest/session)?$"

    def __init__(self) -> None:
        super().__init__()
        self.memories: list[dict[str, Any]] = []
        self.bodies: list[dict[str, Any]] = []

    def stored_texts(self) -> list[str]:
        return [memory["content"] for memory in self.memories]

    def handle(self, exchange: Exchange) -> None:
        url = urlsplit(exchange.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        path = [unquote(part) for part in url.path.strip("/").split("/")][1:]
        self.route(exchange, path, query)

    def route(self, exchange: Exchange, path: list[str], query: dict[str, str]) -> None:
        if path == ["memory", "ingest", "session"]:
            self.ingest(exchange, json.loads(exchange.body))
        elif path == ["memory"] and exchange.command == "POST":
            self.write(exchange, json.loads(exchange.body))
        elif path in (["memory", "search"], ["context", "query"]):
            body = json.loads(exchange.body)
            found = self.find(body)
            exchange.answer(200, {"success": True, "results": [self.show_hit(memory) for memory in found]})
        elif path[:2] in (["memory", "profile"], ["memory", "session"]) and len(path) == 3:
            name = "user_id" if path[1] == "profile" else "session_id"
            wanted = {name: path[2], "project": query["project"]}
            newest = [memory for memory in reversed(self.memories) if wanted.items() <= memory.items()]
            exchange.answer(200, {"success": True, "memories": [*self.pending(wanted), *newest[:_PAGE]]})
        elif exchange.command == "DELETE" and path[0] == "memory":
            self.delete(exchange, path[1])
        else:
            self.answer_recorded(exchange, "404")

    def ingest(self, exchange: Exchange, body: dict[str, Any]) -> None:
        new = self.store_turn(body)
        exchange.answer(200, {"success": True, "memories_created": len(new), "memories": new})

    def store_turn(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        self.bodies.append(body)
        texts = [message["content"] for message in body["messages"] if len(message["content"].split()) > 1]
        known = {name: body[name] for name in ("project", "user_id", "session_id", "agent_id")}
        times = {"metadata": {"timestamp": body["messages"][0]["timestamp"]}} if self.shows_times else {}
        texts = texts or [body["messages"][0]["content"]]
        return [self.add({**known, **times, "content": text, "type": "event"}) for text in texts]

    def write(self, exchange: Exchange, body: dict[str, Any]) -> None:
        if len(body["content"].split()) < 2:
            memory = {"id": "skip_1", "content": body["content"], "active": False}
            exchange.answer(200, {"success": True, "memory_id": "skip_1", "stored": True, "memory": memory})
            return
        self.bodies.append(body)
        memory = self.add({**body, "type": body["memory_type"]})
        exchange.answer(200, {"success": True, "memory_id": memory["id"], "stored": True, "memory": memory})

    def add(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Store a memory, unless there is one with the same content, as RetainDB does."""
        same = {name: fields[name] for name in ("project", "session_id", "content")}
        if known := [memory for memory in self.memories if same.items() <= memory.items()]:
            return known[0]
        memory = {"id": f"mem_{uuid.uuid4()}", "created_at": _TIME, **fields}
        self.memories.append(memory)
        return memory

    def find(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        words = set(re.findall(r"\w+", body["query"].lower()))
        scope = {name: body[name] for name in ("project", "user_id")}
        matching = [memory for memory in self.memories if scope.items() <= memory.items()]
        scored = [(len(words & set(re.findall(r"\w+", memory["content"].lower()))), memory) for memory in matching]
        ranked = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        return [memory for _, memory in ranked][: body.get("top_k", 10)]

    def show_hit(self, memory: dict[str, Any]) -> dict[str, Any]:
        return {"id": memory["id"], "score": 9.8, "content": memory["content"], "memory": memory}

    def pending(self, wanted: dict[str, str]) -> list[dict[str, Any]]:
        return []

    def delete(self, exchange: Exchange, memory_id: str) -> None:
        self.memories = [memory for memory in self.memories if memory["id"] != memory_id]
        exchange.answer(200, {"success": True, "deleted": memory_id})


class ServerDouble(LocalDouble):
    """RetainDB's server: a key, jobs, idempotency keys, and files of the whole organization."""

    recorded = RECORDED / "server"
    shows_times = False

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, dict[str, Any]] = {}
        self.failing_jobs = 0
        self.stalled = False
        self.answers: dict[str, tuple[bytes, Any]] = {}
        self.files: dict[str, dict[str, Any]] = {}

    def stored_texts(self) -> list[str]:
        for job in self.jobs.values():
            self.finish(job)
        return super().stored_texts()

    def handle(self, exchange: Exchange) -> None:
        if exchange.headers["Authorization"] != f"Bearer {SECRET}":
            self.answer_recorded(exchange, "401")
        else:
            super().handle(exchange)

    def route(self, exchange: Exchange, path: list[str], query: dict[str, str]) -> None:
        if path[:2] == ["memory", "jobs"]:
            job = self.jobs[path[2]]
            self.finish(job)
            exchange.answer(200, {"success": True, "job": {"id": path[2], "status": job["status"]}})
        elif path[0] == "memory" and len(path) == 2 and exchange.command == "GET":
            found = [memory for memory in self.memories if memory["id"] == path[1]]
            exchange.answer(200, {"success": True, "memory": found[0]}) if found else self.answer_recorded(
                exchange, "404"
            )
        elif path[0] == "files":
            self._route_file(exchange, path[1:], query)
        else:
            super().route(exchange, path, query)

    def ingest(self, exchange: Exchange, body: dict[str, Any]) -> None:
        job_id = str(uuid.uuid4())
        self.jobs[job_id] = {"status": "PENDING", "body": body}
        answer = {"success": True, "mode": "async", "job_id": job_id, "status_url": f"/v1/memory/jobs/{job_id}"}
        exchange.answer(202, answer)

    def finish(self, job: dict[str, Any]) -> None:
        if self.stalled:
            return
        if job["status"] == "PENDING" and self.failing_jobs:
            self.failing_jobs -= 1
            job["status"] = "FAILED"
        elif job["status"] == "PENDING":
            self.store_turn(job["body"])
            job["status"] = "COMPLETED"

    def pending(self, wanted: dict[str, str]) -> list[dict[str, Any]]:
        waiting = [(job_id, job["body"]) for job_id, job in self.jobs.items() if job["status"] == "PENDING"]
        return [
            {
                "id": f"pending:{job_id}:0",
                "content": "\n".join(f"{message['role']}: {message['content']}" for message in body["messages"]),
                "pending": True,
                "job_id": job_id,
            }
            for job_id, body in waiting
            if wanted.items() <= body.items()
        ]

    def write(self, exchange: Exchange, body: dict[str, Any]) -> None:
        key = exchange.headers["Idempotency-Key"]
        if key in self.answers:
            sent, answer = self.answers[key]
            if sent == exchange.body:
                exchange.answer(200, answer)
            else:
                self.answer_recorded(exchange, "409")
            return
        self.bodies.append(body)
        memory = self.add({**body, "type": body["memory_type"]})
        answer = {
            "success": True,
            "memory_id": memory["id"],
            "memory": {"id": memory["id"]},
            "write_outcome": "created",
        }
        self.answers[key] = (exchange.body, answer)
        exchange.answer(201, answer)

    def show_hit(self, memory: dict[str, Any]) -> dict[str, Any]:
        inner = {**memory, "temporal": {"document_date": memory["created_at"], "event_date": None}}
        return {"memory": inner, "similarity": 0.82}

    def delete(self, exchange: Exchange, memory_id: str) -> None:
        if not any(memory["id"] == memory_id for memory in self.memories):
            self.answer_recorded(exchange, "404")
            return
        self.memories = [memory for memory in self.memories if memory["id"] != memory_id]
        exchange.answer(200, {"success": True, "message": "Memory deleted", "memory_id": memory_id})

    def _route_file(self, exchange: Exchange, path: list[str], query: dict[str, str]) -> None:
        if not path and exchange.command == "POST":
            file = self._upload(exchange)
            exchange.answer(201, {"success": True, "file": _without_content(file)})
        elif not path:
            found = [file for file in self.files.values() if file["path"].startswith(query.get("prefix", ""))]
            exchange.answer(200, {"success": True, "files": [_without_content(file) for file in found]})
        elif path[0] not in self.files:
            self.answer_recorded(exchange, "404")
        elif exchange.command == "DELETE":
            del self.files[path[0]]
            exchange.answer(200, {"success": True, "deleted": path[0]})
        elif path[1:] == ["content"]:
            exchange.answer(200, self.files[path[0]]["content"])
        elif path[1:] == ["ingest"]:
            exchange.answer(200, {"success": True, "memories_created": 1})
        else:
            exchange.answer(200, {"success": True, "file": _without_content(self.files[path[0]])})

    def _upload(self, exchange: Exchange) -> dict[str, Any]:
        head = f"Content-Type: {exchange.headers['Content-Type']}\r\n\r\n".encode()
        parts = {
            str(part.get_param("name", header="content-disposition")): part
            for part in message_from_bytes(head + exchange.body).get_payload()
            if not isinstance(part, str)
        }
        fields = {name: parts[name].get_payload(decode=True) for name in ("path", "scope", "file")}
        file = {
            "id": f"file_{len(self.files) + 1}",
            "path": bytes(fields["path"]).decode(),
            "name": parts["file"].get_filename(),
            "mime_type": parts["file"].get_content_type(),
            "size": len(fields["file"]),
            "scope": bytes(fields["scope"]).decode(),
            "content": fields["file"],
        }
        self.files[str(file["id"])] = file
        return file


def _without_content(file: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in file.items() if name != "content"}
