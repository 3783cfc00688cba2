"""Memories of mem0's API over the items of one user, and the filters of that API.

A memory is an item in the namespace `("mem0",)` whose key is the memory's id. Its value has the text and, as fields,
the entities that the client names (`user_id`, `agent_id`, `app_id`, `run_id`) and metadata. Nothing is extracted by a
model: texts are stored as they were said. Filters are AND, OR and NOT over entity ids, times, categories and metadata,
with operators.
"""

import json
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from hashlib import md5
from itertools import count, islice, takewhile
from typing import Any
from uuid import UUID, uuid4, uuid5

from memoranda.api.items import MemoryItems
from memoranda.errors import ItemConflictError
from memoranda.service.compatible.requests import as_iso, invalid
from memoranda.service.http.problems import Problem
from memoranda.support.tool import JsonObject
from memoranda.types import DeleteItem, Item, PutItem

ENTITIES = ("user_id", "agent_id", "app_id", "run_id")
_TIMES = ("created_at", "updated_at", "timestamp")
_FIELDS = (*ENTITIES, *_TIMES, "categories", "metadata", "memory", "feedback", "feedback_reason", "id", "memory_ids")
_MAX_DEPTH = 20
_ANY = "*"
_COMPARISONS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}

Memory = Mapping[str, Any]
"""A memory as the API shows it."""

Predicate = Callable[[Memory], bool]
NAMESPACE = ("mem0",)
_INDEXED = ("memory",)
_SHOWN = (*ENTITIES, "metadata", "categories", "expiration_date", "feedback", "feedback_reason", "role")
_PAGE = 500
_MAX_TRIES = 10
# The ids of texts that were added with `infer`: the same text of the same entities has the same id.
_IDS = UUID("6f6f1f04-2f6e-5d9c-8a57-1c1b6f1f6d55")


def read_filters(filters: Any, depth: int = 0) -> Predicate:
    """The filters as a function; raises Problem 400 for what is no filter, so that none is ignored silently.

    An object means that all of its fields must match. A field that mem0 does not name is one of the metadata.
    """
    if filters is None:
        return lambda memory: True
    if isinstance(filters, list):
        return _all([read_filters(each, depth + 1) for each in filters])
    if not isinstance(filters, dict) or depth > _MAX_DEPTH:
        raise invalid("filters must be an object such as {'AND': [{'user_id': 'ana'}]}.")
    return _all([_read_part(name, value, depth) for name, value in filters.items()])


def _all(parts: list[Predicate]) -> Predicate:
    return lambda memory: all(part(memory) for part in parts)


def _read_part(name: str, value: Any, depth: int) -> Predicate:
    if name in ("AND", "OR", "NOT"):
        parts = [read_filters(each, depth + 1) for each in (value if isinstance(value, list) else [value])]
        if name == "AND":
            return _all(parts)
        if name == "OR":
            return lambda memory: any(part(memory) for part in parts)
        return lambda memory: not any(part(memory) for part in parts)
    if name == "metadata" and isinstance(value, dict):
        return _all([_compare_field(("metadata", key), wanted) for key, wanted in value.items()])
    if name == "keywords":
        return _compare_field(("memory",), value)
    if name == "memory_ids":
        return _compare_field(("id",), {"in": value})
    return _compare_field((name,) if name in _FIELDS else ("metadata", name), value)


def _compare_field(path: tuple[str, ...], wanted: Any) -> Predicate:
    is_time = path[-1] in _TIMES and path[0] != "metadata"
    if isinstance(wanted, dict):
        tests = [_operator(operator, _time(operand) if is_time else operand) for operator, operand in wanted.items()]
    else:
        tests = [_equals(_time(wanted) if is_time else wanted)]

    def matches(memory: Memory) -> bool:
        found: Any = memory
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        found = _time(found) if is_time and found is not None else found
        return all(test(found) for test in tests)

    return matches


def _equals(wanted: Any) -> Callable[[Any], bool]:
    if wanted == _ANY:
        return lambda found: found is not None
    return lambda found: bool(found == wanted) or (isinstance(found, list) and wanted in found)


def _operator(name: str, wanted: Any) -> Callable[[Any], bool]:
    """One operator with its operand, as a test of the value that a memory has."""
    if name in ("eq", "ne"):
        equals = _equals(wanted)
        return equals if name == "eq" else lambda found: not equals(found)
    if name in ("in", "nin"):
        if not isinstance(wanted, list):
            raise invalid(f"The operator {name!r} takes a list.")
        tests = [_equals(each) for each in wanted]
        return lambda found: any(test(found) for test in tests) == (name == "in")
    if name in ("contains", "icontains"):
        return lambda found: _contains(found, wanted, ignore_case=name == "icontains")
    if holds := _COMPARISONS.get(name):
        return lambda found: _ordered(found, wanted) and bool(holds(found, wanted))
    raise invalid(f"filters have no operator {str(name)[:60]!r}.")


def _contains(found: Any, wanted: Any, *, ignore_case: bool) -> bool:
    if isinstance(found, list):
        wanted = wanted if isinstance(wanted, list) else [wanted]
        return any(each in found for each in wanted)
    if not isinstance(found, str) or not isinstance(wanted, str):
        return False
    return wanted.casefold() in found.casefold() if ignore_case else wanted in found


def _ordered(found: Any, wanted: Any) -> bool:
    """Whether two values can be compared: two numbers, or two texts."""
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (found, wanted))
    return numbers or (isinstance(found, str) and isinstance(wanted, str))


def _time(value: Any) -> Any:
    """A time as seconds since 1970: a number, an ISO date or an ISO time; raises Problem 400 for another text."""
    if not isinstance(value, str) or value == _ANY:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise invalid(f"{value[:60]!r} is not a date or time in ISO 8601.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_date(value: Any, name: str) -> str | None:
    """A date as YYYY-MM-DD; None stays None."""
    if value is None:
        return None
    try:
        return date.fromisoformat(str(value)[:10]).isoformat()
    except ValueError:
        raise invalid(f"{name} must be a date such as 2030-12-31.") from None


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
        for _, memory in self._pages(None, matches, with_expired=with_expired):
            yield memory

    def search(
        self, query: str, matches: Predicate, *, limit: int, threshold: float, with_expired: bool = False
    ) -> list[JsonObject]:
        """The memories with words of the query that match, best first, with scores from the threshold on."""
        # As it is shown, so that a client can use a score as its next threshold.
        scored = ((round(score, 6), memory) for score, memory in self._pages(query, matches, with_expired=with_expired))
        enough = takewhile(lambda pair: pair[0] >= threshold, scored)
        return [memory | {"score": score} for score, memory in islice(enough, limit)]

    def _pages(
        self, query: str | None, matches: Predicate, *, with_expired: bool
    ) -> Iterator[tuple[float, JsonObject]]:
        """The memories that match, in the order of the store, each with its score."""
        for offset in count(0, _PAGE):
            page = self._items.search(NAMESPACE, query, limit=_PAGE, offset=offset)
            for hit in page:
                memory = as_memory(hit.item)
                if (with_expired or not _is_expired(hit.item)) and matches(memory):
                    yield hit.score or 0.0, memory
            if len(page) < _PAGE:
                return

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
