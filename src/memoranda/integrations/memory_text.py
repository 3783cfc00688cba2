"""The curated memory as a system prompt shows it: read once, plus a note of what changed since."""

from typing import TYPE_CHECKING

from memoranda.agent.prompt.memory_changes import MemoryChanges
from memoranda.memory.curated.store import MemoryStore

if TYPE_CHECKING:
    from memoranda.api.memory import Memory


class MemoryText:
    """The notes and the user's profile at the time when this object was created; `text` never changes."""

    def __init__(self, memory: "Memory") -> None:
        store = memory.services.curated_for(memory.user)
        self.text = read_memory_text(store)
        self._changes = MemoryChanges(store)

    def changes(self) -> str:
        """Returns a fenced note of what changed since; "" when nothing did."""
        return self._changes.note()


def read_memory_text(store: MemoryStore) -> str:
    """Reads the files that are in use and returns them as a system prompt shows them; "" when nothing is remembered."""
    store.load_from_disk()
    blocks = [store.format_for_system_prompt(target) for target in store.settings.targets()]
    return "\n\n".join(block for block in blocks if block)
