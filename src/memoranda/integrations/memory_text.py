"""The curated memory as a system prompt shows it: read once, plus a note of what changed since."""

from typing import TYPE_CHECKING

from memoranda.agent.prompt.memory_changes import MemoryChanges
from memoranda.memory.curated.settings import TARGETS
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.projects import project_of

if TYPE_CHECKING:
    from memoranda.api.memory import Memory


class MemoryText:
    """The notes and the user's profile at the time when this object was created; `text` never changes."""

    def __init__(self, memory: "Memory", project: str | None = None) -> None:
        """`project` is the one that the user works in, as sessions record it."""
        store = memory.services.curated_for(memory.user, project)
        self.text = read_memory_text(store)
        self._changes = MemoryChanges(store)

    def changes(self) -> str:
        """Returns a fenced note of what changed since; "" when nothing did."""
        return self._changes.note()


def read_memory_text(store: MemoryStore, directory: str = "") -> str:
    """Reads the files that are in use and returns them as a system prompt shows them; "" when nothing is remembered.

    `directory` is where the user works. Git is asked about it only if any project has a memory.
    """
    if directory and len(store.storage.targets()) > len(TARGETS):
        store.use_project(project_of(directory))
    store.load_from_disk()
    blocks = [store.format_for_system_prompt(target) for target in store.targets()]
    return "\n\n".join(block for block in blocks if block)
