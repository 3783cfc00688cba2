"""LangGraph: a `BaseStore` whose items are those of the home, durable, with a history, and found by their words.

    graph = builder.compile(store=MemorandaStore(memory))

Needs the package langgraph-checkpoint, which langgraph installs (extra `langgraph`).
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_never

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from memoranda.integrations.frameworks import blocking_calls
from memoranda.types import DeleteItem, PutItem
from memoranda.types import Item as StoredItem

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

_SECONDS_PER_MINUTE = 60
_WHOLE_VALUE = ["$"]
_ALL_NAMESPACES = 1_000_000


class MemorandaStore(BaseStore):
    """The items of one user as a store of LangGraph; search needs no embeddings. Times to live are in minutes there."""

    supports_ttl = True

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads see what was stored before, and all writes are one transaction after them."""
        operations = list(ops)
        results = [None if isinstance(op, PutOp) else self._read(op) for op in operations]
        if changes := [_change(op) for op in operations if isinstance(op, PutOp)]:
            self._memory.items.write(changes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations outside the event loop; a cancellation takes effect when they have ended."""
        return await blocking_calls.run_to_end(self.batch, list(ops))

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        items = self._memory.items
        if isinstance(op, GetOp):
            found = items.get(op.namespace, op.key, refresh=op.refresh_ttl)
            return Item(**_fields(found)) if found is not None else None
        if isinstance(op, SearchOp):
            hits = items.search(
                op.namespace_prefix,
                op.query,
                filter=op.filter,
                limit=op.limit,
                offset=op.offset,
                refresh=op.refresh_ttl,
            )
            return [SearchItem(**_fields(hit.item), score=hit.score) for hit in hits]
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        assert_never(op)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        prefixes = [each.path for each in conditions if each.match_type == "prefix"]
        # One condition narrows what is read; there may be several.
        found = self._memory.items.list_namespaces(prefix=prefixes[0] if prefixes else (), limit=_ALL_NAMESPACES)
        matching = [each for each in found if all(_matches(each, condition) for condition in conditions)]
        cut = dict.fromkeys(each[: op.max_depth] for each in matching)
        return list(cut)[op.offset : op.offset + op.limit]


def _matches(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _change(op: PutOp) -> PutItem | DeleteItem:
    if op.value is None:
        return DeleteItem(op.namespace, op.key)
    index = None if op.index is None or list(op.index or ()) == _WHOLE_VALUE else op.index
    ttl = None if op.ttl is None else op.ttl * _SECONDS_PER_MINUTE
    return PutItem(op.namespace, op.key, dict(op.value), ttl=ttl, index=index)


def _fields(item: StoredItem) -> dict[str, Any]:
    return {
        "namespace": item.namespace,
        "key": item.key,
        "value": item.value,
        "created_at": datetime.fromtimestamp(item.created_at, UTC),
        "updated_at": datetime.fromtimestamp(item.updated_at, UTC),
    }
