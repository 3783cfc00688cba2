"""Exports and imports items as plain JSON objects, each with its history, and synchronises those of two homes.

An exported item is an object with the one key `item`, so that it can stand in one file with exported sessions.
Importing an item twice adds nothing; one that is newer than ours becomes a new version of it.

For two homes, the history of an item is the versions of all machines in the order of their times. A version that was
forgotten on one machine is forgotten on all of them.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.items import (
    COLUMNS,
    MAX_VERSIONS,
    ItemRow,
    check_key,
    check_namespace,
    check_ttl,
    checksum_of,
    decode_namespace,
    encode_namespace,
    encode_paths,
    identify,
    lock_item,
    note_item_change,
    remove_item,
)
from memoranda.memory.record.message_rows import decode_json, dump_json, encode_number, require_storable, seconds
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.storage.connection import Connection
from memoranda.storage.engine import paged_rows, readable_rows
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import MARK

ITEM = "item"
_EVENTS = ("add", "update", "delete")
_PAGE = 500
_SELECT = f"SELECT {', '.join(f'items.{name}' for name in COLUMNS)} FROM memory_items AS items"


@dataclass(slots=True)
class ItemImportReport:
    """The result of an import of items; `errors` says which could not be used and why."""

    imported: int = 0
    updated: int = 0
    skipped: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)


def is_item(exported: Any) -> bool:
    """Whether an exported object is an item and not a session."""
    return isinstance(exported, Mapping) and set(exported) == {ITEM}


def take_items(exported: Iterable[Any], items: list[Any]) -> Iterator[Any]:
    """The sessions among exported objects; the items are added to `items` on the way."""
    for each in exported:
        if is_item(each):
            items.append(each)
        else:
            yield each


class ItemTransfer(StorePart):
    """Exports and imports the items of one scope."""

    _scoped_table = "items"

    def iter_export(self) -> Iterator[dict[str, Any]]:
        """Every item in scope that has not expired, as JSON values, in the order of its last version."""
        statement = (
            f"SELECT items.id, items.item_id FROM memory_items AS items WHERE {self._in_scope}"
            " AND NOT EXISTS (SELECT 1 FROM memory_items later WHERE later.item_id = items.item_id"
            " AND later.version > items.version) AND items.id > ?"
        )
        rows = paged_rows(self._engine, statement, self._scope.values, _PAGE)
        return self.export_items(item_id for _, item_id in rows)

    def export_items(self, item_ids: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Those of these items that have not expired, as JSON values."""
        unread = iter(item_ids)
        while page := list(islice(unread, _PAGE)):
            with self._engine.reading() as connection:
                found = [self._export(connection, item_id) for item_id in page]
            yield from (each for each in found if each is not None)

    def export_lines(self) -> Iterator[str]:
        """The same as lines of JSON."""
        for item in self.iter_export():
            yield json.dumps(item, ensure_ascii=False) + "\n"

    def import_items(self, exported: Iterable[Any]) -> ItemImportReport:
        """Import exported items, each in one transaction; reports an invalid one and continues with the others."""
        report = ItemImportReport()
        for index, each in enumerate(exported):
            try:
                self._import(each, report)
            except SessionError as error:
                report.errors.append({"index": index, "error": str(error)})
        return report

    def new_version(self, exported: Any) -> tuple[str, int] | None:
        """The id of an exported item and the version that importing it would add; None if ours is as new.

        Raises SessionError if it is not valid, or belongs to another user.
        """
        item_id, rows, _ = self.rows_of(exported)
        with self._engine.reading() as connection:
            ours = _last_version(connection, item_id)
        if ours is None:
            return item_id, rows[-1]["version"]
        return None if ours[1] >= rows[-1]["updated_at"] else (item_id, ours[0] + 1)

    def remove_versions(self, versions: Mapping[str, int], until: float, *, preview: bool = False) -> list[str]:
        """Remove these versions where they are the last of their item; returns the ids of those items.

        One that was written after `until` stays. The version before becomes the current one again.
        """
        removed = []
        for item_id, version in versions.items():
            with self._engine.reading() if preview else self._engine.writing() as connection:
                if not preview:
                    lock_item(self._engine, connection, item_id)
                last = _last_version(connection, item_id)
                if last is None or last[0] != version or last[1] > until:
                    continue
                removed.append(item_id)
                if not preview:
                    _remove_version(connection, item_id, version)
        return removed

    def _export(self, connection: Connection, item_id: str) -> dict[str, Any] | None:
        found = readable_rows(connection, f"{_SELECT} WHERE items.item_id = ? ORDER BY items.version", (item_id,))
        rows = [ItemRow(*row) for row in found]
        if not rows or (rows[-1].expires_at is not None and rows[-1].expires_at <= time.time()):
            return None
        first = rows[0]
        return {
            ITEM: {
                "user_id": first.user_id,
                "namespace": list(decode_namespace(first.namespace)),
                "key": first.key,
                "versions": [_export_version(row) for row in rows],
            }
        }

    def rows_of(self, exported: Any) -> tuple[str, list[dict[str, Any]], int]:
        """The id of an exported item, its versions as rows, and how many secrets were redacted in them.

        Raises SessionError if it is not valid, or belongs to another user.
        """
        item, versions = _check_item(exported)
        user = item.get("user_id")
        require_storable("user_id", user)
        if not self._scope.all:
            if user not in (None, self._scope.user):
                raise SessionError(f"The item {str(item['key'])[:60]!r} belongs to another user.")
            user = self._scope.user
        namespace = encode_namespace(check_namespace(item["namespace"]))
        key = check_key(item["key"])
        rows, secrets = [], 0
        for version in versions:
            row, count = self._row(user, namespace, key, version)
            rows.append(row)
            secrets += count
        return identify(user, namespace, key), rows, secrets

    def _import(self, exported: Any, report: ItemImportReport) -> None:
        item_id, rows, secrets = self.rows_of(exported)
        with self._engine.writing() as connection:
            lock_item(self._engine, connection, item_id)
            ours = _last_version(connection, item_id)
            if ours is not None and ours[1] >= rows[-1]["updated_at"]:
                report.skipped += 1
                return
            if ours is not None:
                connection.execute("UPDATE memory_items SET current = 0 WHERE item_id = ?", (item_id,))
                note_item_change(connection, item_id)
                rows = [rows[-1] | {"version": ours[0] + 1}]
            _add_versions(connection, item_id, rows)
            count_redactions(connection, secrets)
        if ours is None:
            report.imported += 1
        else:
            report.updated += 1

    def _row(self, user: str | None, namespace: str, key: str, version: Any) -> tuple[dict[str, Any], int]:
        if not isinstance(version, Mapping) or version.get("event") not in _EVENTS:
            raise SessionError(f"A version of an item is an object with an event, one of {', '.join(_EVENTS)}.")
        deleted = version["event"] == "delete"
        value, secrets = self._redact(version.get("value"))
        ttl, expires = check_ttl(version.get("ttl")), version.get("expires_at")
        return {
            "user_id": user,
            "namespace": namespace,
            "key": key,
            "value": None if deleted else dump_json(value),
            "indexed": encode_paths(version.get("indexed")),
            "version": encode_number("version", version.get("version")),
            "event": version["event"],
            "created_at": seconds(version.get("created_at")),
            "updated_at": seconds(version.get("updated_at")),
            "ttl": ttl,
            "expires_at": None if expires is None else seconds(expires),
        }, secrets


