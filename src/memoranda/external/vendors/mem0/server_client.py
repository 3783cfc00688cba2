"""Mem0's self-hosted server: the open-source library behind HTTP, with PostgreSQL.

The server lists by user and agent only, so metadata is looked up with a search whose score does not matter. It stores
`created_at` of the metadata as the time of a memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.mem0.client import (
    KEY,
    Addition,
    EarlierAttempt,
    Mem0Memory,
    answer_or_none,
    read_memories,
    read_memory,
)

# The server's own limit of a list.
_MAX_LISTED = 1_000


class ServerClient:
    """Calls one server; `agent_id` marks what Memoranda wrote.

    An addition waits for `add_seconds`, because extraction is a call of a model: giving up earlier would cause a second
    attempt while the first still runs.
    """

    remains = (
        "The server keeps the texts of deleted memories in its history, and the last 10 messages of each user; "
        "only its administrator can delete them (the file HISTORY_DB_PATH of the server)."
    )

    def __init__(self, http: RemoteClient, agent_id: str, add_seconds: float) -> None:
        self._http = http
        self._agent_id = agent_id
        self._add_seconds = add_seconds

    def test(self) -> str:
        self._http.get("/memories", query={"user_id": "memoranda-test", "top_k": 1})
        return "The Mem0 server answered and accepted the key."

    def add(self, addition: Addition) -> list[str]:
        body = {
            "messages": list(addition.messages),
            "user_id": addition.user_id,
            "agent_id": self._agent_id,
            "infer": addition.infer,
            "metadata": {**addition.metadata, "created_at": iso_time(addition.time)},
        }
        answer = self._http.post("/memories", body, timeout=self._add_seconds)
        ids = [memory.id for memory in read_memories(answer)]
        if addition.infer and not ids:
            # Mem0 reports an embedder that failed half-way like a turn without facts. A search needs the embedder too.
            self._search(addition.query, addition.user_id, 1, {})
        return ids

    def find_attempt(self, addition: Addition) -> EarlierAttempt:
        return EarlierAttempt(self.find_by_metadata(addition.user_id, KEY, addition.key, addition.query))

    def find_by_metadata(self, user_id: str, name: str, value: str, query: str) -> list[Mem0Memory]:
        return self._search(query, user_id, 50, {name: value})

    def search(
        self, query: str, user_id: str, limit: int, *, min_score: float, rerank: bool, timeout: float
    ) -> list[Mem0Memory]:
        return self._search(query, user_id, limit, {}, min_score, timeout)

    def memories(self, user_id: str, limit: int) -> list[Mem0Memory]:
        return self._list(user_id=user_id, top_k=min(limit, _MAX_LISTED))

    def sent_memories(self, user_id: str) -> Iterator[Mem0Memory]:
        seen: set[str] = set()
        while new := [memory for memory in self._list_sent(user_id) if memory.id not in seen]:
            seen |= {memory.id for memory in new}
            yield from new

    def get(self, memory_id: str) -> Mem0Memory | None:
        answer = answer_or_none(lambda: self._http.get(f"/memories/{memory_id}"))
        return None if answer is None else read_memory(answer)

    def update(self, memory_id: str, text: str) -> None:
        self._http.request("PUT", f"/memories/{memory_id}", {"text": text})

    def delete(self, memory_id: str) -> bool:
        answer = answer_or_none(lambda: self._http.request("DELETE", f"/memories/{memory_id}"))
        return answer is not None

    def erase_history(self, user_id: str, memory_ids: Sequence[str]) -> None:
        """Do nothing: the server offers no call for it; `remains` says so."""

    def close(self) -> None:
        self._http.close()

    def _search(
        self,
        query: str,
        user_id: str,
        limit: int,
        metadata: Mapping[str, str],
        min_score: float = 0.0,
        timeout: float | None = None,
    ) -> list[Mem0Memory]:
        filters = {"user_id": user_id, **metadata}
        body = {"query": query.strip() or "memory", "filters": filters, "top_k": limit, "threshold": min_score}
        return read_memories(self._http.post("/search", body, retry_safe=True, timeout=timeout))

    def _list_sent(self, user_id: str) -> list[Mem0Memory]:
        found = self._list(user_id=user_id, agent_id=self._agent_id, top_k=_MAX_LISTED)
        return [memory for memory in found if KEY in memory.metadata]

    def _list(self, **query: Any) -> list[Mem0Memory]:
        return read_memories(self._http.get("/memories", query=query))


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
