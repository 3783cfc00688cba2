"""The calls of Zep's HTTP interface (v4), which UUIDs Zep gave to a user, and a turn and its hits in Zep's form.

A user has a graph; threads of a user hold messages, from which Zep extracts episodes, entities (nodes), facts (edges)
and observations into the graph. Everything is addressed by a UUID that Zep assigns; only a user has an id of the
caller's, by which it can be looked up. Every POST and DELETE has an `Idempotency-Key`, as Zep's own client sends it.
Zep accepts messages at once and extracts later.

`ZepDirectory` keeps the UUIDs in the record of what was sent. The record can be lost: the user is then looked up by its
id, and the threads by their first message, whose metadata names the conversation. What was deleted at Zep is created
again.
"""

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.remote import RemoteClient, as_object, as_objects, confirmed, unless_refused
from memoranda.external.vendors.sent_record import SentItem, SentRecord
from memoranda.external.vendors.texts import SOURCE, RecalledItem, split_turn
from memoranda.external.vendors.vendor import COMMON_FIELDS
from memoranda.support.shorten import shorten_end

# Cautious guesses: the client of this version names no limits, and the service was not tried.
_MAX_MESSAGE_CHARS = 4_096
_MAX_MESSAGES_PER_CALL = 30
MAX_EPISODE_CHARS = 10_000
_MAX_QUERY_CHARS = 400

_PAGE_SIZE = 100

Row = dict[str, Any]

_row = partial(as_object, vendor="Zep")
_rows = partial(as_objects, vendor="Zep")

_CLOUD = "https://api.getzep.com/api/v4"
FIELDS = (
    ConfigField("url", "Address of the service", default=_CLOUD, env_var="ZEP_API_URL"),
    ConfigField(
        "api_key",
        "API key of a project",
        secret=True,
        required=True,
        url="https://app.getzep.com",
        env_var="ZEP_API_KEY",
    ),
    ConfigField("user_prefix", "How the ids of users begin at Zep", default="memoranda"),
    *COMMON_FIELDS,
)

IDS = ("user", "thread", "threads_found")
"""The kinds of rows in the record that are ids, not deliveries."""

Result = TypeVar("Result")

_NAMESPACE = uuid.UUID("2f0f3a52-57f3-5f0e-8f5e-0d6f1f3f7a10")

ZepMessage = dict[str, Any]