def _last_version(connection: Connection, item_id: str) -> tuple[int, float] | None:
    """The number of the last version of an item, and when it was written."""
    found: tuple[int, float] | None = connection.execute(
        "SELECT version, updated_at FROM memory_items WHERE item_id = ? ORDER BY version DESC LIMIT 1", (item_id,)
    ).fetchone()
    return found


def _remove_version(connection: Connection, item_id: str, version: int) -> None:
    connection.execute("DELETE FROM memory_items WHERE item_id = ? AND version = ?", (item_id, version))
    connection.execute(
        "UPDATE memory_items SET current = 1 WHERE item_id = ? AND value IS NOT NULL"
        " AND version = (SELECT max(version) FROM memory_items WHERE item_id = ?)",
        (item_id, item_id),
    )
    note_item_change(connection, item_id)


def _export_version(row: ItemRow) -> dict[str, Any]:
    version = row.as_version()
    found: dict[str, Any] = {
        "version": version.version,
        "event": version.event,
        "created_at": version.created_at,
        "updated_at": version.updated_at,
    }
    if row.value is not None:
        found["value"] = version.value
    for name, value in (("ttl", row.ttl), ("expires_at", row.expires_at)):
        if value is not None:
            found[name] = value
    return found if row.indexed is None else found | {"indexed": decode_json(row.indexed)}


