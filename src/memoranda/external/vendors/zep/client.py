"""The calls of Zep's HTTP interface (v4).

A user has a graph; threads of a user hold messages, from which Zep extracts episodes, entities (nodes), facts (edges)
and observations into the graph. Everything is addressed by a UUID that Zep assigns; only a user has an id of the
caller's, by which it can be looked up. Every POST and DELETE has an `Idempotency-Key`, as Zep's own client sends it.
Zep accepts messages at once and extracts later.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.http_answers import as_object, as_objects, unless_refused
from memoranda.support.shorten import shorten_end

# Cautious guesses: the client of this version names no limits, and the service was not tried.
MAX_MESSAGE_CHARS = 4_096
MAX_MESSAGES_PER_CALL = 30
MAX_EPISODE_CHARS = 10_000
MAX_QUERY_CHARS = 400
SEARCHES = ("edges", "observations", "nodes", "episodes")

_PAGE_SIZE = 100

Row = dict[str, Any]


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
        """The threads of a user."""
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
        return _rows(answer.get("messages") or [])

    def newest_messages(self, thread_uuid: str, count: int = _PAGE_SIZE) -> list[Row]:
        """The newest messages of a thread, newest first."""
        query = {"page_size": count, "order_by": "created_at", "order": "desc"}
        return _rows(_row(self._http.get(f"threads/{thread_uuid}/messages", query=query)).get("items") or [])

    def oldest_message(self, thread_uuid: str) -> Row | None:
        """The first message of a thread; None when it is empty."""
        query = {"page_size": 1, "order_by": "created_at", "order": "asc"}
        rows = _rows(_row(self._http.get(f"threads/{thread_uuid}/messages", query=query)).get("items") or [])
        return rows[0] if rows else None

    def list_thread_episodes(self, thread_uuid: str) -> Iterator[Row]:
        """The episodes that Zep made from the messages of a thread."""
        return self._pages(f"threads/{thread_uuid}/episodes", {})

    def get_thread_context(self, thread_uuid: str, timeout: float | None = None) -> str:
        """The context block for the latest messages of a thread; empty when there is none."""
        answer = _or_none(lambda: self._http.get(f"threads/{thread_uuid}/context", timeout=timeout))
        return str((answer or {}).get("context") or "")

    def get_graph_context(self, user_uuid: str, query: str, max_chars: int) -> str:
        """The context block for a question about everything in a user's graph."""
        body = {"query": shorten_end(query, MAX_QUERY_CHARS), "max_characters": max_chars}
        answer = _row(self._post(f"graphs/{user_uuid}/context", body))
        return str(answer.get("context") or "")

    def search(self, user_uuid: str, what: str, query: str, limit: int, timeout: float | None = None) -> list[Row]:
        """What a user's graph has about a query, best first; `what` is one of SEARCHES."""
        body = {"query": shorten_end(query.replace("\x00", " "), MAX_QUERY_CHARS)}
        path, options = f"graphs/{user_uuid}/search/{what}", {"page_size": limit}
        answer = _row(self._post(path, body, query=options, timeout=timeout))
        return _rows(answer.get("items") or [])

    def add_episode(self, user_uuid: str, episode: Mapping[str, Any], key: str) -> Row:
        """Add a text to a user's graph; the same key adds it once."""
        body = {"type": "text", **episode}
        return _row(_row(self._post(f"graphs/{user_uuid}/episodes", body, key=key)).get("episode"))

    def get_item(self, user_uuid: str, what: str, item_uuid: str) -> Row | None:
        """A fact (`edges`) or an episode of a user's graph; None when it has none with this id."""
        return _or_none(lambda: self._http.get(f"graphs/{user_uuid}/{what}/{item_uuid}"))

    def delete_item(self, user_uuid: str, what: str, item_uuid: str) -> bool:
        """Delete a fact (`edges`) or an episode of a user's graph; False when there is none."""
        return self._delete(f"graphs/{user_uuid}/{what}/{item_uuid}")

    def _post(
        self,
        path: str,
        body: Any,
        *,
        key: str = "",
        query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        key = key or str(uuid.uuid4())
        return self._http.post(path, body, query=query or {}, idempotency_key=key, timeout=timeout)

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


_row = partial(as_object, vendor="Zep")
_rows = partial(as_objects, vendor="Zep")


def _or_none(call: Callable[[], Any]) -> Row | None:
    """The object that a call returns; None when it does not exist at Zep."""
    answer = unless_refused(call, None)
    return None if answer is None else _row(answer)
