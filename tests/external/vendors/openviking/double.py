"""A double of OpenViking's server for tests: real sockets, answers with the recorded shapes, and files in memory.

It behaves as the real server without authentication does: every user can read everything, so a test that one user does
not see another's data tests the provider. `recorded/*.json` has answers of the real server 0.5.2.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.external.http_service import Exchange
from tests.external.vendors.vendor_service import HttpDouble, read_recording

RECORDED = Path(__file__).parent / "recorded"
Answer = Callable[[Exchange], None]


def recorded(name: str) -> tuple[int, Any]:
    """Status and body of a recorded answer; a new copy each time."""
    recording = read_recording(RECORDED, name)
    return recording["status"], recording["body"]


def replay(name: str) -> Answer:
    status, body = recorded(name)
    return lambda exchange: exchange.answer(status, body)


class VikingDouble(HttpDouble):
    """The state of the server. `next_answers` answer the next requests to a path that contains their key."""

    recorded = RECORDED
    store_path = r"^POST /api/v1/content/write"

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}
        self.writes: list[str] = []
        self.sessions: dict[str, dict[str, Any]] = {}
        self.next_answers: dict[str, list[Answer]] = {}

    def stored_texts(self) -> list[str]:
        messages = [message for session in self.sessions.values() for message in session["messages"]]
        return [*self.files.values(), *(json.dumps(message) for message in messages)]

    def handle(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        prepared = next(
            (each for path, each in self.next_answers.items() if each and parts.path.startswith(path)), None
        )
        if prepared:
            prepared.pop(0)(exchange)
        else:
            body = json.loads(exchange.body) if exchange.body else {}
            exchange.answer(*self._answer(exchange, parts.path, query, body))

    def _answer(self, exchange: Exchange, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path == "/health":
            return recorded("health")
        if path == "/api/v1/system/status":
            return _result("status", initialized=True, user=exchange.headers["X-OpenViking-User"] or "default")
        if path.startswith("/api/v1/sessions"):
            return self._session(exchange, path, body)
        handlers: dict[str, Callable[[], tuple[int, Any]]] = {
            "POST /api/v1/content/write": lambda: self._write(body["uri"], body["content"]),
            "POST /api/v1/search/find": lambda: self._find(body),
            "POST /api/v1/search/search": lambda: self._find(body),
            "GET /api/v1/content/read": lambda: self._read(query["uri"]),
            "GET /api/v1/content/abstract": lambda: recorded("abstract"),
            "GET /api/v1/content/overview": lambda: recorded("overview"),
            "GET /api/v1/fs/ls": lambda: self._list(query["uri"], deep=False),
            "GET /api/v1/fs/tree": lambda: self._list(query["uri"], deep=True),
            "GET /api/v1/fs/stat": lambda: self._stat(query["uri"]),
            "DELETE /api/v1/fs": lambda: self._delete(query["uri"], query["recursive"] == "true"),
            "POST /api/v1/resources": lambda: self._add_resource(body),
        }
        handler = handlers.get(f"{exchange.command} {path}")
        return handler() if handler else recorded("404")

    def _write(self, uri: str, content: str) -> tuple[int, Any]:
        self.files[uri] = content
        self.writes.append(uri)
        return _result("write", uri=uri, root_uri=uri.rpartition("/")[0])

    def _find(self, body: dict[str, Any]) -> tuple[int, Any]:
        words = _words(body["query"])
        targets = body.get("target_uri") or ["viking://"]
        targets = [targets] if isinstance(targets, str) else targets
        hits: list[dict[str, Any]] = [
            {"context_type": "memory", "uri": uri, "level": 2, "score": _score(words, text), "abstract": text.strip()}
            for uri, text in self.files.items()
            if any(uri.startswith(target.rstrip("/")) for target in targets)
        ]
        if body.get("level") != 2:
            hits += recorded("find_without_level")[1]["result"]["skills"]
        hits.sort(key=lambda hit: -hit["score"])
        return _result("find", memories=hits[: body.get("limit", 10)], total=len(hits))

    def _read(self, uri: str) -> tuple[int, Any]:
        if uri in self.files:
            return _whole("read", self.files[uri].strip())
        return recorded("read_directory" if self._below(uri) else "read_missing")

    def _list(self, uri: str, *, deep: bool) -> tuple[int, Any]:
        found = self._below(uri)
        if not found:
            return recorded("list_missing")
        names: dict[str, bool] = {}
        for path in found:
            rest = path[len(uri) + 1 :].split("/")
            depths = range(1, len(rest) + 1) if deep else (1,)
            names |= {"/".join([uri, *rest[:depth]]): depth < len(rest) for depth in depths}
        entries = [{"uri": name, "size": 0, "isDir": is_dir, "abstract": ""} for name, is_dir in names.items()]
        return _whole("list", entries)

    def _stat(self, uri: str) -> tuple[int, Any]:
        if uri not in self.files and not self._below(uri):
            return recorded("stat_missing")
        return _result("stat", uri=uri, name=uri.rpartition("/")[2], isDir=uri not in self.files)

    def _delete(self, uri: str, recursive: bool) -> tuple[int, Any]:
        below = self._below(uri)
        if below and not recursive:
            return recorded("delete_directory")
        for path in [uri, *below]:
            self.files.pop(path, None)
        return _result("delete", uri=uri)

    def _add_resource(self, body: dict[str, Any]) -> tuple[int, Any]:
        uri = body.get("to") or f"{body['parent']}/{body['path'].rpartition('/')[2].partition('.')[0]}"
        self.files[f"{uri}/document.md"] = f"Fetched from {body['path']}"
        return _result("resource", root_uri=uri, source_path=body["path"])

    def _session(self, exchange: Exchange, path: str, body: Any) -> tuple[int, Any]:
        if path == "/api/v1/sessions":
            if body["session_id"] in self.sessions:
                return recorded("409")
            self._new_session(body["session_id"])["policy"] = body["memory_policy"]
            return recorded("session_create")
        name, _, action = unquote(path).removeprefix("/api/v1/sessions/").partition("/")
        session = self.sessions.get(name)
        if action == "messages/batch":
            session = session or self._new_session(name)
            session["messages"] += body["messages"]
            return _result("session_batch", session_id=name, added=len(body["messages"]))
        if session is None:
            return recorded("session_delete_missing" if exchange.command == "DELETE" else "session_missing")
        if action == "commit":
            pending = len(session["messages"]) > session["committed"]
            session["committed"] = len(session["messages"])
            return recorded("session_commit" if pending else "session_commit_nothing")
        if exchange.command == "DELETE":
            del self.sessions[name]
            return recorded("session_delete")
        return _result("session", session_id=name, total_message_count=len(session["messages"]))

    def _new_session(self, name: str) -> dict[str, Any]:
        return self.sessions.setdefault(name, {"messages": [], "committed": 0, "policy": None})

    def _below(self, uri: str) -> list[str]:
        return [path for path in self.files if path.startswith(f"{uri.rstrip('/')}/")]


def _result(name: str, /, **changes: Any) -> tuple[int, Any]:
    """A recorded answer whose result has other values."""
    status, answer = recorded(name)
    answer["result"] |= changes
    return status, answer


def _whole(name: str, result: Any) -> tuple[int, Any]:
    status, answer = recorded(name)
    return status, answer | {"result": result}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _score(words: set[str], text: str) -> float:
    """Like the real server's: about 0.5 for unrelated texts."""
    return 0.5 + 0.5 * len(words & _words(text)) / max(len(words), 1)
