"""RetainDB's calls for memories, for one user in one project, and its settings.

A turn is ingested as two messages of its session, with the time of the turn. RetainDB knows no key for it, so an
earlier attempt is looked for in the list of the session's memories: as a pending entry with the same words while
RetainDB's server still processes it, or by the time of the message in its local program. If it is not found, the turn
is sent again: RetainDB recognizes memories with the same content. Other memories are written with an idempotency key,
which its server honours for a day.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from memoranda.errors import TemporaryProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.remote import RemoteClient, confirmed, unless_refused
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.vendor import ALLOW_HTTP, COMMON_FIELDS
from memoranda.support.lazy_dataclass import dataclass

# How long a delivery waits for the end of its job. The outbox keeps one that is still queued then, and asks again.
_JOB_SECONDS = 15.0
_JOB_PAUSE = 0.05
_MAX_LISTED = 1_000
# When to ask again for a job that takes long.
_QUEUED_PAUSE = 60.0
_UNFINISHED = ("pending", "queued", "processing", "running")

_CLOUD = "https://api.retaindb.com"

FIELDS = (
    ConfigField(
        "api_key",
        "API key; RetainDB's local program needs none",
        secret=True,
        env_var="RETAINDB_API_KEY",
        url="https://www.retaindb.com/dashboard",
    ),
    ConfigField(
        "base_url",
        "Address: the cloud, a server of yours, or http://localhost:3111 for the local program",
        default=_CLOUD,
        env_var="RETAINDB_BASE_URL",
    ),
    ConfigField("project", "Project; empty for one that is named like the profile", env_var="RETAINDB_PROJECT"),
    ConfigField("agent_id", "Name of the agent that writes", default="memoranda"),
    ALLOW_HTTP,
    *COMMON_FIELDS,
)


@dataclass(frozen=True, slots=True)
class RetainedMemory:
    """One memory. `said_at` is the time of the message that it comes from, where RetainDB shows it.

    `pending` ones are still being processed, and have no id of their own yet.
    """

    id: str
    text: str
    time: str | None = None
    score: float | None = None
    kind: str = ""
    user_id: str = ""
    said_at: str = ""
    pending: bool = False
    job_id: str = ""


class RetainDBClient:
    """Raises a subclass of ProviderError unless a call succeeds."""

    def __init__(self, http: RemoteClient, project: str, user_id: str, agent_id: str) -> None:
        self._http = http
        self._project = project
        self._user_id = user_id
        self._agent_id = agent_id

    def test(self) -> str:
        self.profile()
        return f"RetainDB answered, and the project {self._project} can be used."

    def ingest(self, messages: list[tuple[str, str]], session_id: str, when: float) -> list[str]:
        """Store the messages of a turn, `(role, text)`; returns the ids of new memories, as far as they are known."""
        body = {
            "project": self._project,
            "session_id": session_id,
            "user_id": self._user_id,
            "agent_id": self._agent_id,
            "messages": [{"role": role, "content": text, "timestamp": utc_time(when)} for role, text in messages],
        }
        answer = self._finished(self._http.post("/v1/memory/ingest/session", body))
        memories = answer.get("memories")
        return [memory.id for memory in _read_list(memories)] if isinstance(memories, list) else []

    def write(
        self, text: str, kind: str, session_id: str, key: str, when: float, importance: float = 0.7
    ) -> str | None:
        """Store one memory; returns its id, empty if RetainDB did not name one. `key` makes repetitions harmless.

        None: RetainDB considers the text to be noise, and has not stored it.
        """
        body = {
            "project": self._project,
            "content": text,
            "memory_type": kind,
            "user_id": self._user_id,
            "session_id": session_id,
            "agent_id": self._agent_id,
            "importance": importance,
            "event_date": utc_time(when),
        }
        answer = self._finished(self._http.post("/v1/memory", body, idempotency_key=key))
        memory = answer.get("memory")
        if isinstance(memory, Mapping) and memory.get("active") is False:
            return None
        return str(answer.get("memory_id") or (memory.get("id") if isinstance(memory, Mapping) else "") or "")

    def search(self, query: str, limit: int, timeout: float | None = None) -> list[RetainedMemory]:
        body = {
            "project": self._project,
            "query": query[:5_000],
            "user_id": self._user_id,
            "agent_id": self._agent_id,
            "top_k": limit,
            "include_pending": True,
        }
        return self._results(self._http.post("/v1/memory/search", body, retry_safe=True, timeout=timeout))

    def context(self, query: str) -> list[RetainedMemory]:
        """What fits a question, from memories and ingested files."""
        body = {
            "project": self._project,
            "query": query[:5_000],
            "user_id": self._user_id,
            "agent_id": self._agent_id,
            "include_memories": True,
            "max_tokens": 1_200,
        }
        return self._results(self._http.post("/v1/context/query", body, retry_safe=True))

    def profile(self) -> list[RetainedMemory]:
        return self._list(f"/v1/memory/profile/{quote(self._user_id, safe='')}")

    def session(self, session_id: str) -> list[RetainedMemory]:
        return self._list(f"/v1/memory/session/{quote(session_id, safe='')}")

    def owns(self, memory_id: str) -> bool:
        """Whether a memory is the user's own: it is listed, or the server names the user; the local program cannot."""
        if any(memory.id == memory_id for memory in self.profile()):
            return True
        path = f"/v1/memory/{quote(memory_id, safe='')}"
        answer = unless_refused(lambda: self._http.get(path), None)
        memory = answer.get("memory") if isinstance(answer, Mapping) else None
        return isinstance(memory, Mapping) and memory.get("user_id") == self._user_id

    def delete(self, memory_id: str) -> bool:
        """Delete a memory; False if there was none."""
        path = f"/v1/memory/{quote(memory_id, safe='')}"
        answer = unless_refused(lambda: self._http.request("DELETE", path), {"deleted": None})
        return not isinstance(answer, Mapping) or answer.get("deleted", memory_id) is not None

    def _list(self, path: str) -> list[RetainedMemory]:
        query = {"project": self._project, "include_pending": "true", "limit": _MAX_LISTED}
        answer = self._http.get(path, query=query)
        memories = answer.get("memories") if isinstance(answer, Mapping) else None
        if not isinstance(memories, list):
            raise TemporaryProviderError("RetainDB answered without a list of memories.")
        return _read_list(memories)

    def _results(self, answer: Any) -> list[RetainedMemory]:
        results = answer.get("results") if isinstance(answer, Mapping) else None
        if not isinstance(results, list):
            raise TemporaryProviderError("RetainDB answered without a list of results.")
        found = _read_list(results)
        # A query is limited to one user; this does not depend on the service.
        return [memory for memory in found if memory.user_id in ("", self._user_id)]

    def _finished(self, answer: Any) -> Mapping[str, Any]:
        """The answer of a write, after the job that it may have queued; raises TemporaryProviderError."""
        confirmed(answer, "RetainDB", "job_id", "memory_id", "memory", "memories_created")
        accepted: Mapping[str, Any] = answer
        if job_id := accepted.get("job_id"):
            self.wait_for_job(str(job_id))
        return accepted

    def wait_for_job(self, job_id: str) -> None:
        """Wait until a job has ended; raises TemporaryProviderError if it failed or takes too long."""
        deadline, pause = time.monotonic() + _JOB_SECONDS, _JOB_PAUSE
        while time.monotonic() + pause < deadline:
            time.sleep(pause)
            pause = min(2 * pause, 3.0)
            found = self._http.get(f"/v1/memory/jobs/{quote(job_id, safe='')}")
            job = found.get("job") if isinstance(found, Mapping) else None
            status = str(job.get("status", "")).lower() if isinstance(job, Mapping) else ""
            if "fail" in status:
                raise TemporaryProviderError("RetainDB could not process what it had accepted.")
            if status not in _UNFINISHED:
                return
        raise TemporaryProviderError("RetainDB is still processing what it has accepted.", _QUEUED_PAUSE)


