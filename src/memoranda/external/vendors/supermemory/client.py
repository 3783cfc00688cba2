"""What Supermemory's two interfaces have in common: documents that are stored, and the calls of a client for either.

Client 3.50 of Supermemory for Python uses one interface (`v4_client`), client 5.0 another with other paths and names
(`namespace_client`). A container separates the data of one user from all others: a container tag in the older one, a
namespace in the newer one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memoranda.errors import TemporaryProviderError
from memoranda.external.provider import Message
from memoranda.external.vendors.recalled_item import RecalledItem

# Both services accept as many ids in one request.
MAX_IDS = 100


@dataclass(frozen=True, slots=True)
class Document:
    """A text for a container. A document with the id of an earlier one is the same document."""

    id: str
    content: str
    date: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: str = ""
    """What helps Supermemory to extract memories, at most 1,500 characters."""


class SupermemoryClient(Protocol):
    """One of the two interfaces. Every call raises a subclass of ProviderError if it does not succeed."""

    name: str

    def check_access(self) -> None:
        """Make a cheap call that needs the key."""

    def add(self, container: str, document: Document, *, may_be_stored: bool) -> str:
        """Store a document once, and return the service's id for it."""

    def replace_conversation(self, container: str, document: Document, messages: Sequence[Message]) -> str:
        """Store a conversation; one with the same id replaces it. `document` has it as text."""

    def search(self, container: str, query: str, mode: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Memories and passages that match, best first. `mode` is hybrid, memories or documents."""

    def profile(self, container: str, timeout: float) -> list[RecalledItem]:
        """What Supermemory knows about the user, lasting facts first."""

    def forget_memory(self, container: str, memory_id: str) -> bool:
        """Remove one memory from recall; False if there is no such memory."""

    def delete_documents(self, container: str, ids: Sequence[str]) -> None:
        """Delete documents with what was derived from them; unknown ids are ignored."""

    def delete_container(self, container: str) -> None:
        """Delete everything in a container."""


def recalled_items(answer: object) -> list[RecalledItem]:
    """The results of a search, which both interfaces describe in nearly the same way."""
    found = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise TemporaryProviderError("Supermemory answered a search without results.")
    items = [_recalled(entry) for entry in found if isinstance(entry, dict)]
    return [item for item in items if item.text]


def _recalled(entry: Mapping[str, Any]) -> RecalledItem:
    memory, passage = entry.get("memory"), entry.get("chunk")
    system = entry.get("system")
    details = system if isinstance(system, dict) else entry
    similarity = entry.get("similarity")
    return RecalledItem(
        text=memory if isinstance(memory, str) else passage if isinstance(passage, str) else "",
        time=details.get("updatedAt") if isinstance(details.get("updatedAt"), str) else None,
        score=similarity if isinstance(similarity, int | float) else None,
        id=str(entry.get("id") or ""),
        kind="memory" if isinstance(memory, str) else "passage",
    )


def document_id(answer: object) -> str:
    """The id of a stored document; an answer without one did not confirm anything."""
    found = answer.get("id") if isinstance(answer, dict) else None
    if not isinstance(found, str) or not found:
        raise TemporaryProviderError(f"Supermemory did not confirm that it stored a document: {answer!r:.200}")
    return found


def batches(ids: Sequence[str]) -> list[list[str]]:
    """Ids in groups that fit into one request."""
    return [list(ids[first : first + MAX_IDS]) for first in range(0, len(ids), MAX_IDS)]