def _check_item(exported: Any) -> tuple[Mapping[str, Any], list[Any]]:
    item = exported.get(ITEM) if isinstance(exported, Mapping) else None
    if not isinstance(item, Mapping) or not {"namespace", "key", "versions"} <= set(item):
        raise SessionError("An exported item is an object with namespace, key and versions.")
    versions = item["versions"]
    if not isinstance(versions, list) or not versions:
        raise SessionError("versions must be a list with at least one version.")
    numbers = [version.get("version") if isinstance(version, Mapping) else None for version in versions]
    known = [number for number in numbers if isinstance(number, int)]
    if known != numbers or known != sorted(set(known)):
        raise SessionError("The versions of an item must be numbered upwards.")
    return item, versions


def _add_versions(connection: Connection, item_id: str, versions: Sequence[Mapping[str, Any]]) -> None:
    """Insert versions of an item; the last one is the item, unless it says that the item was deleted."""
    for version in versions:
        current = int(version is versions[-1] and version["value"] is not None)
        row = {"item_id": item_id, **version, "current": current, "checksum": checksum_of(version)}
        connection.execute(
            f"INSERT INTO memory_items ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
        )


_NAMES = ("user_id", "namespace", "key", "value", "indexed", "version", "event", "created_at", "updated_at", "ttl",
          "expires_at")  # fmt: skip

Row = dict[str, Any]


class SyncedItems(StorePart):
    _scoped_table = "items"

    def __init__(self, transfer: ItemTransfer, on_change: Callable[[], object] | None) -> None:
        super().__init__(*transfer.common)
        self._transfer = transfer
        self._on_change = on_change

    def note_changes(self, run: int) -> None:
        """Give a run to the items that were added, changed or removed since the one before."""
        with self._engine.writing() as connection:
            connection.execute(
                "INSERT INTO item_versions (item_id, written_at, run) SELECT item_id, max(updated_at), ?"
                f" FROM memory_items AS items WHERE {self._in_scope} AND NOT EXISTS"
                " (SELECT 1 FROM item_versions v WHERE v.item_id = items.item_id AND v.changed = 0) GROUP BY item_id"
                " ON CONFLICT (item_id) DO UPDATE SET written_at = excluded.written_at, gone = 0, changed = 0,"
                " run = excluded.run, machine = ''",
                (run, *self._scope.values),
            )
            connection.execute(
                "UPDATE item_versions SET gone = 1, changed = 0, run = ?, machine = '' WHERE changed = 1"
                " AND NOT EXISTS (SELECT 1 FROM memory_items WHERE memory_items.item_id = item_versions.item_id)",
                (run,),
            )

    def has_forgotten(self) -> bool:
        """Whether one of the items that changed since the last run lacks a text that was sent."""
        found = self._fetch_one(
            "SELECT 1 FROM item_versions v JOIN memory_items i ON i.item_id = v.item_id"
            " WHERE v.changed = 1 AND v.gone = 0 AND i.value LIKE ? LIMIT 1",
            (f"%{MARK}%",),
        )
        return found is not None

    def unsent(self, run: int, is_sent_here: Callable[[str], bool]) -> tuple[list[str], dict[str, float]]:
        """The items that changed after a run, and those that were removed, with the times of their last writes.

        `is_sent_here` says of a machine, empty for this one, whether this one sends what came from it.
        """
        rows = self._fetch_all(
            "SELECT item_id, gone, written_at, machine FROM item_versions WHERE run > ? ORDER BY rowid", (run,)
        )
        unsent = [row for row in rows if is_sent_here(row[3])]
        return [row[0] for row in unsent if not row[1]], {row[0]: row[2] for row in unsent if row[1]}

    def merge_item(self, item: Mapping[str, Any], run: int, machine: str) -> tuple[bool, bool]:
        """Merge an exported item into ours: whether it changed, and whether something was forgotten by that.

        Raises SessionError if the item is not valid.
        """
        item_id, theirs, secrets = self._transfer.rows_of({ITEM: item})
        with self._engine.writing() as connection:
            lock_item(self._engine, connection, item_id)
            ours = _read(connection, item_id)
            merged = _merge(ours, theirs)
            if _compared(merged) == _compared(ours) or _was_removed(connection, item_id, theirs[-1]["updated_at"]):
                return False, False
            connection.execute("DELETE FROM memory_items WHERE item_id = ?", (item_id,))
            last = max(len(merged), *(row["version"] for row in (*ours, *theirs)))
            first = last - len(merged) + 1
            numbered = [row | {"version": number} for number, row in enumerate(merged, start=first)]
            _add_versions(connection, item_id, numbered)
            note_item_change(connection, item_id)
            count_redactions(connection, secrets)
            # A history that results from both must be sent, too.
            source = machine if _compared(merged) == _compared(theirs) else ""
            _put_version(connection, item_id, merged[-1]["updated_at"], 0, run, source)
        if self._on_change is not None:
            self._on_change()
        known = _compared(ours)
        forgotten = any(_is_marked(row) and _identity(row) not in known for row in merged) and bool(ours)
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

    def remove_item(self, item_id: str, last_write: float, run: int, machine: str) -> bool:
        """Delete an item that another machine has removed, unless it was written since; whether there was one."""
        item_id, machine = self._stored_names([item_id, machine])
        with self._engine.writing() as connection:
            (written,) = connection.execute(
                f"SELECT max(updated_at) FROM memory_items AS items WHERE item_id = ? AND {self._in_scope}",
                (item_id, *self._scope.values),
            ).fetchone()
            if written is not None and written > last_write:
                # The other machines must get it again.
                _put_version(connection, item_id, written, 0, run, "")
                return False
            remove_item(connection, item_id)
            _put_version(connection, item_id, last_write, 1, run, machine)
        return written is not None


