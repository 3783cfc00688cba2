"""Mem0's platform, api.mem0.ai, by the calls that its official client makes.

An addition is queued there: the answer names an event, which ends as SUCCEEDED or FAILED. Memories carry `app_id`
instead of `agent_id`: with both `user_id` and `agent_id`, the platform would store what the assistant said for the
agent only, and all users of the agent would share it.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memoranda.errors import TemporaryProviderError
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

_PAGE = 100
# How long a delivery waits for the end of its event. The outbox keeps one that is still queued then, and asks again.
_EVENT_SECONDS = 20.0
_QUEUED_PAUSE = 60.0
_UNFINISHED = ("PENDING", "RUNNING")
_EVENT_PAUSE = 0.1


class PlatformClient:
    """Calls the platform with one API key; `app_id` marks what Memoranda wrote."""

    remains = "The platform keeps events and backups as its retention policy says."

    def __init__(self, http: RemoteClient, app_id: str) -> None:
        self._http = http
        self._app_id = app_id

    def test(self) -> str:
        answer = self._http.get("/v1/ping/")
        project = answer.get("project_id") if isinstance(answer, Mapping) else None
        return f"The Mem0 platform accepted the key (project {project})." if project else "The Mem0 platform answered."

    def add(self, addition: Addition) -> list[str]:
        body = {
            "messages": list(addition.messages),
            "user_id": addition.user_id,
            "app_id": self._app_id,
            "infer": addition.infer,
            "metadata": dict(addition.metadata),
            "timestamp": int(addition.time),
        }
        answer = self._http.post("/v3/memories/add/", body)
        if not isinstance(answer, Mapping) or not (answer.get("event_id") or isinstance(answer.get("results"), list)):
            raise TemporaryProviderError("The Mem0 platform did not say whether it accepted the messages.")
        event = self._finished(answer)
        results = event.get("results")
        return [read_memory(entry).id for entry in results] if isinstance(results, list) else []

    def find_attempt(self, addition: Addition) -> EarlierAttempt:
        event = self._find_event(addition.key)
        if event is not None and event.get("status") != "FAILED":
            self._finished(event)
        found = self.find_by_metadata(addition.user_id, KEY, addition.key, addition.query)
        return EarlierAttempt(found, accepted=not found and event is not None and event.get("status") != "FAILED")

    def find_by_metadata(self, user_id: str, name: str, value: str, query: str) -> list[Mem0Memory]:
        return read_memories(self._list_page(user_id, 1, {"metadata": {name: value}}))

    def search(
        self, query: str, user_id: str, limit: int, *, min_score: float, rerank: bool, timeout: float
    ) -> list[Mem0Memory]:
        body = {
            "query": query,
            "filters": {"user_id": user_id},
            "top_k": limit,
            "threshold": min_score,
            "rerank": rerank,
        }
        return read_memories(self._http.post("/v3/memories/search/", body, retry_safe=True, timeout=timeout))

    def memories(self, user_id: str, limit: int) -> list[Mem0Memory]:
        body = {"filters": {"user_id": user_id}}
        query = {"page": 1, "page_size": min(limit, _PAGE)}
        return read_memories(self._http.post("/v3/memories/", body, query=query, retry_safe=True))

    def sent_memories(self, user_id: str) -> Iterator[Mem0Memory]:
        seen: set[str] = set()
        page = 1
        while True:
            answer = self._list_page(user_id, page)
            new = [memory for memory in read_memories(answer) if memory.id not in seen]
            seen |= {memory.id for memory in new}
            yield from (memory for memory in new if KEY in memory.metadata)
            # After deletions the next memories are on the first page; a page without new ones is the end or a gap.
            if new:
                page = 1
            elif answer.get("next"):
                page += 1
            else:
                return

    def get(self, memory_id: str) -> Mem0Memory | None:
        answer = answer_or_none(lambda: self._http.get(f"/v1/memories/{memory_id}/"))
        return None if answer is None else read_memory(answer)

    def update(self, memory_id: str, text: str) -> None:
        self._http.request("PUT", f"/v1/memories/{memory_id}/", {"text": text})

    def delete(self, memory_id: str) -> bool:
        answer = answer_or_none(lambda: self._http.request("DELETE", f"/v1/memories/{memory_id}/"))
        return answer is not None

    def erase_history(self, user_id: str, memory_ids: Sequence[str]) -> None:
        """Do nothing: the platform offers no call for it; `remains` says so."""

    def close(self) -> None:
        self._http.close()

    def _list_page(self, user_id: str, page: int, *conditions: Mapping[str, Any]) -> Mapping[str, Any]:
        filters = {"AND": [{"user_id": user_id}, {"app_id": self._app_id}, *conditions]}
        query = {"page": page, "page_size": _PAGE}
        answer = self._http.post("/v3/memories/", {"filters": filters}, query=query, retry_safe=True)
        return answer if isinstance(answer, Mapping) else {}

    def _finished(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Wait until an event has ended; raises TemporaryProviderError when it failed or takes too long."""
        deadline = time.monotonic() + _EVENT_SECONDS
        event_id = event.get("event_id") or event.get("id")
        pause = _EVENT_PAUSE
        while event.get("status") in _UNFINISHED and time.monotonic() + pause < deadline:
            time.sleep(pause)
            pause = min(2 * pause, 4.0)
            answer = self._http.get(f"/v1/event/{event_id}/")
            event = answer if isinstance(answer, Mapping) else {}
        if event.get("status") == "FAILED":
            raise TemporaryProviderError(f"The Mem0 platform could not process the messages: {event.get('error')}.")
        if event.get("status") in _UNFINISHED:
            raise TemporaryProviderError("The Mem0 platform is still processing the messages.", _QUEUED_PAUSE)
        return event

    def _find_event(self, key: str) -> Mapping[str, Any] | None:
        """The event of an earlier attempt, if the platform lists one; one that has not failed is preferred."""
        answer = self._http.get("/v1/events/")
        events = answer.get("results") if isinstance(answer, Mapping) else None
        own = [event for event in events if _key_of(event) == key] if isinstance(events, list) else []
        return next((event for event in own if event.get("status") != "FAILED"), own[0] if own else None)


def _key_of(event: Any) -> Any:
    """The key of the delivery that an event belongs to."""
    payload = event.get("payload") if isinstance(event, Mapping) else None
    metadata = payload.get("metadata") if isinstance(payload, Mapping) else None
    return metadata.get(KEY) if isinstance(metadata, Mapping) else None
