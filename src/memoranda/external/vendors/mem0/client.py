"""The calls that the provider makes to Mem0, and the clients for its platform and for a self-hosted server.

What Memoranda writes carries metadata: `memoranda_key` is the key of the delivery, `memoranda_session` its session,
`memoranda_kind` says whether it is a turn, a curated entry, a tool's memory or a delegation. Mem0 filters by metadata,
so an earlier attempt of a delivery is found by its key.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from memoranda.errors import TemporaryProviderError
from memoranda.external.remote import RemoteClient, unless_refused
from memoranda.support.lazy_dataclass import dataclass

KEY = "memoranda_key"
SESSION = "memoranda_session"
KIND = "memoranda_kind"
ENTRY = "memoranda_entry"

ChatMessage = dict[str, str]

_PAGE = 100
# How long a delivery waits for the end of its event. The outbox keeps one that is still queued then, and asks again.
_EVENT_SECONDS = 20.0
_QUEUED_PAUSE = 60.0
_UNFINISHED = ("PENDING", "RUNNING")
_EVENT_PAUSE = 0.1

# The server's own limit of a list.
_MAX_LISTED = 1_000


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


def _answer_or_none(call: Callable[[], Any]) -> Any:
    """The answer of a call; None if it was 404. An empty answer counts as an empty object."""
    return unless_refused(lambda: {} if (answer := call()) is None else answer, None)


class _HttpClient:
    """The calls that the platform and a server have in common; `memory_path` is where one memory is."""

    memory_path: str

    def __init__(self, http: RemoteClient) -> None:
        self._http = http

    def get(self, memory_id: str) -> Mem0Memory | None:
        answer = _answer_or_none(lambda: self._http.get(self.memory_path.format(memory_id)))
        return None if answer is None else read_memory(answer)

    def update(self, memory_id: str, text: str) -> None:
        self._http.request("PUT", self.memory_path.format(memory_id), {"text": text})

    def delete(self, memory_id: str) -> bool:
        """Delete a memory; False if there was none."""
        answer = _answer_or_none(lambda: self._http.request("DELETE", self.memory_path.format(memory_id)))
        return answer is not None

    def erase_history(self, user_id: str, memory_ids: Sequence[str]) -> None:
        """Do nothing: HTTP offers no call for what is kept about deleted memories; `remains` says so."""

    def close(self) -> None:
        self._http.close()


class PlatformClient(_HttpClient):
    """Calls Mem0's platform, api.mem0.ai, with one API key, as its official client does.

    An addition is queued there: the answer names an event, which ends as SUCCEEDED or FAILED. `app_id` marks what
    Memoranda wrote, instead of `agent_id`: with both `user_id` and `agent_id`, the platform would store what the
    assistant said for the agent only, and all users of the agent would share it.
    """

    memory_path = "/v1/memories/{}/"
    remains = "The platform keeps events and backups as its retention policy says."
    """What stays at Mem0 after its memories were deleted; empty for nothing."""

    def __init__(self, http: RemoteClient, app_id: str) -> None:
        super().__init__(http)
        self._app_id = app_id

    def test(self) -> str:
        """Make one cheap call; returns a sentence about what answered."""
        answer = self._http.get("/v1/ping/")
        project = answer.get("project_id") if isinstance(answer, Mapping) else None
        return f"The Mem0 platform accepted the key (project {project})." if project else "The Mem0 platform answered."

    def add(self, addition: Addition) -> list[str]:
        """Store, and return the ids of the new memories, as far as they are known."""
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
        """Look for an earlier attempt of the same delivery."""
        event = self._find_event(addition.key)
        if event is not None and event.get("status") != "FAILED":
            self._finished(event)
        found = self.find_by_metadata(addition.user_id, KEY, addition.key, addition.query)
        return EarlierAttempt(found, accepted=not found and event is not None and event.get("status") != "FAILED")

    def find_by_metadata(self, user_id: str, name: str, value: str, query: str) -> list[Mem0Memory]:
        """The memories of a user with a value in their metadata; `query` resembles their text."""
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
        """Memories of a user, in no particular order."""
        body = {"filters": {"user_id": user_id}}
        query = {"page": 1, "page_size": min(limit, _PAGE)}
        return read_memories(self._http.post("/v3/memories/", body, query=query, retry_safe=True))

    def sent_memories(self, user_id: str) -> Iterator[Mem0Memory]:
        """All memories of a user that Memoranda wrote; the caller may delete each before taking the next."""
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


class ServerClient(_HttpClient):
    """Calls a self-hosted server, the open-source library behind HTTP; `agent_id` marks what Memoranda wrote.

    The server lists by user and agent only, so metadata is looked up with a search whose score does not matter. It
    stores `created_at` of the metadata as the time of a memory.

    An addition waits for `add_seconds`, because extraction is a call of a model: giving up earlier would cause a second
    attempt while the first still runs.
    """

    memory_path = "/memories/{}"
    remains = (
        "The server keeps the texts of deleted memories in its history, and the last 10 messages of each user; "
        "only its administrator can delete them (the file HISTORY_DB_PATH of the server)."
    )

    def __init__(self, http: RemoteClient, agent_id: str, add_seconds: float) -> None:
        super().__init__(http)
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