class ZepClient:
    """Calls one project of Zep. Raises ProviderError."""

    def __init__(self, http: RemoteClient) -> None:
        self._http = http

    def get_project(self) -> Row:
        """The project of the key; the cheapest call that checks address and key."""
        return _row(self._http.get("project"))

    def look_up_user(self, user_id: str, timeout: float | None = None) -> Row | None:
        """The user with an id of ours; None when Zep has none."""
        return _or_none(lambda: self._post("users/lookup", {"user_id": user_id}, timeout=timeout))

    def create_user(self, user_id: str, metadata: Mapping[str, Any]) -> Row | None:
        """Create a user; None when there is one with this id."""
        body = {"user_id": user_id, "metadata": dict(metadata)}
        answer = unless_refused(lambda: self._post("users", body), None, 409)
        return None if answer is None else _row(answer)

    def delete_user(self, user_uuid: str) -> bool:
        """Delete a user with threads, messages and graph, in the background; False when there is none."""
        return self._delete(f"users/{user_uuid}")

    def create_thread(self, user_uuid: str) -> Row:
        """Create a thread. If the answer is lost, an empty one stays behind, which nothing uses."""
        return _row(self._post("threads", {"user_uuid": user_uuid}))

    def list_threads(self, user_uuid: str) -> Iterator[Row]:
        return self._pages("threads", {"user_uuid": user_uuid})

    def delete_thread(self, thread_uuid: str) -> bool:
        """Delete a thread with its messages; what was extracted from them stays."""
        return self._delete(f"threads/{thread_uuid}")

    def add_messages(self, thread_uuid: str, messages: Sequence[Mapping[str, Any]], key: str) -> list[Row]:
        """Add messages to a thread; the same key adds them once."""
        path = f"threads/{thread_uuid}/messages"
        try:
            answer = _row(self._post(path, {"messages": list(messages)}, key=key))
        except PermanentProviderError as error:
            if error.status != 409:
                raise
            raise TemporaryProviderError(f"{error} Another request may still be running.") from error
        rows = _rows(confirmed(answer, "Zep", "messages"))
        if len(rows) != len(messages):
            raise TemporaryProviderError(f"Zep confirmed {len(rows)} of {len(messages)} messages.")
        return rows

    def newest_messages(self, thread_uuid: str, count: int = _PAGE_SIZE) -> list[Row]:
        """The newest messages of a thread, newest first."""
        return self._messages(thread_uuid, count, "desc")

    def oldest_message(self, thread_uuid: str) -> Row | None:
        """The first message of a thread; None when it is empty."""
        return next(iter(self._messages(thread_uuid, 1, "asc")), None)

    def _messages(self, thread_uuid: str, count: int, order: str) -> list[Row]:
        query = {"page_size": count, "order_by": "created_at", "order": order}
        return _rows(_row(self._http.get(f"threads/{thread_uuid}/messages", query=query)).get("items") or [])

    def list_thread_episodes(self, thread_uuid: str) -> Iterator[Row]:
        """The episodes that Zep made from the messages of a thread."""
        return self._pages(f"threads/{thread_uuid}/episodes", {})

    def get_thread_context(self, thread_uuid: str, timeout: float | None = None) -> str:
        """The context block for the latest messages of a thread; empty when there is none."""
        answer = _or_none(lambda: self._http.get(f"threads/{thread_uuid}/context", timeout=timeout))
        return str((answer or {}).get("context") or "")

    def get_graph_context(self, user_uuid: str, query: str, max_chars: int) -> str:
        """The context block for a question about everything in a user's graph."""
        body = {"query": shorten_end(query, _MAX_QUERY_CHARS), "max_characters": max_chars}
        answer = _row(self._post(f"graphs/{user_uuid}/context", body))
        return str(answer.get("context") or "")

    def search(self, user_uuid: str, what: str, query: str, limit: int, timeout: float | None = None) -> list[Row]:
        """What a user's graph has about a query, best first; `what` is edges, observations, nodes or episodes."""
        body = {"query": shorten_end(query.replace("\x00", " "), _MAX_QUERY_CHARS)}
        path, options = f"graphs/{user_uuid}/search/{what}", {"page_size": limit}
        answer = _row(self._post(path, body, query=options, timeout=timeout))
        return _rows(answer.get("items") or [])

    def add_episode(self, user_uuid: str, episode: Mapping[str, Any], key: str) -> Row:
        """Add a text to a user's graph; the same key adds it once."""
        body = {"type": "text", **episode}
        return _row(confirmed(self._post(f"graphs/{user_uuid}/episodes", body, key=key), "Zep", "episode"))

    def get_item(self, user_uuid: str, what: str, item_uuid: str) -> Row | None:
        """A fact (`edges`) or an episode of a user's graph; None when it has none with this id."""
        return _or_none(lambda: self._http.get(f"graphs/{user_uuid}/{what}/{item_uuid}"))

    def delete_item(self, user_uuid: str, what: str, item_uuid: str) -> bool:
        """Delete a fact (`edges`) or an episode of a user's graph; False when there is none."""
        return self._delete(f"graphs/{user_uuid}/{what}/{item_uuid}")

    def _post(self, path: str, body: Any, *, key: str = "", **options: Any) -> Any:
        return self._http.post(path, body, idempotency_key=key or str(uuid.uuid4()), **options)

    def _delete(self, path: str) -> bool:
        answer = _or_none(lambda: self._http.request("DELETE", path, idempotency_key=str(uuid.uuid4())) or {})
        return answer is not None

    def _pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Row]:
        cursor = ""
        while True:
            options = {**query, "page_size": _PAGE_SIZE} | ({"cursor": cursor} if cursor else {})
            page = _row(self._http.get(path, query=options))
            yield from _rows(page.get("items") or [])
            cursor = str(page.get("next_cursor") or "")
            if not cursor:
                return


def _or_none(call: Callable[[], Any]) -> Row | None:
    """The object that a call returns; None when it does not exist at Zep."""
    answer = unless_refused(call, None)
    return None if answer is None else _row(answer)


