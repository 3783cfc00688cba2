"""Finds a text in the items of a scope and removes it, deletes all items of a user, and checks stored items for damage.

Where only the value has the text, a mark takes its place in every version. An item whose key or namespace has the text
is removed as a whole, with its history: nothing else refers to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.memory.record.item_rows import COLUMNS, ItemRow, checksum_of, decode_namespace
from memoranda.memory.record.items import lock_item, note_item_change, remove_item
from memoranda.memory.record.message_rows import decode_json, dump_json
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.sqlite.stored_texts import readable_rows
from memoranda.support.text_matcher import TextMatcher

_PAGE = 500
_SELECT = f"SELECT items.item_id, {', '.join(f'items.{name}' for name in COLUMNS)} FROM memory_items AS items"


@dataclass(frozen=True, slots=True)
class ItemPassage:
    """An item that has a text: how often in all versions, and whether it is in its key or namespace."""

    item_id: str
    user_id: str | None
    name: str
    count: int
    named: bool


class ItemPassages(StorePart, converts_names=False):
    """The texts of the items in one scope, in all versions."""

    def __init__(self, engine: Engine, scope: Scope, redactor: Redactor | None) -> None:
        super().__init__(engine, scope, redactor)
        self._in_scope = scope.condition("items")

    def users(self) -> list[str]:
        """The users that have items, without the home's owner."""
        self._require_everyone()
        with self._engine.reading() as connection:
            rows = connection.execute("SELECT DISTINCT user_id FROM memory_items WHERE user_id IS NOT NULL ORDER BY 1")
            return [row[0] for row in rows]

    def count(self) -> int:
        """How many items there are in the scope, with those of which only the history is left."""
        with self._engine.reading() as connection:
            (count,) = connection.execute(
                f"SELECT count(DISTINCT items.item_id) FROM memory_items AS items WHERE {self._in_scope}",
                self._scope.values,
            ).fetchone()
        return int(count)

    def find(self, matcher: TextMatcher) -> list[ItemPassage]:
        """Every item that has the text, in any version."""
        found: dict[str, ItemPassage] = {}
        for item_id, row in self._rows():
            labels = decode_namespace(row.namespace)
            named = matcher.found_in(row.key) or any(map(matcher.found_in, labels))
            value = row.value or ""
            count = matcher.replace_value(decode_json(value)).count if matcher.may_be_in(value) else 0
            if named or count:
                before = found[item_id].count if item_id in found else 0
                name = "/".join((*labels, row.key))
                found[item_id] = ItemPassage(item_id, row.user_id, name, before + max(1, count), named)
        return list(found.values())

    def replace(self, matcher: TextMatcher) -> int:
        """Replace the text in values and remove items that are named by it; returns how many items were changed."""
        passages = self.find(matcher)
        for passage in passages:
            with self._engine.writing() as connection:
                lock_item(self._engine, connection, passage.item_id)
                if passage.named:
                    remove_item(connection, passage.item_id)
                else:
                    _replace_in_versions(connection, passage.item_id, matcher)
        if passages:
            self._engine.shrink_log()
        return len(passages)

    def delete_all(self) -> int:
        """Delete every item of the scope with its history; returns how many there were."""
        with self._engine.writing() as connection:
            rows = connection.execute(
                f"SELECT DISTINCT items.item_id FROM memory_items AS items WHERE {self._in_scope}", self._scope.values
            ).fetchall()
            for (item_id,) in rows:
                remove_item(connection, item_id)
        if rows:
            self._engine.shrink_log()
        return len(rows)

    def damaged(self) -> list[tuple[int, str]]:
        """The row ids and names of stored versions that do not match their checksum; reads all items."""
        return [
            (row.id, "/".join((*decode_namespace(row.namespace), row.key))) for _, row in self._rows() if row.damaged
        ]

    def accept_damage(self, ids: list[int]) -> None:
        """Keep damaged versions as they are now: their checksums are computed again."""
        with self._engine.writing() as connection:
            for number in ids:
                for _, *values in list(readable_rows(connection, f"{_SELECT} WHERE items.id = ?", (number,))):
                    _seal(connection, number, ItemRow(*values)._asdict())

    def _rows(self) -> Iterator[tuple[str, ItemRow]]:
        last = 0
        while True:
            with self._engine.reading() as connection:
                page = list(
                    readable_rows(
                        connection,
                        f"{_SELECT} WHERE {self._in_scope} AND items.id > ? ORDER BY items.id LIMIT ?",
                        (*self._scope.values, last, _PAGE),
                    )
                )
            for item_id, *values in page:
                yield item_id, ItemRow(*values)
            if len(page) < _PAGE:
                return
            last = page[-1][1]


def _replace_in_versions(connection: Connection, item_id: str, matcher: TextMatcher) -> None:
    rows = list(readable_rows(connection, f"{_SELECT} WHERE items.item_id = ? AND items.value IS NOT NULL", (item_id,)))
    for _, *values in rows:
        row = ItemRow(*values)
        replaced = matcher.replace_value(decode_json(row.value or "null"))
        if replaced.count:
            value = dump_json(replaced.value)
            connection.execute("UPDATE memory_items SET value = ? WHERE id = ?", (value, row.id))
            # Damage that was there before stays visible.
            if not row.damaged:
                _seal(connection, row.id, row._asdict() | {"value": value})
    note_item_change(connection, item_id)


def _seal(connection: Connection, number: int, row: Mapping[str, Any]) -> None:
    connection.execute("UPDATE memory_items SET checksum = ? WHERE id = ?", (checksum_of(row), number))
