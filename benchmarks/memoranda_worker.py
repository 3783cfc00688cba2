"""The benchmark worker that measures Memoranda."""

import json
from pathlib import Path

from benchmarks.timing_worker import LIMIT, serve
from memoranda import safety
from memoranda.memory.curated.operations import MemoryReceipt, MemoryWriteResult
from memoranda.memory.curated.settings import TARGETS, CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.support.origin import Origin

_SETTINGS = CuratedSettings(memory_char_limit=LIMIT, user_char_limit=LIMIT)


class Memoranda:
    def directory(self, home: Path) -> Path:
        return home / "memories"

    def load(self, home: Path) -> tuple[MemoryStore, str]:
        store = MemoryStore(self.directory(home), _SETTINGS)
        store.load_from_disk()
        blocks = [store.format_for_system_prompt(target) for target in TARGETS]
        return store, "\n\n".join(block for block in blocks if block)

    def add(self, store: MemoryStore, text: str) -> None:
        _require_success(store.add("memory", text))

    def add_by_tool(self, store: MemoryStore, text: str) -> str:
        answer = MemoryTool(store, Origin("agent")).call({"action": "add", "target": "memory", "content": text})
        return json.dumps(answer, ensure_ascii=False)

    def remove(self, store: MemoryStore, text: str) -> None:
        _require_success(store.remove("memory", text))

    def scan(self, text: str) -> bool:
        return bool(safety.scan(text))


def _require_success(outcome: MemoryWriteResult) -> None:
    if not isinstance(outcome, MemoryReceipt):
        raise RuntimeError(f"Memoranda refused: {outcome.message}")


if __name__ == "__main__":
    serve(Memoranda())
