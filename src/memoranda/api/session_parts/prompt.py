"""A session's prompt: built when the session starts, restored when it is resumed, rebuilt by compression."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from memoranda.agent.prompt.assembly import Prompt, restore_prompt
from memoranda.agent.prompt.builder import PromptInputs, build_prompt, today
from memoranda.agent.prompt.memory_changes import MemoryChanges
from memoranda.agent.prompt.settings import PromptSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.lazy_dataclass import dataclass

# The column of a session's row that stores the curated entries which its prompt shows.
KNOWN_MEMORY = "known_memory"


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What a prompt is built from besides memory; it does not change during a session."""

    home: Path
    settings: PromptSettings
    platform: str = ""
    instructions: str = ""
    directory: Path | None = None
    window: int = 0


@dataclass(frozen=True, slots=True)
class FrozenPrompt:
    """A prompt, and what changed in curated memory since it was built."""

    prompt: Prompt
    changes: MemoryChanges

    @classmethod
    def build(
        cls,
        context: PromptContext,
        store: MemoryStore,
        redact: Callable[[str], str],
        *,
        tools: Collection[str],
        skills: str,
        provider: str,
    ) -> Self:
        """Build the prompt of a session that starts now, or whose context was just compressed.

        Credentials are redacted before the prompt is sent and stored, so it is the same bytes in every process.
        """
        store.load_from_disk()
        inputs = PromptInputs(
            home=context.home,
            day=today(context.settings.timezone),
            tools=tools,
            instructions=context.instructions,
            skills=skills,
            directory=context.directory,
            memory=[store.format_for_system_prompt(target) for target in store.targets()],
            provider=provider,
            platform=context.platform,
            window=context.window,
        )
        prompt = build_prompt(context.settings, inputs)
        return cls(replace(prompt, text=redact(prompt.text)), MemoryChanges(store, clean=redact))

    @classmethod
    def restore(cls, row: dict[str, Any], store: MemoryStore, redact: Callable[[str], str]) -> Self | None:
        """Restore the prompt that is stored with a session; None when its row has none."""
        text = row.get("system_prompt")
        if not text:
            return None
        known = _entries_by_target(row.get(KNOWN_MEMORY), store)
        return cls(restore_prompt(text), MemoryChanges(store, known, clean=redact))

    def as_columns(self) -> dict[str, Any]:
        """The columns of the session's row that are stored with the text of the prompt."""
        return {KNOWN_MEMORY: self.changes.known} if any(self.changes.known.values()) else {}


def _entries_by_target(known: Any, store: MemoryStore) -> dict[str, list[str]]:
    """The entries in a row's column; targets that it does not mention had none."""
    entries: dict[str, list[str]] = {target: [] for target in store.targets()}
    for target, stored in known.items() if isinstance(known, dict) else ():
        if isinstance(stored, list):
            entries[str(target)] = [str(entry) for entry in stored]
    return entries
