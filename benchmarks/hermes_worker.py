"""The benchmark worker that measures Hermes Agent, run by its own interpreter and through its public names only."""

import importlib
import os
from pathlib import Path
from typing import Any

from benchmarks.timing_worker import LIMIT, serve


class Hermes:
    def __init__(self) -> None:
        # Not installed where our code is checked, so imported by name.
        self._memory: Any = importlib.import_module("tools.memory_tool")
        self._threats: Any = importlib.import_module("tools.threat_patterns")

    def directory(self, home: Path) -> Path:
        return home / "memories"

    def load(self, home: Path) -> tuple[Any, str]:
        os.environ["HERMES_HOME"] = str(home)
        store = self._memory.MemoryStore(memory_char_limit=LIMIT, user_char_limit=LIMIT)
        store.load_from_disk()
        blocks = [store.format_for_system_prompt(target) for target in ("memory", "user")]
        return store, "\n\n".join(block for block in blocks if block)

    def add(self, store: Any, text: str) -> None:
        _require_success(store.add("memory", text))

    def add_by_tool(self, store: Any, text: str) -> str:
        return str(self._memory.memory_tool(action="add", target="memory", content=text, store=store))

    def remove(self, store: Any, text: str) -> None:
        _require_success(store.remove("memory", text))

    def scan(self, text: str) -> bool:
        return bool(self._threats.scan_for_threats(text, scope="strict"))


def _require_success(result: dict[str, Any]) -> None:
    if not result["success"]:
        raise RuntimeError(f"Hermes refused: {result['error']}")


if __name__ == "__main__":
    serve(Hermes())
