"""The composition root and public face: `memoranda.open()` gives a `Memory`, a `Memory` gives sessions.

Everything is wired here and nowhere else. A session freezes its prompt when it begins; its tools write to disk at
once. Whoever owns a loop needs nothing deeper than this module.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memoranda import config
from memoranda.curated.outcome import Origin
from memoranda.curated.settings import Target
from memoranda.curated.store import MemoryStore
from memoranda.curated.tool import MemoryTool
from memoranda.support.home import Home
from memoranda.tools import JsonObject, Tool


class Session:
    """One conversation: a prompt that never changes, and tools whose writes are durable at once."""

    def __init__(self, store: MemoryStore, session_id: str, *, source: str, model: str) -> None:
        self.id = session_id
        self.source = source
        self.model = model
        self._store = store
        store.load_from_disk()
        blocks = [store.format_for_system_prompt(target) for target in store.settings.targets()]
        self._prompt = "\n\n".join(block for block in blocks if block)
        self._memory_tool = MemoryTool(store, Origin("agent", session_id))

    @property
    def prompt(self) -> str:
        """The memory blocks for the system prompt, byte-identical for the whole session; empty without entries."""
        return self._prompt

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call; a part that is switched off offers no tool."""
        return self._memory_tool.definitions()

    def begin_turn(self) -> None:
        """Say that a new user message came in: failed memory calls are counted per turn."""
        self._memory_tool.begin_turn()

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as the model would; the answer is always a JSON object."""
        return _call(self.tools, name, arguments)

    def remember(self, text: str, target: Target = "memory") -> JsonObject:
        """Save a fact that the user asked to keep; the answer is a receipt."""
        return _remember(self._store, text, target, self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing waits to be saved: every write was durable when it was answered."""


class Memory:
    """An opened home, for one user of it or for the home itself."""

    def __init__(self, home: Home, settings: config.Config, user: str | None = None) -> None:
        self.home = home
        self.config = settings
        self.user = user
        self.curated = self._store(user)
        self.curated.load_from_disk()
        self._memory_tool = MemoryTool(self.curated, Origin("agent"))

    def session(
        self,
        *,
        source: str = "library",
        model: str = "",
        user: str | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Begin a session; its prompt is frozen now. `user` gives it the memory of one user of a gateway."""
        store = self._store(self.user if user is None else user)
        return Session(store, session_id or secrets.token_hex(8), source=source, model=model)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._memory_tool.definitions()

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as a model would, outside any session: a dict in, a dict out."""
        self._memory_tool.begin_turn()
        return _call(self.tools, name, arguments)

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of MEMORY.md or USER.md as they may be shown."""
        return self.curated.entries(target)

    def remember(self, text: str, target: Target = "memory") -> JsonObject:
        """Save a fact because a person said so; the answer is a receipt: what, where, visible from when."""
        return _remember(self.curated, text, target, "")

    def close(self) -> None:
        """Nothing waits to be saved: every write was durable when it was answered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _store(self, user: str | None) -> MemoryStore:
        return MemoryStore(self.home.memories(user), self.config.curated)


def open_memory(home: str | Path | None = None, *, profile: str | None = None, user: str | None = None) -> Memory:
    """Open a home: the one given, else MEMORANDA_HOME, else ~/.memoranda. Nothing is written until you write."""
    place = config.locate_home(home, profile)
    place.refuse_if_foreign()
    return Memory(place, config.load(place), user)


def _call(tools: tuple[Tool, ...], name: str, arguments: Mapping[str, Any]) -> JsonObject:
    for tool in tools:
        if tool.name == name:
            return tool.call(arguments)
    offered = ", ".join(tool.name for tool in tools) or "none: memory is switched off"
    return {
        "success": False,
        "reason": "unavailable",
        "error": f"There is no tool {name!r} here (offered: {offered}).",
    }


def _remember(store: MemoryStore, text: str, target: Target, session_id: str) -> JsonObject:
    person = Origin("person", session_id, explicit=True)
    return MemoryTool(store, person).call({"target": target, "action": "add", "content": text})
