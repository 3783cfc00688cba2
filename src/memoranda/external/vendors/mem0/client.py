"""The calls that the provider makes, the same for the platform, the server and the library in this process.

What Memoranda writes carries metadata: `memoranda_key` is the key of the delivery, `memoranda_session` its session,
`memoranda_kind` says whether it is a turn, a curated entry, a tool's memory or a delegation. Mem0 filters by metadata,
so an earlier attempt of a delivery is found by its key.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memoranda.errors import TemporaryProviderError
from memoranda.external.vendors.http_answers import unless_refused

KEY = "memoranda_key"
SESSION = "memoranda_session"
KIND = "memoranda_kind"
ENTRY = "memoranda_entry"

ChatMessage = dict[str, str]


@dataclass(frozen=True, slots=True)
class Mem0Memory:
    """One memory. `time` is ISO 8601 text; `score` is only set by a search."""

    id: str
    text: str
    user_id: str = ""
    score: float | None = None
    time: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Addition:
    """What is to be stored: messages for a user, with metadata. `infer`: Mem0's model extracts facts from them."""

    messages: Sequence[ChatMessage]
    user_id: str
    metadata: Mapping[str, str]
    time: float
    infer: bool

    @property
    def key(self) -> str:
        return self.metadata[KEY]

    @property
    def query(self) -> str:
        """The text that its memories resemble most."""
        return " ".join(message["content"] for message in self.messages)[:2_000]


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """What an earlier attempt of an addition has left: `accepted` if Mem0 has it or is still processing it."""

    memories: Sequence[Mem0Memory] = ()
    accepted: bool = False


class Mem0Client(Protocol):
    """One of the three kinds of Mem0. Every call raises a subclass of ProviderError unless it succeeds."""

    remains: str
    """What stays at Mem0 after its memories were deleted; empty for nothing."""

    def test(self) -> str:
        """Make one cheap call; returns a sentence about what answered."""
        ...

    def add(self, addition: Addition) -> list[str]:
        """Store, and return the ids of the new memories, as far as they are known."""
        ...

    def find_attempt(self, addition: Addition) -> EarlierAttempt:
        """Look for an earlier attempt of the same delivery."""
        ...

    def find_by_metadata(self, user_id: str, name: str, value: str, query: str) -> list[Mem0Memory]:
        """The memories of a user with a value in their metadata; `query` resembles their text."""
        ...

    def search(
        self, query: str, user_id: str, limit: int, *, min_score: float, rerank: bool, timeout: float
    ) -> list[Mem0Memory]: ...

    def memories(self, user_id: str, limit: int) -> list[Mem0Memory]:
        """Memories of a user, in no particular order."""
        ...

    def sent_memories(self, user_id: str) -> Iterator[Mem0Memory]:
        """All memories of a user that Memoranda wrote; the caller may delete each before taking the next."""
        ...

    def get(self, memory_id: str) -> Mem0Memory | None: ...

    def update(self, memory_id: str, text: str) -> None: ...

    def delete(self, memory_id: str) -> bool:
        """Delete a memory; False if there was none."""
        ...

    def erase_history(self, user_id: str, memory_ids: Sequence[str]) -> None:
        """Delete what Mem0 keeps about deleted memories, where it allows that."""
        ...

    def close(self) -> None: ...


def read_memory(entry: Any) -> Mem0Memory:
    """A memory from an answer; raises TemporaryProviderError for anything else."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
        raise TemporaryProviderError("Mem0 answered with something that is not a memory.")
    score, time, metadata = entry.get("score"), entry.get("created_at"), entry.get("metadata")
    # The platform answers an addition with the text in `data`.
    data = entry.get("data")
    text = entry.get("memory") or (data.get("memory") if isinstance(data, Mapping) else None)
    return Mem0Memory(
        entry["id"],
        text if isinstance(text, str) else "",
        str(entry.get("user_id") or ""),
        float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        time if isinstance(time, str) else None,
        metadata if isinstance(metadata, Mapping) else {},
    )


def read_memories(answer: Any) -> list[Mem0Memory]:
    """The memories of an answer with `results`; raises TemporaryProviderError for anything else."""
    results = answer.get("results") if isinstance(answer, Mapping) else None
    if not isinstance(results, list):
        raise TemporaryProviderError("Mem0 answered without a list of results; a proxy or another service may answer.")
    return [read_memory(entry) for entry in results]


def answer_or_none(call: Callable[[], Any]) -> Any:
    """The answer of a call; None if it was 404. An empty answer counts as an empty object."""
    return unless_refused(lambda: {} if (answer := call()) is None else answer, None)
