"""The curated memory as a system prompt shows it: read once, plus a note of what changed since."""

from memoranda.app import Memory
from memoranda.prompt.memory_changes import MemoryChanges


class MemoryText:
    """The notes and the user's profile as they were when this was made; `text` never changes."""

    def __init__(self, memory: Memory) -> None:
        store = memory.services.curated_for(memory.user)
        store.load_from_disk()
        blocks = [store.format_for_system_prompt(target) for target in store.settings.targets()]
        self.text = "\n\n".join(block for block in blocks if block)
        self._changes = MemoryChanges(store)

    def changes(self) -> str:
        """Returns a fenced note of what changed since; "" when nothing did."""
        return self._changes.note()
