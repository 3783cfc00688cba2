"""Stands in for Mem0's library where it is not installed: the calls that Memoranda makes, with the same answers.

`make vendors` runs the real one. `fault` is what every call raises; with `lose_next` the next addition is stored, and
raises all the same.
"""

import os
import sqlite3
import threading
import uuid
from types import SimpleNamespace
from typing import Any

VARIABLES_AT_IMPORT = {name: os.environ.get(name) for name in ("MEM0_TELEMETRY", "MEM0_DIR")}
fault: BaseException | None = None
lose_next: list[bool] = []
opened: list["Memory"] = []
stored: dict[str, list[dict[str, Any]]] = {}
_open_folders: set[str] = set()


class ModelError(Exception):
    """An error of the model behind Mem0, as its client raises it."""

    def __init__(self, status_code: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code
        self.response = SimpleNamespace(headers=headers or {})


class LLMError(Exception):
    """What Mem0 makes of it."""


class _ModelClient:
    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def with_options(self, **options: Any) -> "_ModelClient":
        client = _ModelClient()
        client.options = options
        return client


class _Store:
    is_local = True

    def __init__(self, config: dict[str, Any]) -> None:
        self.path = config["path"]
        if self.path in _open_folders:
            raise RuntimeError(f"Storage folder {self.path} is already accessed by another instance of Qdrant client.")
        _open_folders.add(self.path)
        stored.setdefault(self.path, [])
        self.size = getattr(Memory, "dimensions", config["embedding_model_dims"])
        self.client = SimpleNamespace(
            _client=SimpleNamespace(scroll=threading.get_ident),
            get_collection=lambda name: SimpleNamespace(
                config=SimpleNamespace(params=SimpleNamespace(vectors=SimpleNamespace(size=self.size)))
            ),
            close=lambda: _open_folders.discard(self.path),
        )


class Memory:
    """As much of `mem0.Memory` as Memoranda uses."""

    dimensions: int

    def __init__(self, config: dict[str, Any]) -> None:
        self.vector_store = _Store(config["vector_store"]["config"])
        self.llm = SimpleNamespace(client=_ModelClient())
        self.embedding_model = SimpleNamespace(client=_ModelClient())
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.execute("CREATE TABLE history (memory_id TEXT)")
        connection.execute("CREATE TABLE messages (session_scope TEXT)")
        self.db = SimpleNamespace(connection=connection, _lock=threading.Lock())
        self._memories = stored[self.vector_store.path]
        opened.append(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Memory":
        return cls(config)

    def add(self, messages: Any, *, user_id: str, agent_id: str, metadata: dict[str, Any], infer: bool) -> Any:
        _fail()
        metadata = dict(metadata)
        created = metadata.pop("created_at")
        results = []
        for message in messages:
            if infer and (message["role"] != "user" or "thanks" in message["content"]):
                continue
            memory = {
                "id": str(uuid.uuid4()),
                "memory": message["content"],
                "user_id": user_id,
                "agent_id": agent_id,
                "metadata": metadata,
                "created_at": created,
            }
            self._memories.append(memory)
            self.db.connection.execute("INSERT INTO history VALUES (?)", (memory["id"],))
            results.append({"id": memory["id"], "memory": memory["memory"], "event": "ADD"})
        scope = f"agent_id={agent_id}&user_id={user_id}"
        self.db.connection.execute("INSERT INTO messages VALUES (?)", (scope,))
        if lose_next:
            lose_next.clear()
            raise ConnectionError("The process was stopped.")
        return {"results": results}

    def get_all(self, *, filters: dict[str, str], top_k: int) -> Any:
        _fail()
        return {"results": [memory for memory in self._memories if _matches(memory, filters)][:top_k]}

    def search(self, query: str, *, filters: dict[str, str], top_k: int, threshold: float = 0.1) -> Any:
        _fail()
        words, found = set(query.lower().split()), []
        for memory in self._memories:
            own = set(memory["memory"].lower().split())
            score = len(words & own) / len(words | own)
            if _matches(memory, filters) and score >= threshold:
                found.append({**memory, "score": score})
        return {"results": sorted(found, key=lambda memory: -memory["score"])[:top_k]}

    def get(self, memory_id: str) -> Any:
        return next((memory for memory in self._memories if memory["id"] == memory_id), None)

    def update(self, memory_id: str, *, text: str) -> Any:
        self.get(memory_id)["memory"] = text
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> Any:
        self._memories.remove(self.get(memory_id))
        return {"message": "Memory deleted successfully!"}

    def close(self) -> None:
        self.db.connection.close()


def _fail() -> None:
    if fault is not None:
        raise fault


def _matches(memory: dict[str, Any], wanted: dict[str, str]) -> bool:
    return all(value in (memory.get(name), memory["metadata"].get(name)) for name, value in wanted.items())