class ZepDirectory:
    """Finds or creates the user and the threads of one user of a home. Thread-safe."""

    def __init__(self, client: ZepClient, sent: SentRecord, user_id: str) -> None:
        self._client = client
        self._sent = sent
        self._user_id = user_id
        self._lock = threading.RLock()

    def find_user(self, timeout: float | None = None) -> str:
        """The UUID of the user; empty when Zep does not know the user yet."""
        known = self._sent.find("user", self._user_id)
        if known:
            return known
        found = self._client.look_up_user(self._user_id, timeout)
        return self._remember("user", self._user_id, str(found["uuid"])) if found and found.get("uuid") else ""

    def find_thread(self, session_id: str) -> str:
        """The UUID of a conversation's thread; empty when this home knows none."""
        return self._sent.find("thread", self._thread_id(session_id)) or ""

    def with_user(self, call: Callable[[str], Result]) -> Result:
        """Call with the UUID of the user, who is created if necessary, also if Zep has deleted the user meanwhile."""
        return self._with_id(self._make_user, call)

    def with_thread(self, session_id: str, call: Callable[[str], Result]) -> Result:
        """Call with the UUID of a conversation's thread, which is created if necessary."""
        return self._with_id(lambda: self._make_thread(session_id), call)

    def remove(self, session_id: str = "") -> None:
        """Forget the id of a thread that was deleted; without one, the ids of the user and of all threads."""
        for item in self.ids():
            if not session_id or item.local_id == self._thread_id(session_id):
                self._sent.remove(item)

    def ids(self) -> list[SentItem]:
        """The rows of this user in the record that are ids."""
        return [
            item for item in self._sent.items() if item.kind in IDS and item.local_id.split(" ")[0] == self._user_id
        ]

    def _thread_id(self, session_id: str) -> str:
        return f"{self._user_id} {session_id}"

    def _with_id(self, make: Callable[[], str], call: Callable[[str], Result]) -> Result:
        try:
            return call(make())
        except PermanentProviderError as error:
            if error.status != 404:
                raise
        # The user or the thread was deleted at Zep: find or create them again.
        with self._lock:
            self.remove()
        return call(make())

    def _make_user(self) -> str:
        with self._lock:
            if known := self.find_user():
                return known
            row = self._client.create_user(self._user_id, {"source": SOURCE})
            row = row or self._client.look_up_user(self._user_id)
            if not row or not row.get("uuid"):
                raise TemporaryProviderError(f"Zep has not created the user {self._user_id} yet.")
            self._remember("threads_found", self._user_id, "")
            return self._remember("user", self._user_id, str(row["uuid"]))

    def _make_thread(self, session_id: str) -> str:
        with self._lock:
            if known := self.find_thread(session_id):
                return known
            user_uuid = self._make_user()
            if self._sent.find("threads_found", self._user_id) is None:
                self._find_threads(user_uuid)
                if known := self.find_thread(session_id):
                    return known
            row = self._client.create_thread(user_uuid)
            if not row.get("uuid"):
                raise TemporaryProviderError("Zep gave the new thread no id.")
            return self._remember_thread(session_id, str(row["uuid"]))

    def _find_threads(self, user_uuid: str) -> None:
        """Fill an empty record with the threads that Zep has, by the conversations that their messages name."""
        for thread in self._client.list_threads(user_uuid):
            first = self._client.oldest_message(str(thread["uuid"])) or {}
            about = first.get("metadata") or {}
            if about.get("source") == SOURCE and about.get("session"):
                self._remember_thread(str(about["session"]), str(thread["uuid"]))
        self._remember("threads_found", self._user_id, "")

    def _remember(self, kind: str, local_id: str, remote_id: str) -> str:
        self._sent.add(kind, local_id, remote_id)
        return remote_id

    def _remember_thread(self, session_id: str, thread_uuid: str) -> str:
        self._sent.add("thread", self._thread_id(session_id), thread_uuid, session_id)
        return thread_uuid


def fact_items(edges: list[Row]) -> list[RecalledItem]:
    """Facts that are still true, with the time from which they are."""
    return [
        RecalledItem(
            str(edge.get("fact") or ""),
            edge.get("valid_at") or edge.get("created_at"),
            _number(edge.get("relevance")) or _number(edge.get("score")),
            str(edge.get("uuid") or ""),
            "fact",
        )
        for edge in edges
        if is_current(edge)
    ]


def is_current(edge: Row) -> bool:
    """Whether a fact is still true: Zep keeps facts that were superseded, with the time when that happened."""
    return not any(_is_past(edge.get(end)) for end in ("invalid_at", "expired_at"))


def context_items(block: str, limit: int) -> list[RecalledItem]:
    """The lines of a context block that say something; headings and tags are left out."""
    lines = (line.strip().removeprefix("- ").strip() for line in block.splitlines())
    facts = [line for line in lines if len(line) > 3 and not line.startswith(("<", "#")) and not line.endswith(":")]
    return [RecalledItem(line, kind="context") for line in facts[:limit]]


def _is_past(time: object) -> bool:
    if not isinstance(time, str) or not time:
        return False
    try:
        timestamp = datetime.fromisoformat(time)
    except ValueError:
        return False
    return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)) <= datetime.now(UTC)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def build_messages(
    user: str, assistant: str, key: str, session_id: str, reference_time: str, user_name: str = ""
) -> list[ZepMessage]:
    """The messages of a turn, long texts in parts; each names the conversation, the delivery and its number."""
    texts = (("user", user), ("assistant", assistant))
    return [
        {"role": role, "content": text, "reference_time": reference_time, "metadata": {**about, "session": session_id}}
        | ({"name": user_name} if user_name and role == "user" else {})
        for role, text, about in split_turn(texts, key, _MAX_MESSAGE_CHARS)
    ]


def batches(messages: list[ZepMessage], thread: str) -> Iterator[tuple[list[ZepMessage], str]]:
    """The messages of a turn as requests to a thread, each with a key for idempotency that only these messages have."""
    for first in range(0, len(messages), _MAX_MESSAGES_PER_CALL):
        batch = messages[first : first + _MAX_MESSAGES_PER_CALL]
        numbers = ",".join(str(message["metadata"]["part"]) for message in batch)
        yield batch, idempotency_key(f"{thread} {batch[0]['metadata']['key']} {numbers}")


def idempotency_key(text: str) -> str:
    """A UUID made from a text."""
    return str(uuid.uuid5(_NAMESPACE, text))
