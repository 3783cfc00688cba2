"""What is remembered, as a system prompt shows it: frozen when it is taken, with a note of what changed since."""

from memoranda.adapters.mcp import guidance
from memoranda.app import Memory
from memoranda.prompt.memory_changes import MemoryChanges

_MOST_IN_INSTRUCTIONS = 8_000
URI = "memoranda://memory"
CHANGES_URI = f"{URI}/changes"


class Remembered:
    """The block of a home's memory at one moment; its text never changes."""

    def __init__(self, memory: Memory) -> None:
        store = memory.curated_for(memory.user)
        store.load_from_disk()
        blocks = [store.format_for_system_prompt(target) for target in store.settings.targets()]
        self.text = "\n\n".join(block for block in blocks if block)
        self._changes = MemoryChanges(store)

    def changes(self) -> str:
        """What differs by now, fenced; "" when nothing does."""
        return self._changes.note()

    def instructions(self, *, bare: bool) -> str:
        """What a host puts into its system prompt: how to use the server and, unless `bare`, what is remembered."""
        if bare or not self.text:
            return guidance.INSTRUCTIONS
        if len(self.text) > _MOST_IN_INSTRUCTIONS:
            return f"{guidance.INSTRUCTIONS} {guidance.TOO_LONG.format(uri=URI)}"
        return f"{guidance.INSTRUCTIONS}\n\n{guidance.REMEMBERED}\n\n{self.text}"
