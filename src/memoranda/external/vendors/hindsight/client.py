"""The HTTP calls about one memory bank of a Hindsight server, as version 1.1 answers them.

Hindsight extracts facts from what it retains with a language model, in the background: it accepts an operation, answers
at once, and may fail later. An operation that has failed stays failed. Sending it again with the same id is answered
with success and stores nothing, so `retry` is the only way to have it processed.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.http_answers import unless_refused
from memoranda.external.vendors.recalled_item import RecalledItem

# The server refuses longer ids of banks.
MAX_BANK_CHARS = 192
_PAGE = 100
_NAMESPACE = uuid.UUID("5b0c2c57-9f5e-5c4e-8f0a-6a9d3b1f7e42")
# Operations of one request: the parent, which can be retried as a whole.
_RETAIN = "batch_retain"


@dataclass(frozen=True, slots=True)
class RetainedItem:
    """Text for the bank. An item with the id of an earlier document replaces that document."""

    content: str
    document_id: str
    context: str = ""
    timestamp: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    observation_scopes: str = ""

    def as_json(self) -> dict[str, Any]:
        parts = {
            # PostgreSQL stores no NUL.
            "content": self.content.replace("\0", ""),
            "document_id": self.document_id,
            "context": self.context,
            "timestamp": self.timestamp,
            "tags": list(self.tags),
            "metadata": dict(self.metadata),
            "observation_scopes": self.observation_scopes,
        }
        return {name: value for name, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What recall searches, and how thoroughly: `budget` is low, mid or high; no `types` are all types."""

    budget: str = "mid"
    max_tokens: int = 4096
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tags_match: str = "any"

    def as_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"budget": self.budget, "max_tokens": self.max_tokens, "prefer_observations": True}
        if self.types:
            parts["types"] = list(self.types)
        if self.tags:
            parts |= {"tags": list(self.tags), "tags_match": self.tags_match}
        return parts


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """An operation that the server accepted and could not carry out."""

    id: str
    document_id: str
    error: str


