"""Items: JSON values under a namespace and a key, for programs that keep facts of their own beside conversations.

Every write adds a version, so that an item has a history and a write can be undone. An item that expires disappears
from every call at once, and from the file when `remove_expired` runs. Items belong to the user of the scope. Filters on
the fields of a value have the operators of LangGraph's stores.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.errors import ItemConflictError, SessionError
from memoranda.memory.record.message_rows import decode_json, dump_json, require_storable, signed_crc32
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine, readable_rows
from memoranda.support.lazy_dataclass import dataclass
from memoranda.types import DeleteItem, Item, ItemVersion, PutItem

if TYPE_CHECKING:
    # A part that only reads, for example in a hook, need not load the scanner.
    from memoranda.safety.redaction import Redactor

MAX_KEY_CHARS = 1_000
MAX_LABELS = 20
COLUMNS = ("id", "user_id", "namespace", "key", "value", "indexed", "version", "event",
           "created_at", "updated_at", "ttl", "expires_at", "checksum")  # fmt: skip
# Not `expires_at`, which a read may change.
_COVERED = ("user_id", "namespace", "key", "value", "indexed", "version", "event", "created_at", "updated_at", "ttl")
_MAX_DEPTH = 50

Namespace = tuple[str, ...]


class ItemRow(NamedTuple):
    """A row of `items` with the columns in COLUMNS."""

    id: int
    user_id: str | None
    namespace: str
    key: str
    value: str | None
    indexed: str | None
    version: int
    event: str
    created_at: float
    updated_at: float
    ttl: float | None
    expires_at: float | None
    checksum: int | None

    @property
    def damaged(self) -> bool:
        """Whether the row does not match its checksum."""
        return self.checksum is not None and checksum_of(self._asdict()) != self.checksum

    def as_item(self) -> Item:
        return Item(
            decode_namespace(self.namespace), self.key, decode_json(self.value or "null"), self.version,
            self.created_at, self.updated_at, self.expires_at, damaged=self.damaged,
        )  # fmt: skip

    def as_version(self) -> ItemVersion:
        value = None if self.value is None else decode_json(self.value)
        return ItemVersion(self.version, self.event, value, self.created_at, self.updated_at)


def check_namespace(namespace: Sequence[str]) -> Namespace:
    """The namespace as a tuple; raises SessionError unless it has 1 to 20 labels that are text and not empty."""
    labels = check_labels("A namespace", namespace)
    if not labels:
        raise SessionError("A namespace needs at least one label, such as ('notes',).")
    return labels


def check_labels(name: str, labels: Sequence[str]) -> Namespace:
    """The labels as a tuple; raises SessionError unless all of them are text and not empty."""
    # A string is a sequence, too, but of letters.
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise SessionError(f"{name} is a tuple of labels, not {type(labels).__name__}.")
    if len(labels) > MAX_LABELS:
        raise SessionError(f"{name} has {len(labels)} labels; {MAX_LABELS} are allowed.")
    for label in labels:
        if not isinstance(label, str) or not label:
            raise SessionError(f"{name} consists of texts that are not empty, not of {str(label)[:60]!r}.")
        _check_length("A label", label)
    return tuple(labels)


def check_key(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise SessionError(f"The key of an item must be text that is not empty, not {str(key)[:60]!r}.")
    _check_length("A key", key)
    require_storable("key", key)
    return key


def _check_length(name: str, text: str) -> None:
    if len(text) > MAX_KEY_CHARS:
        raise SessionError(f"{name} has {len(text):,} characters; {MAX_KEY_CHARS:,} are allowed: {text[:60]!r}…")


def check_ttl(ttl: Any) -> float | None:
    """The time to live in seconds; raises SessionError unless it is a number above 0, or None."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl < 1e12:
        raise SessionError(f"ttl must be a number of seconds above 0, not {str(ttl)[:60]}.")
    return float(ttl)


def encode_namespace(labels: Sequence[str]) -> str:
    """The labels as JSON in ASCII, which every database stores unchanged."""
    return json.dumps(list(labels), separators=(",", ":"))


def decode_namespace(stored: str) -> Namespace:
    labels = decode_json(stored)
    return tuple(map(str, labels)) if isinstance(labels, list) else (stored,)


def encode_paths(index: bool | Sequence[str] | None) -> str | None:
    """The paths that are searchable: None or True means all texts, False or an empty list means none."""
    if index is None or index is True:
        return None
    paths = [] if index is False else index
    if isinstance(paths, str) or not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
        raise SessionError("index must be true, false or a list of paths such as 'text' or 'notes[*].title'.")
    return dump_json(list(paths))


def identify(user_id: str | None, namespace: str, key: str) -> str:
    """The id that all versions of an item share."""
    return sha256(dump_json([user_id, namespace, key]).encode()).hexdigest()[:32]


def checksum_of(row: Mapping[str, Any]) -> int:
    covered = [value.hex() if isinstance(value := row.get(name), float) else value for name in _COVERED]
    text = "\0".join("" if value is None else str(value) for value in covered)
    return signed_crc32(text.encode("utf-8", "surrogatepass"))


def searchable_text(key: str, value: Any, indexed: str | None) -> str:
    """The text by which an item is found: its key, and the names and texts of its value; or what its paths name."""
    if indexed is None:
        return "\n".join([key, *_texts(value, named=True)])
    paths = decode_json(indexed)
    found = [each for path in (paths if isinstance(paths, list) else ()) for each in _at_path(value, str(path))]
    return "\n".join(text for each in found for text in _texts(each))