def _read_list(entries: list[Any]) -> list[RetainedMemory]:
    return [_read(entry) for entry in entries]


def _read(entry: Any) -> RetainedMemory:
    """A memory from a list or a search; the two, and RetainDB's server and local program, name fields differently."""
    if not isinstance(entry, Mapping):
        raise TemporaryProviderError("RetainDB answered with something that is not a memory.")
    nested = entry.get("memory")
    memory = {**entry, **nested} if isinstance(nested, Mapping) else dict(entry)
    temporal = memory.get("temporal")
    dates = {**memory, **temporal} if isinstance(temporal, Mapping) else memory
    when = next((dates[name] for name in ("event_date", "document_date", "created_at") if dates.get(name)), None)
    score = entry.get("similarity", entry.get("score"))
    memory_id, metadata = str(memory.get("id") or ""), memory.get("metadata")
    return RetainedMemory(
        memory_id,
        str(memory.get("content") or ""),
        when if isinstance(when, str) else None,
        float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        str(memory.get("type") or memory.get("memory_type") or ""),
        str(memory.get("user_id") or ""),
        str(metadata.get("timestamp") or "") if isinstance(metadata, Mapping) else "",
        pending=memory.get("pending") is True or memory_id.startswith("pending:"),
        job_id=str(memory.get("job_id") or ""),
    )


def utc_time(seconds: float) -> str:
    """A time as RetainDB accepts it: in UTC, with a Z."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def missing_key(settings: Mapping[str, Any]) -> str:
    """What to do if the cloud has no key; empty otherwise."""
    if settings["api_key"] or settings["base_url"].rstrip("/") != _CLOUD:
        return ""
    return "api_key (RETAINDB_API_KEY) is not set. 'memoranda provider setup retaindb' asks for it."


def project_of(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The project of a user: one for the owner of each profile, and one for every other user.

    RetainDB may promote what one user said to the whole project, so users never share one.
    """
    default = "memoranda" if scope.profile == "default" else f"memoranda-{scope.profile}"
    project = str(settings.get("project") or default)
    return f"{project}--{scope.peer()}" if scope.user_id else project