class HindsightClient:
    """One bank. Every method raises a subclass of ProviderError when the server does not do what is asked."""

    def __init__(self, http: RemoteClient, bank_id: str) -> None:
        self._http = http
        self._path = f"v1/default/banks/{quote(bank_id, safe='')}"
        self.bank_id = bank_id

    def version(self) -> str:
        """The version of the server, which it tells without a key."""
        answer = self._http.get("version")
        found = answer.get("api_version") if isinstance(answer, dict) else None
        if not isinstance(found, str):
            raise PermanentProviderError(
                "The address does not answer like a Hindsight server: GET /version has no api_version."
            )
        return found

    def check_access(self) -> None:
        """Raise unless the key is accepted; the bank need not exist."""
        self._http.get("v1/default/banks", query={"limit": 1})

    def retain(self, item: RetainedItem, key: str, *, wait: bool = False, repeat: bool = False) -> None:
        """Store an item once, however often this is called with the same key.

        Without `wait` the server extracts facts later; with it, the call lasts as long as that takes. `repeat` is for a
        caller without an outbox: a request whose answer is lost is sent again.
        """
        # The ids of operations are unique across banks.
        operation_id = str(uuid.uuid5(_NAMESPACE, f"{self.bank_id}\0{key}"))
        body = {"items": [item.as_json()], "async": not wait, "operation_id": operation_id}
        answer = self._http.post(f"{self._path}/memories", body, retry_safe=repeat)
        if not isinstance(answer, dict) or answer.get("success") is not True:
            raise TemporaryProviderError(
                f"Hindsight did not confirm that it retained {item.document_id}: {answer!r:.200}"
            )

    def recall(self, query: str, options: RecallOptions, *, timeout: float | None = None) -> list[RecalledItem]:
        """What the bank remembers about a query, best first; nothing if it does not exist yet."""
        body = {"query": query, **options.as_json()}
        path = f"{self._path}/memories/recall"
        answer = unless_refused(lambda: self._http.post(path, body, timeout=timeout, retry_safe=True), {})
        return [item for entry in _entries(answer, "results") if (item := _recalled(entry)) is not None]

    def reflect(self, query: str, budget: str, *, timeout: float | None = None) -> str:
        """An answer that the server's model writes from the memories; empty if the bank does not exist yet."""
        body = {"query": query, "budget": budget}
        answer = unless_refused(lambda: self._http.post(f"{self._path}/reflect", body, timeout=timeout), {})
        text = answer.get("text") if isinstance(answer, dict) else None
        return text if isinstance(text, str) else ""

    def failed_operations(self) -> list[FailedOperation]:
        """Accepted items that the server could not process, oldest first."""
        failed = list(self._pages("operations", "operations", {"status": "failed"}))
        return [
            FailedOperation(
                _text(entry, "id"), _text(entry, "document_id"), _text(entry, "error_message").split("\n")[0]
            )
            for entry in reversed(failed)
            if entry.get("operation_type") == _RETAIN
        ]

    def retry(self, operation_id: str) -> None:
        """Have a failed operation processed again; one that is not failed any more is left alone."""
        path = f"{self._path}/operations/{operation_id}/retry"
        unless_refused(lambda: self._http.post(path, retry_safe=True), None, 404, 409)

    def documents(self, tags: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The documents of the bank; with `tags`, those with one of them."""
        return self._pages("documents", "items", {"tags": list(tags), "tags_match": "any_strict"} if tags else {})

    def set_missions(self, reflect: str, retain: str) -> None:
        """Create the bank if needed, and say what it is for."""
        missions = {"reflect_mission": reflect, "retain_mission": retain}
        body = {name: text for name, text in missions.items() if text}
        self._http.request("PUT", self._path, body)

    def delete(self) -> None:
        """Delete the bank with everything in it."""
        self._http.request("DELETE", self._path)

    def delete_operations(self, wanted: Callable[[str], bool]) -> None:
        """Stop and delete the operations of documents: they contain the text, and could still store it."""
        offset = 0
        while True:
            query = {"limit": _PAGE, "offset": offset}
            found = _entries(self._get_or_empty("operations", query), "operations")
            deleted = 0
            for entry in found:
                if not wanted(_text(entry, "document_id")):
                    continue
                path = f"operations/{_text(entry, 'id')}"
                if entry.get("status") in ("pending", "processing"):
                    self._delete_if_there(path)
                deleted += self._delete_if_there(f"{path}/delete")
            if len(found) < _PAGE:
                return
            offset += _PAGE - deleted

    def delete_document(self, document_id: str) -> bool:
        """Delete a document with its facts; False if the bank has no such document."""
        return self._delete_if_there(f"documents/{quote(document_id, safe='')}")

    def _pages(self, path: str, name: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The entries of a list that the server gives in pages; none if the bank does not exist."""
        offset = 0
        while True:
            found = _entries(self._get_or_empty(path, {**query, "limit": _PAGE, "offset": offset}), name)
            yield from found
            if len(found) < _PAGE:
                return
            offset += _PAGE

    def _get_or_empty(self, path: str, query: Mapping[str, Any]) -> Any:
        """The answer to a GET; an empty one if the bank does not exist."""
        return unless_refused(lambda: self._http.get(f"{self._path}/{path}", query=query), {})

    def _delete_if_there(self, path: str) -> bool:
        """Whether something was deleted; False if it is gone, or cannot be deleted in its state."""
        deleted = unless_refused(lambda: self._http.request("DELETE", f"{self._path}/{path}"), False, 404, 409)
        return deleted is not False


def _entries(answer: object, name: str) -> list[dict[str, Any]]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _recalled(entry: Mapping[str, Any]) -> RecalledItem | None:
    text = _text(entry, "text").strip()
    if not text:
        return None
    scores = entry.get("scores")
    score = scores.get("final") if isinstance(scores, dict) else None
    time = _text(entry, "occurred_start") or _text(entry, "mentioned_at") or None
    return RecalledItem(
        text, time, score if isinstance(score, int | float) else None, _text(entry, "id"), _text(entry, "type")
    )