def _texts(value: Any, depth: int = 0, *, named: bool = False) -> list[str]:
    """Every text and number in a value; with `named`, the names of its fields as well."""
    if depth > _MAX_DEPTH or value is None or isinstance(value, bool):
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        lines = []
        for name, field in value.items():
            texts = _texts(field, depth + 1, named=named)
            lines += [f"{name}: {texts[0]}", *texts[1:]] if named and texts else texts
        return lines
    if isinstance(value, list):
        return [text for each in value for text in _texts(each, depth + 1, named=named)]
    return [str(value)]


def _at_path(value: Any, path: str) -> list[Any]:
    """The values at a path: names separated by dots, `[2]` or `[-1]` for one element of a list, `[*]` for all."""
    found = [value]
    steps = path.replace("[", ".[").split(".") if path not in ("", "$") else []
    for step in filter(None, steps):
        if step == "[*]":
            found = [each for one in found if isinstance(one, list) for each in one]
        elif step.startswith("[") and step.endswith("]"):
            found = [one[number] for one in found if isinstance(one, list) for number in _number(step, len(one))]
        else:
            found = [one[step] for one in found if isinstance(one, dict) and step in one]
    return found


def _number(step: str, length: int) -> list[int]:
    try:
        number = int(step[1:-1])
    except ValueError:
        return []
    return [number] if -length <= number < length else []


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda found, wanted: bool(found == wanted),
    "$ne": lambda found, wanted: bool(found != wanted),
    "$gt": lambda found, wanted: _compare(found, wanted, lambda one, other: one > other),
    "$gte": lambda found, wanted: _compare(found, wanted, lambda one, other: one >= other),
    "$lt": lambda found, wanted: _compare(found, wanted, lambda one, other: one < other),
    "$lte": lambda found, wanted: _compare(found, wanted, lambda one, other: one <= other),
}
_MAX_FILTER_DEPTH = 20


def check_filter(filters: Any, depth: int = 0) -> Mapping[str, Any]:
    """The filter itself; raises SessionError if it is not an object or has an unknown operator."""
    if not isinstance(filters, Mapping) or depth > _MAX_FILTER_DEPTH:
        raise SessionError("filter must be an object such as {'kind': 'note', 'year': {'$gte': 2020}}.")
    for name, wanted in filters.items():
        if isinstance(name, str) and name.startswith("$") and (depth == 0 or name not in _OPERATORS):
            raise SessionError(f"filter has no operator {name[:60]!r}; there are {', '.join(_OPERATORS)}.")
        if isinstance(wanted, Mapping):
            check_filter(wanted, depth + 1)
    return filters


def passes(value: Any, filters: Mapping[str, Any]) -> bool:
    """Whether a value has every field as the filter says; a filter within a field applies to the fields in it."""
    if not isinstance(value, Mapping):
        return not filters
    return all(_matches(value.get(name), wanted) for name, wanted in filters.items())


def _matches(found: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return bool(found == wanted)
    operators = [name for name in wanted if isinstance(name, str) and name.startswith("$")]
    if operators:
        return all(_OPERATORS[name](found, wanted[name]) for name in operators)
    return isinstance(found, Mapping) and passes(found, wanted)


def _compare(found: Any, wanted: Any, holds: Callable[[Any, Any], bool]) -> bool:
    """Compare numbers with numbers and texts with texts; nothing else has an order."""
    both = (found, wanted)
    if all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in both):
        return holds(found, wanted)
    return all(isinstance(one, str) for one in both) and holds(found, wanted)


_PAGE = 500
# A read extends the life of an item only if that gains at least this share of it, so that few reads write.
_REFRESHED_SHARE = 0.02
_SELECT = f"SELECT {', '.join(f'items.{name}' for name in COLUMNS)} FROM memory_items AS items"
_LIVE = "items.current = 1 AND (items.expires_at IS NULL OR items.expires_at > ?)"


class ItemReads(StorePart):
    """Reads of the items in one scope. An item that has expired is in none of them."""

    _scoped_table = "items"

    def get(self, namespace: Sequence[str], key: str, *, refresh: bool = False) -> Item | None:
        """An item, or None if there is none or it has expired; `refresh` starts its time to live again."""
        rows = self._select("items.item_id = ?", (self._item_id(check_namespace(namespace), check_key(key)),))
        if refresh:
            rows = self.refresh(rows)
        return rows[0].as_item() if rows else None

    def history(self, namespace: Sequence[str], key: str) -> list[ItemVersion]:
        """The versions of an item, oldest first, with its deletions; empty if it never existed or has expired.

        The last 100 versions are kept.
        """
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
        statement = (
            f"SELECT DISTINCT items.namespace FROM memory_items AS items"
            f" WHERE {self._in_scope} AND {which} AND {condition}"
        )
        (rows,) = self._read_at_once((statement, (*self._scope.values, *values, *labels)))
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


class Items(ItemReads):
    """The items of one user. `on_change` is called after every write, when its transaction is durable."""

    def __init__(
        self, engine: Engine, scope: Scope, redactor: "Redactor | None", on_change: Callable[[], object] | None = None
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
        The item expires `ttl` seconds later. `index` names what a search finds it by: paths in the value such as
        `"text"` or `"notes[*].title"`, or False for nothing; by default every text, the names of fields, and the key.
        """
        (item,) = self.write([PutItem(namespace, key, value, version, ttl, index)])
        assert isinstance(item, Item)
        return item

    def delete(self, namespace: Sequence[str], key: str, *, version: int | None = None) -> bool:
        """Delete an item; False if there is none. Its history stays, so that `restore` can undo this."""
        return self.write([DeleteItem(namespace, key, version)]) == [True]

    def write(self, changes: Sequence[PutItem | DeleteItem]) -> list[Item | bool]:
        """Carry out several writes in their order in one transaction: all of them or none.

        The answers are those of `put` and `delete`.
        """
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
