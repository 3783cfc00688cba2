"""Mem0's open-source library as a store: the calls of `library`, with errors that the outbox understands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.vendors.mem0.client import (
    KEY,
    Addition,
    EarlierAttempt,
    Mem0Memory,
    read_memories,
    read_memory,
)
from memoranda.external.vendors.mem0.library import SharedLibrary
from memoranda.external.vendors.mem0.server_client import iso_time

# A cold import takes up to half a minute on a busy machine.
_LOAD_SECONDS = 60.0
_MAX_LISTED = 1_000
_TEMPORARY_STATUSES = frozenset({408, 425, 429})


class LibraryClient:
    """Uses one shared library; `agent_id` marks what Memoranda wrote."""

    remains = ""

    def __init__(self, library: SharedLibrary, agent_id: str) -> None:
        self._library = library
        self._agent_id = agent_id

    def test(self) -> str:
        found = self._call(lambda memory: memory.search("test", filters={"user_id": "memoranda-test"}, top_k=1))
        read_memories(found)
        return "Mem0 is loaded in this process, and its embedder answered."

    def add(self, addition: Addition) -> list[str]:
        metadata = {**addition.metadata, "created_at": iso_time(addition.time)}
        answer = self._call(
            lambda memory: memory.add(
                [dict(message) for message in addition.messages],
                user_id=addition.user_id,
                agent_id=self._agent_id,
                metadata=metadata,
                infer=addition.infer,
            )
        )
        ids = [memory.id for memory in read_memories(answer)]
        if addition.infer and not ids:
            # Mem0 reports an embedder that failed half-way like a turn without facts. A search needs the embedder too.
            self._search(addition.query, addition.user_id, 1, 0.0, _LOAD_SECONDS)
        return ids

    def find_attempt(self, addition: Addition) -> EarlierAttempt:
        return EarlierAttempt(self.find_by_metadata(addition.user_id, KEY, addition.key, addition.query))

    def find_by_metadata(self, user_id: str, name: str, value: str, query: str) -> list[Mem0Memory]:
        return self._list({"user_id": user_id, name: value}, 50)

    def search(
        self, query: str, user_id: str, limit: int, *, min_score: float, rerank: bool, timeout: float
    ) -> list[Mem0Memory]:
        return self._search(query, user_id, limit, min_score, timeout)

    def memories(self, user_id: str, limit: int) -> list[Mem0Memory]:
        return self._list({"user_id": user_id}, limit)

    def sent_memories(self, user_id: str) -> Iterator[Mem0Memory]:
        seen: set[str] = set()
        limit = _MAX_LISTED
        while True:
            found = self._list({"user_id": user_id, "agent_id": self._agent_id}, limit)
            new = [memory for memory in found if memory.id not in seen]
            seen |= {memory.id for memory in new}
            yield from (memory for memory in new if KEY in memory.metadata)
            if len(found) < limit:
                return
            limit += _MAX_LISTED

    def get(self, memory_id: str) -> Mem0Memory | None:
        answer = self._call(lambda memory: memory.get(memory_id))
        return None if answer is None else read_memory(answer)

    def update(self, memory_id: str, text: str) -> None:
        self._call(lambda memory: memory.update(memory_id, text=text))

    def delete(self, memory_id: str) -> bool:
        if self.get(memory_id) is None:
            return False
        self._call(lambda memory: memory.delete(memory_id))
        return True

    def erase_history(self, user_id: str, memory_ids: Sequence[str]) -> None:
        scope = f"agent_id={_escaped(self._agent_id)}&user_id={_escaped(user_id)}"

        def erase(memory: Any) -> None:
            with memory.db._lock, memory.db.connection as connection:
                connection.executemany("DELETE FROM history WHERE memory_id = ?", [(id_,) for id_ in memory_ids])
                connection.execute("DELETE FROM messages WHERE session_scope = ?", (scope,))

        self._call(erase)

    def close(self) -> None:
        self._library.release()

    def _search(self, query: str, user_id: str, limit: int, min_score: float, timeout: float) -> list[Mem0Memory]:
        options = {"filters": {"user_id": user_id}, "top_k": limit, "threshold": min_score}
        return read_memories(self._call(lambda memory: memory.search(query.strip() or "memory", **options), timeout))

    def _list(self, filters: Mapping[str, str], limit: int) -> list[Mem0Memory]:
        return read_memories(self._call(lambda memory: memory.get_all(filters=dict(filters), top_k=limit)))

    def _call(self, call: Callable[[Any], Any], timeout: float = _LOAD_SECONDS) -> Any:
        memory = self._library.memory(timeout)
        try:
            return call(memory)
        except Exception as error:
            raise _provider_error(error) from error


def _escaped(value: str) -> str:
    """A value as Mem0 writes it into the scope of a message."""
    return value.replace("%", "%25").replace("&", "%26").replace("=", "%3D")


def _provider_error(error: BaseException) -> ProviderError:
    """An error of Mem0, or of the model or store behind it, as one that the outbox understands."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(getattr(cause, "status_code", None), int):
        cause = cause.__cause__
    text = f"Mem0: {type(error).__name__}: {error}"
    if cause is None:
        # Mem0 checks arguments itself; whatever else fails (no connection, a locked file) may work later.
        if isinstance(error, ValueError) and ("not aligned" in str(error) or "dimension error" in str(error)):
            text += ". The embedder's vectors are not as long as oss_embedder_dims says. Set it to their length."
        refused = type(error) is ValueError or type(error).__name__ == "ValidationError"
        return PermanentProviderError(text) if refused else TemporaryProviderError(text)
    status: int = cause.status_code  # type: ignore[attr-defined]
    if status in _TEMPORARY_STATUSES or status >= 500:
        return TemporaryProviderError(text, _retry_after(cause), status=status)
    advice = "Its model or embedder refuses this; 'memoranda provider setup mem0' sets another key, address or model."
    return PermanentProviderError(f"{text}. {advice}", status=status)


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after", "") if isinstance(headers, Mapping) else ""
    return float(value) if value.isdecimal() else None
