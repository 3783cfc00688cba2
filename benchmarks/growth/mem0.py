"""The worker for Mem0's library: every message is one memory, with no model (`infer=False`), in a local Qdrant.

Mem0 needs an embedder. It gets the static vectors of the package wordllama, which work offline; a model would find more
and cost more.
"""

import importlib
import logging
import os
from pathlib import Path
from typing import Any

from benchmarks.growth.conversation import Conversation
from benchmarks.growth.tasks import serve

_DIMENSIONS = 256
_USER = "growth"


class StaticEmbedder:
    """An embedder as Mem0 calls it."""

    def __init__(self) -> None:
        library = importlib.import_module("wordllama")
        # The package looks for its own tokenizer in another folder than the one that it is installed into.
        folder = Path(library.__file__ or "").parent
        self._model = library.WordLlama.load(dim=_DIMENSIONS, cache_dir=folder, disable_download=True)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._model.embed(text)[0].tolist()
        return vector

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Mem0Store:
    """One collection; the session of a memory is in its metadata."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def contains(self, conversation: Conversation) -> bool:
        found = self._memory.get_all(filters={"user_id": _USER, "run_id": conversation.id}, top_k=1)
        return bool(found["results"])

    def create(self, conversation: Conversation) -> None:
        """Nothing: Mem0 has no sessions."""

    def append_all(self, conversation: Conversation) -> None:
        messages = [
            {"role": "user" if message.role == "tool" else message.role, "content": message.content}
            for message in conversation.messages
            if message.content
        ]
        self._memory.add(messages, user_id=_USER, run_id=conversation.id, infer=False)

    def end(self, conversation: Conversation) -> None:
        """Nothing: Mem0 has no sessions."""

    def settle(self) -> None:
        """Nothing to wait for: a memory is searchable when it was added."""

    def search(self, text: str) -> list[str]:
        found = self._memory.search(text, filters={"user_id": _USER}, top_k=30)
        return list(dict.fromkeys(result["run_id"] for result in found["results"]))[:3]

    def close(self) -> None:
        self._memory.close()


class Mem0:
    """Mem0 of this environment, without telemetry."""

    def __init__(self) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        logging.disable(logging.WARNING)
        # Not installed where our code is checked, so imported by name.
        self._library = importlib.import_module("mem0")

    def open(self, home: Path) -> Mem0Store:
        home.mkdir(parents=True, exist_ok=True)
        model = {"provider": "openai", "config": {"api_key": "unused", "model": "unused"}}
        store = {"path": str(home / "qdrant"), "on_disk": True, "embedding_model_dims": _DIMENSIONS}
        memory = self._library.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "llm": model,
                "embedder": model,
                "history_db_path": str(home / "history.db"),
            }
        )
        memory.embedding_model = StaticEmbedder()
        return Mem0Store(memory)

    def index_files(self, home: Path) -> list[Path]:
        """None: vectors and texts are in the same files."""
        return []


if __name__ == "__main__":
    serve(Mem0())
