"""Memories of mem0's API over the items of one user.

A memory is an item in the namespace `("mem0",)` whose key is the memory's id. Its value has the text and, as fields,
the entities that the client names (`user_id`, `agent_id`, `app_id`, `run_id`) and metadata. Nothing is extracted by a
model: texts are stored as they were said.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import md5
from typing import Any
from uuid import UUID, uuid4, uuid5

from memoranda.api.items import MemoryItems
from memoranda.errors import ItemConflictError
from memoranda.service.compatible.mem0.filters import ENTITIES, Predicate
from memoranda.service.compatible.requests import as_iso
from memoranda.service.http.problems import Problem
from memoranda.support.tool import JsonObject
from memoranda.types import DeleteItem, Item, PutItem

NAMESPACE = ("mem0",)
_INDEXED = ("memory",)
_SHOWN = (*ENTITIES, "metadata", "categories", "expiration_date", "feedback", "feedback_reason", "role")
_PAGE = 500
_MAX_TRIES = 10
# The ids of texts that were added with `infer`: the same text of the same entities has the same id.
_IDS = UUID("6f6f1f04-2f6e-5d9c-8a57-1c1b6f1f6d55")


class Mem0Memories:
    """Adds, finds, changes and deletes the memories of one user of the home."""

    def __init__(self, items: MemoryItems) -> None:
        self._items = items

    def add(self, texts: Sequence[tuple[str, str]], fields: Mapping[str, Any], *, once: bool) -> list[JsonObject]:
        """Store texts, each with the role that said it, in one transaction; returns an event for each.

        With `once`, a text that the same entities already have is not stored again: its event is NONE.
        """
        for _ in range(_MAX_TRIES):
            changes: list[PutItem | DeleteItem] = []
            events: list[JsonObject] = []
            for role, text in texts:
                value = {"memory": text, "hash": _hash(text), "role": role, **fields}
                memory_id, exists = self._choose_id(value) if once else (str(uuid4()), False)
                known = exists or any(event["id"] == memory_id for event in events)
                events.append({"id": memory_id, "memory": text, "event": "NONE" if known else "ADD"})
                if not known:
                    changes.append(PutItem(NAMESPACE, memory_id, value, version=0, index=_INDEXED))
            try:
                self._items.write(changes)
            except ItemConflictError:
                # Another request has just added the same text.
                continue
            return events
        raise Problem(409, "conflict", "The memories are being changed by other requests. Nothing was added.")

    def _choose_id(self, value: Mapping[str, Any]) -> tuple[str, bool]:
        """The id of a text of these entities, and whether a memory has it; another id if that memory has other text."""
        entities = [value.get(name) for name in ENTITIES]
        memory_id = str(uuid5(_IDS, json.dumps([*entities, value["memory"]])))
        item = self._items.get(NAMESPACE, memory_id)
        if item is None:
            return memory_id, False
        same = item.value.get("memory") == value["memory"] and not _is_expired(item)
        return (memory_id, True) if same else (str(uuid4()), False)

    def get(self, memory_id: str) -> JsonObject:
        return as_memory(self._require(memory_id))

    def select(self, matches: Predicate, *, with_expired: bool = False) -> Iterator[JsonObject]:
        """The memories that match, the latest written first."""
        offset = 0
        while True:
            page = self._items.search(NAMESPACE, limit=_PAGE, offset=offset)
            for hit in page:
                memory = as_memory(hit.item)
                if (with_expired or not _is_expired(hit.item)) and matches(memory):
                    yield memory
            if len(page) < _PAGE:
                return
            offset += _PAGE

    def search(
        self, query: str, matches: Predicate, *, limit: int, threshold: float, with_expired: bool = False
    ) -> list[JsonObject]:
        """The memories with words of the query that match, best first, with scores from the threshold on."""
        found: list[JsonObject] = []
        offset = 0
        while True:
            page = self._items.search(NAMESPACE, query, limit=_PAGE, offset=offset)
            for hit in page:
                # As it is shown, so that a client can use a score as its next threshold.
                score = round(hit.score or 0.0, 6)
                memory = as_memory(hit.item) | {"score": score}
                if score >= threshold and (with_expired or not _is_expired(hit.item)) and matches(memory):
                    found.append(memory)
                    if len(found) == limit:
                        return found
            if len(page) < _PAGE or round(page[-1].score or 0.0, 6) < threshold:
                return found
            offset += _PAGE

    def update(self, changes: Mapping[str, Mapping[str, Any]]) -> list[JsonObject]:
        """Set fields of memories by their ids, all or none; raises Problem 404 if one does not exist."""
        for _ in range(_MAX_TRIES):
            items = {memory_id: self._require(memory_id) for memory_id in changes}
            writes = [
                PutItem(NAMESPACE, memory_id, _changed(items[memory_id].value, fields), items[memory_id].version,
                        index=_INDEXED)
                for memory_id, fields in changes.items()
            ]  # fmt: skip
            try:
                written = self._items.write(writes)
            except ItemConflictError:
                continue
            return [as_memory(item) for item in written if isinstance(item, Item)]
        raise Problem(409, "conflict", "The memories are being changed by other requests. Nothing was updated.")

    def delete(self, memory_ids: Sequence[str]) -> None:
        """Delete memories, all or none; raises Problem 404 if one does not exist. Their history stays."""
        for memory_id in memory_ids:
            self._require(memory_id)
        self._items.write([DeleteItem(NAMESPACE, memory_id) for memory_id in dict.fromkeys(memory_ids)])

    def history(self, memory_id: str) -> list[JsonObject]:
        """The events of a memory, oldest first; raises Problem 404 if it never existed."""
        versions = self._items.history(NAMESPACE, memory_id)
        if not versions:
            raise _not_found(memory_id)
        events, before = [], None
        for version in versions:
            text = version.value.get("memory") if isinstance(version.value, dict) else None
            value = version.value if isinstance(version.value, dict) else {}
            events.append(
                {
                    "id": str(uuid5(_IDS, f"{memory_id} {version.version}")),
                    "memory_id": memory_id,
                    "input": [{"role": value.get("role", "user"), "content": text}] if text is not None else [],
                    "old_memory": before,
                    "new_memory": text,
                    "event": version.event.upper(),
                    "user_id": value.get("user_id"),
                    "metadata": value.get("metadata"),
                    "created_at": as_iso(version.created_at),
                    "updated_at": as_iso(version.updated_at),
                }
            )
            before = text
        return events

    def _require(self, memory_id: str) -> Item:
        item = self._items.get(NAMESPACE, memory_id)
        if item is None or not isinstance(item.value, dict):
            raise _not_found(memory_id)
        return item


def as_memory(item: Item) -> JsonObject:
    """An item in the form of mem0's API."""
    value = item.value if isinstance(item.value, dict) else {"memory": str(item.value)}
    stamped = value.get("timestamp")
    created = stamped if isinstance(stamped, (int, float)) else item.created_at
    memory: JsonObject = {"id": item.key, "memory": value.get("memory", ""), "hash": value.get("hash")}
    memory |= {name: value.get(name) for name in _SHOWN}
    return memory | {"created_at": as_iso(created), "updated_at": as_iso(max(created, item.updated_at))}


def _changed(value: Mapping[str, Any], fields: Mapping[str, Any]) -> JsonObject:
    changed = {**value, **fields}
    return changed | {"hash": _hash(changed["memory"])}


def _is_expired(item: Item) -> bool:
    """Whether the day after the memory's expiration date has begun."""
    until = item.value.get("expiration_date") if isinstance(item.value, dict) else None
    return isinstance(until, str) and datetime.fromtimestamp(time.time(), UTC).date().isoformat() > until


def _hash(text: str) -> str:
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _not_found(memory_id: str) -> Problem:
    return Problem(404, "not_found", f"There is no memory {memory_id[:100]!r}.")
