"""A session's prompt: composed when it begins, restored when it is taken up again, composed anew by compression."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoranda.curated.store import MemoryStore
from memoranda.prompt.assembly import Prompt, restore_prompt
from memoranda.prompt.builder import PromptInputs, build_prompt
from memoranda.prompt.date import today
from memoranda.prompt.memory_changes import MemoryChanges
from memoranda.prompt.settings import PromptSettings

# Where a session's row keeps what its prompt says about curated memory.
KNOWN = "known_memory"


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What a prompt is made of beside memory; the same for the whole life of a session."""

    home: Path
    settings: PromptSettings
    platform: str = ""
    instructions: str = ""
    directory: Path | None = None
    window: int = 0


@dataclass(frozen=True, slots=True)
class FrozenPrompt:
    """A prompt, and what changed in curated memory since."""

    prompt: Prompt
    changes: MemoryChanges

    def kept(self) -> dict[str, Any]:
        """What is stored with the session beside the text."""
        return {KNOWN: self.changes.known} if any(self.changes.known.values()) else {}


def freeze(
    around: PromptContext,
    store: MemoryStore,
    redacted: Callable[[str], str],
    *,
    tools: Collection[str],
    skills: str,
    provider: str,
) -> FrozenPrompt:
    """The prompt of a session that begins now, or whose context was just compressed.

    Credentials are taken out of it before it is sent and stored: the same bytes in this process and the next.
    """
    store.load_from_disk()
    ingredients = PromptInputs(
        home=around.home,
        day=today(around.settings.timezone),
        tools=tools,
        instructions=around.instructions,
        skills=skills,
        directory=around.directory,
        memory=[store.format_for_system_prompt(target) for target in store.settings.targets()],
        provider=provider,
        platform=around.platform,
        window=around.window,
    )
    prompt = build_prompt(around.settings, ingredients)
    return FrozenPrompt(replace(prompt, text=redacted(prompt.text)), MemoryChanges(store, clean=redacted))


def thaw(row: dict[str, Any], store: MemoryStore, redacted: Callable[[str], str]) -> FrozenPrompt | None:
    """The prompt as it was stored with a session; None when none was."""
    text = row.get("system_prompt")
    if not text:
        return None
    return FrozenPrompt(restore_prompt(text), MemoryChanges(store, _entries(row.get(KNOWN), store), clean=redacted))


def _entries(known: Any, store: MemoryStore) -> dict[str, list[str]]:
    """What a row says about curated memory; where it says nothing, there was none."""
    entries: dict[str, list[str]] = {target: [] for target in store.settings.targets()}
    for target, found in known.items() if isinstance(known, dict) else ():
        if isinstance(found, list):
            entries[str(target)] = [str(entry) for entry in found]
    return entries
