"""Providers for tests: one that keeps everything in memory, one as written for Hermes, and some that misbehave."""

import json
import threading
from pathlib import Path
from typing import Any

from memoranda.external.manager import MemoryManager
from memoranda.external.provider import Facts, MemoryProvider, Message
from memoranda.external.settings import ProviderSettings

QUICK = ProviderSettings(
    recall_seconds=0.4,
    call_seconds=0.5,
    start_seconds=0.5,
    tool_seconds=0.5,
    deliver_seconds=0.3,
    shutdown_seconds=0.6,
    lease_seconds=0.6,
    first_retry_seconds=0.02,
    max_retry_seconds=0.05,
    max_attempts=3,
)


class InMemory(MemoryProvider):
    """Keeps every notification, in its order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.keys: list[str] = []
        self.started: dict[str, Any] | None = None
        self._first = 0
        self.closed = 0

    @property
    def name(self) -> str:
        return "in-memory"

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **facts: Facts) -> None:
        if self.started is not None and self.started.get("user_id") != facts.get("user_id"):
            # What other users said is not found any more.
            self._first = len(self.told)
        self.started = {"session_id": session_id, **facts}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        if self.started is None:
            return []
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return [{"name": "notes_find", "description": "Find what was said.", "parameters": text}]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **facts: Facts) -> str:
        if tool_name != "notes_find":
            return super().handle_tool_call(tool_name, args, **facts)
        return json.dumps({"found": self._find(str(args.get("text", ""))), "session": facts.get("session_id")})

    def system_prompt_block(self) -> str:
        return "Notes are kept."

    def prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> str:
        return "\n".join(self._find(query))

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
        **facts: Facts,
    ) -> None:
        self._note(facts, "turn", session_id, user_content, assistant_content)

    def on_session_end(self, messages: list[Message], **facts: Facts) -> None:
        self._note(facts, "end", facts.get("session_id"), len(messages))

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **facts: Facts,
    ) -> None:
        self._note(facts, "switch", new_session_id, parent_session_id, reset, rewound, facts.get("reason"))

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None, **facts: Facts
    ) -> None:
        self._note(facts, "write", action, target, content, metadata)

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **facts: Facts) -> None:
        self._note(facts, "delegation", task, result, child_session_id)

    def shutdown(self) -> None:
        self.closed += 1

    def turns(self, session_id: str = "") -> list[str]:
        return [told[2] for told in self.told if told[0] == "turn" and session_id in ("", told[1])]

    def _note(self, facts: dict[str, Any], *told: Any) -> None:
        key = facts.get("idempotency_key", "")
        if key and key in self.keys:
            return
        self.keys.append(key)
        self.told.append(told)

    def _find(self, text: str) -> list[str]:
        words = set(text.casefold().split())
        mine = self.told[self._first :]
        return [told[3] for told in mine if told[0] == "turn" and words & set(told[2].casefold().split())]


class Scripted(InMemory):
    """In memory, except that some hooks do what a test says first: hooks by name, called with their arguments."""

    def __init__(self, **scripts: Any) -> None:
        super().__init__()
        self.scripts = scripts
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("scripts", "calls") or name not in self.scripts:
            return super().__getattribute__(name)
        self.calls.append(name)
        return self.scripts[name]


class HermesStyle(MemoryProvider):
    """As plugins for Hermes are written: narrow signatures, no facts beyond those of their day, plain threads."""

    def __init__(self) -> None:
        self._mirror: list[tuple[Any, ...]] = []
        self._turns: list[tuple[str, str, str]] = []
        self._turns_of: dict[str, list[tuple[str, str, str]]] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return "hermes_style"

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        self._home = kwargs["hermes_home"]
        self._turns = self._turns_of.setdefault(kwargs.get("user_id", ""), [])

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return [{"name": "style_recall", "description": "Recall a turn.", "parameters": parameters}]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        return json.dumps({"results": len(self._turns)} if tool_name == "style_recall" else {"error": "unknown tool"})

    def prefetch(self, query: str, *, session_id: str = "") -> str:  # type: ignore[override]
        return self._turns[-1][1] if self._turns else ""

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "") -> None:  # type: ignore[override]
        with self._lock:
            self._turns.append((user_content, assistant_content, session_id))

    def on_session_end(self, messages: list[dict[str, Any]]) -> None:  # type: ignore[override]
        self._ended = len(messages)

    def on_session_switch(
        self, new_session_id: str, *, parent_session_id: str = "", reset: bool = False, **kwargs: Any
    ) -> None:
        self._session = new_session_id

    def on_memory_write(self, action: str, target: str, content: str) -> None:  # type: ignore[override]
        self._mirror.append((action, target, content))


class NewerHermesStyle(HermesStyle):
    """The same with metadata."""

    def on_memory_write(  # type: ignore[override]
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None
    ) -> None:
        self._mirror.append((action, target, content, metadata))


def managed(home: Path, provider: MemoryProvider, settings: ProviderSettings = QUICK, **options: Any) -> MemoryManager:
    """A manager with a provider that was started for session s1."""
    manager = MemoryManager(home, settings, **options)
    assert manager.add_provider(provider)
    manager.initialize_all("s1")
    return manager
