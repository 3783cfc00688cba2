"""Items: JSON values under a namespace and a key, for programs that keep facts of their own beside conversations.

Every write adds a version, so that an item has a history and a write can be undone. An item that expires disappears
from every call at once, and from the file when `remove_expired` runs. Items belong to the user of the scope.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.errors import ItemConflictError, SessionError
from memoranda.memory.record.item_reads import ItemReads
from memoranda.memory.record.item_rows import (
    COLUMNS,
    ItemRow,
    check_key,
    check_namespace,
    check_ttl,
    checksum_of,
    encode_namespace,
    encode_paths,
)
from memoranda.memory.record.message_rows import dump_json
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import count_redactions
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.types import DeleteItem, Item, PutItem

MAX_VERSIONS = 100
"""How many versions of an item are kept; the oldest is removed when a newer one is written."""

_REMOVED_TOGETHER = 500
_SWEPT = 10
_INSERT = (
    "INSERT INTO memory_items (item_id, user_id, namespace, key, value, indexed, version, event, current, created_at,"
    " updated_at, ttl, expires_at, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """A checked and redacted write; `value` is None for a deletion."""

    item_id: str
    namespace: str
    key: str
    value: str | None
    indexed: str | None = None
    ttl: float | None = None
    version: int | None = None
    secrets: int = 0


class Items(ItemReads, converts_names=False):
    """The items of one user. `on_change` is called after every write, when its transaction is durable."""

    def __init__(
        self, engine: Engine, scope: Scope, redactor: Redactor | None, on_change: Callable[[], object] | None = None
    ) -> None:
        super().__init__(engine, scope, redactor)
        self._on_change = on_change

    def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Any,
        *,
        version: int | None = None,
        ttl: float | None = None,
        index: bool | Sequence[str] | None = None,
    ) -> Item:
        """Store a value, durably when the call returns, and return the item with its new version.

        With `version`, only if that is the item's version now, 0 meaning that there is none: else ItemConflictError.
        The item expires `ttl` seconds later. `index` names what a search finds it by: paths in the value, or False
        for nothing; by default every text, the names of fields, and the key.
        """
        (item,) = self.write([PutItem(namespace, key, value, version, ttl, index)])
        assert isinstance(item, Item)
        return item

    def delete(self, namespace: Sequence[str], key: str, *, version: int | None = None) -> bool:
        """Delete an item; False if there is none. Its history stays, so that `restore` can undo this."""
        return self.write([DeleteItem(namespace, key, version)]) == [True]

    def write(self, changes: Sequence[PutItem | DeleteItem]) -> list[Item | bool]:
        """Carry out several writes in their order in one transaction: all of them or none."""
        writes = self.prepare(changes)

        def carry_out(connection: Connection) -> list[Item | bool]:
            lock_items(self._engine, connection, writes)
            return self.write_prepared(connection, writes, time.time())

        results = self._engine.write(carry_out)
        self.notify_changed()
        return results

    def prepare(self, changes: Sequence[PutItem | DeleteItem]) -> list[PreparedWrite]:
        """Check and redact changes, before the transaction in which `write_prepared` carries them out."""
        return [self._prepare(change) for change in changes]

    def write_prepared(self, connection: Connection, writes: Sequence[PreparedWrite], now: float) -> list[Item | bool]:
        """Carry out writes in a transaction that has locked their items; `notify_changed` follows its end."""
        if any(write.ttl is not None for write in writes):
            # Where items expire, each write removes a few, so that the file does not grow without maintenance.
            self._remove_expired(connection, now, _SWEPT)
        return [self._write(connection, write, now) for write in writes]

    def restore(self, namespace: Sequence[str], key: str, version: int) -> Item:
        """Store the value of an earlier version as a new one, which undoes what came after it."""
        found = [each for each in self._versions(namespace, key) if each.version == version]
        if not found or found[0].value is None:
            raise SessionError(f"The item {key!r} has no version {version!r} with a value.")
        row = found[0]
        item_id = self._item_id(check_namespace(namespace), key)
        write = PreparedWrite(item_id, row.namespace, key, row.value, row.indexed, row.ttl)

        def carry_out(connection: Connection) -> Item | bool:
            lock_item(self._engine, connection, write.item_id)
            return self._write(connection, write, time.time())

        item = self._engine.write(carry_out)
        assert isinstance(item, Item)
        self.notify_changed()
        return item

    def remove_expired(self) -> int:
        """Remove every item that has expired, with its history, from the file; returns how many there were."""
        total, removed = 0, _REMOVED_TOGETHER
        while removed == _REMOVED_TOGETHER:
            with self._engine.writing() as connection:
                removed = self._remove_expired(connection, time.time(), _REMOVED_TOGETHER)
            total += removed
        if total:
            self._engine.shrink_log()
            self.notify_changed()
        return total

    def _remove_expired(self, connection: Connection, now: float, limit: int) -> int:
        rows = connection.execute(
            f"SELECT items.item_id FROM memory_items AS items WHERE {self._in_scope} AND items.current = 1"
            " AND items.expires_at <= ? ORDER BY items.item_id LIMIT ?",
            (*self._scope.values, now, limit),
        ).fetchall()
        for (item_id,) in rows:
            remove_item(connection, item_id)
        return len(rows)

    def notify_changed(self) -> None:
        """Call `on_change`; for a part of the store that writes items in a transaction of its own."""
        if self._on_change is not None:
            self._on_change()

    def _prepare(self, change: PutItem | DeleteItem) -> PreparedWrite:
        namespace, key = check_namespace(change.namespace), check_key(change.key)
        if self._redact([*namespace, key])[1]:
            raise SessionError("The namespace or the key contains a credential; both are stored as they are.")
        if change.version is not None and (not isinstance(change.version, int) or change.version < 0):
            raise SessionError(f"version must be a whole number from 0, not {str(change.version)[:60]}.")
        stored = encode_namespace(namespace)
        item_id = self._item_id(namespace, key)
        if isinstance(change, DeleteItem):
            return PreparedWrite(item_id, stored, key, None, version=change.version)
        clean, secrets = self._redact(change.value)
        ttl, indexed = check_ttl(change.ttl), encode_paths(change.index)
        return PreparedWrite(item_id, stored, key, dump_json(clean), indexed, ttl, change.version, secrets)

    def _write(self, connection: Connection, write: PreparedWrite, now: float) -> Item | bool:
        last = connection.execute(
            "SELECT version, current, created_at, expires_at FROM memory_items WHERE item_id = ?"
            " ORDER BY version DESC LIMIT 1",
            (write.item_id,),
        ).fetchone()
        version, current, created, expires = last or (0, 0, now, None)
        exists = bool(current) and (expires is None or expires > now)
        version = 0 if current and not exists else version
        _require_version(write, version if exists else 0)
        if write.value is None and not exists:
            return False
        event = "delete" if write.value is None else "update" if exists else "add"
        row: dict[str, Any] = {
            "item_id": write.item_id, "user_id": self._scope.user, "namespace": write.namespace, "key": write.key,
            "value": write.value, "indexed": write.indexed, "version": version + 1, "event": event,
            "current": int(write.value is not None), "created_at": created if exists else now, "updated_at": now,
            "ttl": write.ttl, "expires_at": None if write.ttl is None else now + write.ttl,
        }  # fmt: skip
        if current and not exists:
            # It has expired, and with it its versions.
            remove_item(connection, write.item_id)
        elif current:
            connection.execute(
                "UPDATE memory_items SET current = 0 WHERE item_id = ? AND current = 1", (write.item_id,)
            )
            note_item_change(connection, write.item_id)
        row["checksum"] = checksum_of(row)
        connection.execute(_INSERT, tuple(row.values()))
        connection.execute(
            "DELETE FROM memory_items WHERE item_id = ? AND version <= ?", (write.item_id, version + 1 - MAX_VERSIONS)
        )
        count_redactions(connection, write.secrets)
        if write.value is None:
            return True
        return ItemRow(0, *[row[name] for name in COLUMNS[1:]]).as_item()


def lock_item(engine: Engine, connection: Connection, item_id: str) -> None:
    """Lock an item against other transactions until this one ends."""
    engine.lock_session(connection, f"item:{item_id}")


def lock_items(engine: Engine, connection: Connection, writes: Sequence[PreparedWrite]) -> None:
    """Lock the items of several writes, in an order that is the same for every writer."""
    for item_id in sorted({write.item_id for write in writes}):
        lock_item(engine, connection, item_id)


def note_item_change(connection: Connection, item_id: str) -> None:
    """Add a row to the feed of items, in the transaction that makes the change."""
    connection.execute("INSERT INTO item_changes (item_id) VALUES (?)", (item_id,))


def remove_item(connection: Connection, item_id: str) -> None:
    """Delete every version of an item."""
    connection.execute("DELETE FROM memory_items WHERE item_id = ?", (item_id,))
    note_item_change(connection, item_id)


def _require_version(write: PreparedWrite, current: int) -> None:
    if write.version is not None and write.version != current:
        state = f"has version {current}" if current else "does not exist"
        raise ItemConflictError(
            f"The item {write.key!r} {state}, and version {write.version} was expected. Nothing was written. Read it "
            "again and decide on that.",
            current,
        )