def _was_removed(connection: Connection, item_id: str, written_at: float) -> bool:
    """Whether an item was removed as a whole after a version of it was written."""
    row = connection.execute(
        "SELECT 1 FROM item_versions WHERE item_id = ? AND gone = 1 AND written_at >= ?", (item_id, written_at)
    ).fetchone()
    return row is not None


def _put_version(connection: Connection, item_id: str, written_at: float, gone: int, run: int, machine: str) -> None:
    connection.execute(
        "INSERT INTO item_versions (item_id, written_at, gone, run, machine) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (item_id) DO UPDATE SET written_at = excluded.written_at, gone = excluded.gone, changed = 0,"
        " run = excluded.run, machine = excluded.machine",
        (item_id, written_at, gone, run, machine),
    )


def _read(connection: Connection, item_id: str) -> list[Row]:
    rows = connection.execute(
        f"SELECT {', '.join(_NAMES)} FROM memory_items WHERE item_id = ? ORDER BY version", (item_id,)
    )
    return [dict(zip(_NAMES, row, strict=True)) for row in rows]


def _merge(ours: list[Row], theirs: list[Row]) -> list[Row]:
    """The versions of both in the order of their times; of a forgotten version and its original only the first."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in (*ours, *theirs):
        found.setdefault(_identity(row), row)
    marked = {(row["updated_at"], row["event"]) for row in found.values() if _is_marked(row)}
    kept = [row for row in found.values() if _is_marked(row) or (row["updated_at"], row["event"]) not in marked]
    return sorted(kept, key=lambda row: (row["updated_at"], row["event"], row["value"] or ""))[-MAX_VERSIONS:]


def _identity(row: Row) -> tuple[Any, ...]:
    return row["updated_at"], row["event"], row["value"]


def _compared(rows: list[Row]) -> list[tuple[Any, ...]]:
    """What machines must agree on: all versions, but for their numbers."""
    return [_identity(row) for row in rows]


def _is_marked(row: Row) -> bool:
    return MARK in (row["value"] or "")
