"""Reads and writes whole items, with their histories, for the synchronisation of two homes.

The history of an item is the versions of all machines in the order of their times. A version that was forgotten on one
machine is forgotten on all of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.memory.record.item_rows import checksum_of
from memoranda.memory.record.item_transfer import ITEM, ItemTransfer, add_item_row
from memoranda.memory.record.items import MAX_VERSIONS, lock_item, note_item_change, remove_item
from memoranda.memory.record.message_rows import decode_json
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.support.text_matcher import MARK

_NAMES = ("user_id", "namespace", "key", "value", "indexed", "version", "event", "created_at", "updated_at", "ttl",
          "expires_at")  # fmt: skip

Row = dict[str, Any]


class SyncedItems(StorePart, converts_names=False):
    """Items of one scope."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope,
        redactor: Redactor | None,
        transfer: ItemTransfer,
        on_change: Callable[[], object] | None,
    ) -> None:
        super().__init__(engine, scope, redactor)
        self._transfer = transfer
        self._on_change = on_change

    def merge_item(self, item: Mapping[str, Any]) -> tuple[bool, bool]:
        """Merge an exported item into ours: whether it changed, and whether something was forgotten by that.

        Raises SessionError if the item is not valid.
        """
        item_id, theirs, secrets = self._transfer.rows_of({ITEM: item})
        with self._engine.writing() as connection:
            lock_item(self._engine, connection, item_id)
            ours = _read(connection, item_id)
            merged = _merge(ours, theirs)
            if [_compared(row) for row in merged] == [_compared(row) for row in ours]:
                return False, False
            connection.execute("DELETE FROM memory_items WHERE item_id = ?", (item_id,))
            last = max(len(merged), *(row["version"] for row in (*ours, *theirs)))
            for number, row in enumerate(merged, start=last - len(merged) + 1):
                version = row | {"version": number}
                current = int(row is merged[-1] and row["value"] is not None)
                add_item_row(
                    connection,
                    {"item_id": item_id, **version, "current": current, "checksum": checksum_of(version)},
                )
            note_item_change(connection, item_id)
            count_redactions(connection, secrets)
        if self._on_change is not None:
            self._on_change()
        known = {_compared(row) for row in ours}
        forgotten = any(_is_marked(row) and _compared(row) not in known for row in merged) and bool(ours)
        return True, forgotten

    def marked_values(self, item_id: str, item: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """The values of our versions, each with the value from which another machine has removed a text."""
        marked = {
            (version["updated_at"], version["event"]): version.get("value")
            for version in item["versions"]
            if MARK in str(version.get("value"))
        }
        if not marked:
            return []
        with self._engine.reading() as connection:
            ours = _read(connection, item_id)
        return [
            (decode_json(row["value"]), marked[row["updated_at"], row["event"]])
            for row in ours
            if (row["updated_at"], row["event"]) in marked and row["value"]
        ]

    def item_states(self) -> dict[str, float]:
        """The items of the scope: the time of the last write, by id."""
        with self._engine.reading() as connection:
            rows = connection.execute(
                "SELECT item_id, max(updated_at) FROM memory_items AS items WHERE"
                f" {self._scope.condition('items')} GROUP BY item_id",
                self._scope.values,
            )
            return {row[0]: row[1] for row in rows}

    def item_position(self) -> tuple[int, int]:
        """How far items have changed: the last version and the last change."""
        with self._engine.reading() as connection:
            (version,) = connection.execute("SELECT COALESCE(max(id), 0) FROM memory_items").fetchone()
            (change,) = connection.execute("SELECT COALESCE(max(seq), 0) FROM item_changes").fetchone()
        return int(version), int(change)

    def remove_item(self, item_id: str, last_write: float) -> bool:
        """Delete an item with its history, unless it was written since; whether there was one."""
        with self._engine.writing() as connection:
            row = connection.execute(
                f"SELECT max(updated_at) FROM memory_items AS items WHERE item_id = ? AND"
                f" {self._scope.condition('items')}",
                (item_id, *self._scope.values),
            ).fetchone()
            if row[0] is None or row[0] > last_write:
                return False
            remove_item(connection, item_id)
        return True


def _read(connection: Connection, item_id: str) -> list[Row]:
    rows = connection.execute(
        f"SELECT {', '.join(_NAMES)} FROM memory_items WHERE item_id = ? ORDER BY version", (item_id,)
    )
    return [dict(zip(_NAMES, row, strict=True)) for row in rows]


def _merge(ours: list[Row], theirs: list[Row]) -> list[Row]:
    """The versions of both in the order of their times; of a forgotten version and its original only the first."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in (*ours, *theirs):
        found.setdefault(_compared(row), row)
    marked = {(row["updated_at"], row["event"]) for row in found.values() if _is_marked(row)}
    kept = [row for row in found.values() if _is_marked(row) or (row["updated_at"], row["event"]) not in marked]
    return sorted(kept, key=lambda row: (row["updated_at"], row["event"], row["value"] or ""))[-MAX_VERSIONS:]


def _compared(row: Row) -> tuple[Any, ...]:
    return row["updated_at"], row["event"], row["value"]


def _is_marked(row: Row) -> bool:
    return MARK in (row["value"] or "")
