"""Reads items: one, those under a namespace, the namespaces, the history of one."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.item_filter import check_filter, passes
from memoranda.memory.record.item_rows import (
    COLUMNS,
    ItemRow,
    Namespace,
    check_key,
    check_labels,
    check_namespace,
    decode_namespace,
    encode_namespace,
    identify,
)
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.sqlite.stored_texts import readable_rows
from memoranda.types import Item, ItemVersion

_PAGE = 500
# A read extends the life of an item only if that gains at least this share of it, so that few reads write.
_REFRESHED_SHARE = 0.02
_SELECT = f"SELECT {', '.join(f'items.{name}' for name in COLUMNS)} FROM memory_items AS items"
_LIVE = "items.current = 1 AND (items.expires_at IS NULL OR items.expires_at > ?)"


class ItemReads(StorePart, converts_names=False):
    """Reads of the items in one scope. An item that has expired is in none of them."""

    def __init__(self, engine: Engine, scope: Scope, redactor: Redactor | None) -> None:
        super().__init__(engine, scope, redactor)
        self._in_scope = scope.condition("items")

    def get(self, namespace: Sequence[str], key: str, *, refresh: bool = False) -> Item | None:
        """An item, or None if there is none or it has expired; `refresh` starts its time to live again."""
        rows = self._select("items.item_id = ?", (self._item_id(check_namespace(namespace), check_key(key)),))
        if refresh:
            rows = self.refresh(rows)
        return rows[0].as_item() if rows else None

    def history(self, namespace: Sequence[str], key: str) -> list[ItemVersion]:
        """The versions of an item, oldest first, with its deletions; empty if it never existed or has expired."""
        return [row.as_version() for row in self._versions(namespace, key)]

    def list_items(
        self,
        prefix: Sequence[str] = (),
        *,
        filters: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[Item]:
        """The items whose namespace starts with the labels of `prefix`, the latest written first."""
        wanted = check_filter(filters or {})
        check_page(limit, offset)
        rows: list[ItemRow] = []
        skipped = 0
        for row in self.rows_under(prefix):
            if len(rows) >= limit:
                break
            if wanted and not passes(row.as_item().value, wanted):
                continue
            skipped += 1
            if skipped > offset:
                rows.append(row)
        return [row.as_item() for row in (self.refresh(rows) if refresh else rows)]

    def list_namespaces(
        self,
        *,
        prefix: Sequence[str] = (),
        suffix: Sequence[str] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """The namespaces that have items, in order; `*` in `prefix` or `suffix` stands for any one label.

        With `max_depth`, longer namespaces are cut to so many labels, and each is listed once.
        """
        check_page(limit, offset)
        start, end = check_labels("prefix", prefix), check_labels("suffix", suffix)
        if max_depth is not None and (not isinstance(max_depth, int) or max_depth < 1):
            raise SessionError(f"max_depth must be a whole number above 0, not {max_depth!r}.")
        literal = start[: start.index("*")] if "*" in start else start
        found = {
            labels[:max_depth]
            for labels in map(decode_namespace, self._namespaces(literal, _LIVE, (time.time(),)))
            if _fits(labels[: len(start)], start) and _fits(labels[len(labels) - len(end) :], end)
        }
        return sorted(found)[offset : offset + limit]

    def namespaces_under(self, prefix: Sequence[str]) -> list[str]:
        """The stored form of every namespace that starts with these labels and has items, perhaps expired ones."""
        return self._namespaces(prefix, "items.current = 1", ())

    def rows_by_id(self, ids: Collection[int]) -> dict[int, ItemRow]:
        """The live items with these row ids, for a search."""
        found: dict[int, ItemRow] = {}
        numbers = list(ids)
        for start in range(0, len(numbers), _PAGE):
            rows = self._select(*self._dialect.one_of("items.id", numbers[start : start + _PAGE]))
            found |= {row.id: row for row in rows}
        return found

    def rows_under(self, prefix: Sequence[str]) -> Iterator[ItemRow]:
        """The live items whose namespace starts with these labels, the latest written first, read page by page."""
        condition, values = self._under(prefix)
        after: tuple[Any, ...] = ()
        while True:
            later = "AND (items.updated_at, items.id) < (?, ?)" if after else ""
            page = self._select(
                f"{condition} {later} ORDER BY items.updated_at DESC, items.id DESC LIMIT ?", (*values, *after, _PAGE)
            )
            yield from page
            if len(page) < _PAGE:
                return
            after = (page[-1].updated_at, page[-1].id)

    def refresh(self, rows: Sequence[ItemRow]) -> list[ItemRow]:
        """Start the time to live of these items again, where that gains enough; returns them as they are then."""
        now = time.time()
        due = [
            row
            for row in rows
            if row.ttl is not None
            and row.expires_at is not None
            and now + row.ttl - row.expires_at > row.ttl * _REFRESHED_SHARE
        ]
        if not due or self._engine.read_only:
            return list(rows)

        def extend(connection: Connection) -> None:
            for row in due:
                connection.execute(
                    "UPDATE memory_items SET expires_at = ? WHERE id = ? AND current = 1 AND expires_at > ?",
                    (now + (row.ttl or 0.0), row.id, now),
                )

        self._engine.write(extend)
        extended = {row.id: row._replace(expires_at=now + (row.ttl or 0.0)) for row in due}
        return [extended.get(row.id, row) for row in rows]

    def _item_id(self, namespace: Namespace, key: str) -> str:
        if self._scope.all:
            raise SessionError("An item belongs to one user; this store is open for all of them.")
        return identify(self._scope.user, encode_namespace(namespace), key)

    def _versions(self, namespace: Sequence[str], key: str) -> list[ItemRow]:
        item_id = self._item_id(check_namespace(namespace), check_key(key))
        with self._engine.reading() as connection:
            found = readable_rows(
                connection,
                f"{_SELECT} WHERE {self._in_scope} AND items.item_id = ? ORDER BY items.version",
                (*self._scope.values, item_id),
            )
            rows = [ItemRow(*row) for row in found]
        last = rows[-1] if rows else None
        expired = last is not None and last.expires_at is not None and last.expires_at <= time.time()
        return [] if expired else rows

    def _select(self, condition: str, values: Sequence[Any]) -> list[ItemRow]:
        with self._engine.reading() as connection:
            rows = readable_rows(
                connection,
                f"{_SELECT} WHERE {self._in_scope} AND {_LIVE} AND {condition}",
                (*self._scope.values, time.time(), *values),
            )
            return [ItemRow(*row) for row in rows]

    def _namespaces(self, prefix: Sequence[str], which: str, values: Sequence[Any]) -> list[str]:
        condition, labels = self._under(prefix)
        with self._engine.reading() as connection:
            rows = connection.execute(
                f"SELECT DISTINCT items.namespace FROM memory_items AS items"
                f" WHERE {self._in_scope} AND {which} AND {condition}",
                (*self._scope.values, *values, *labels),
            )
            return [row[0] for row in rows]

    def _under(self, prefix: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
        """A condition for the namespaces that start with these labels."""
        labels = check_labels("A prefix", prefix)
        if not labels:
            return "1 = 1", ()
        exact = encode_namespace(labels)
        longer, values = self._dialect.starts_with("items.namespace", f"{exact[:-1]},")
        return f"(items.namespace = ? OR ({longer}))", (exact, *values)


def check_page(limit: Any, offset: Any) -> None:
    """Raise SessionError unless both are whole numbers from 0."""
    for name, number in (("limit", limit), ("offset", offset)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise SessionError(f"{name} must be a whole number from 0, not {str(number)[:60]}.")


def _fits(labels: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(labels) == len(wanted) and all(one in ("*", other) for one, other in zip(wanted, labels, strict=True))
