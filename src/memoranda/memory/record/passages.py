"""Finds a text everywhere in the record, and replaces it with a visible mark; the rest of a conversation stays.

A message keeps its id and its id in another program, so that no import restores the text. Ids themselves are not
changed, because other rows and other programs refer to them.

Where only the value of an item has the text, a mark takes its place in every version. An item whose key or namespace
has the text is removed as a whole, with its history: nothing else refers to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memoranda.memory.record.checksums import resealed
from memoranda.memory.record.copies import JOIN_ORIGINAL, SAME
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.items import (
    COLUMNS,
    ItemRow,
    checksum_of,
    decode_namespace,
    lock_item,
    note_item_change,
    remove_item,
)
from memoranda.memory.record.message_rows import decode_content, decode_json, dump_json, encode_content
from memoranda.memory.record.schema import MESSAGES, PROMPT_REFERENCE, SESSIONS
from memoranda.memory.record.sessions import MAX_TITLE_CHARS, Titles, tidy
from memoranda.memory.record.store_part import StorePart
from memoranda.memory.record.system_prompts import select_list, update_columns
from memoranda.storage.connection import Connection
from memoranda.storage.engine import paged_rows, readable_rows
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end
from memoranda.support.text_matcher import TextMatcher

_READ_BATCH = 1_000
_WRITE_BATCH = 100
_MESSAGE_IDS = ("session_id", "tool_call_id", "external_id")
# Importers recognise a session also by its source.
_SESSION_IDS = ("id", "source", "user_id", "parent_session_id", "conversation_id", "successor_id")
# An extra field of a session: columns that an import must not restore.
FORGOTTEN = "forgotten_columns"
_JSON_COLUMNS = frozenset(
    {"tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items", "extra", "model_config"}
)
_MESSAGE_TEXTS = tuple(
    column.name
    for column in MESSAGES.columns
    if column.kind == "text" and column.name not in ("content_format", "role")
)
_READ_COLUMNS = ("id", *_MESSAGE_TEXTS, "is_summary")
_SESSION_TEXTS = tuple(
    column.name for column in SESSIONS.columns if column.kind == "text" and column != PROMPT_REFERENCE
)


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """Where a text is: in a message, or in a column or value that belongs to a session.

    `kind` is message, summary, title, prompt, tasks, notes, identifier, or another column of the session. `open` says
    that the session has not ended, so that a program may have its prompt and context in memory.
    """

    kind: str
    session_id: str
    count: int
    message_id: int | None = None
    open: bool = False


class _Change(NamedTuple):
    """What changes in a row; nothing if only its identifiers have the text."""

    found: FoundPassage
    columns: dict[str, Any]

    @property
    def message_id(self) -> int:
        return self.found.message_id or 0


class Passages(StorePart):
    """Finds and replaces texts in the sessions of one scope."""

    def __init__(self, titles: Titles) -> None:
        super().__init__(*titles.common)
        self._titles = titles

    def find(self, matcher: TextMatcher) -> list[FoundPassage]:
        """Every place of the record that has the text; identifiers too, which `replace` does not change."""
        found = [change.found for change in self._message_changes(matcher)]
        with self._engine.reading() as connection:
            found += [change.found for change in self._session_changes(connection, matcher)]
            found += [passage for passage, _, _ in self._value_changes(connection, matcher)]
        return found

    def replace(self, matcher: TextMatcher) -> int:
        """Replace the text in messages, sessions, tasks and notes; returns how many rows were changed."""
        changed = 0
        ids = [change.message_id for change in self._message_changes(matcher) if change.columns]
        for start in range(0, len(ids), _WRITE_BATCH):
            changed += self._replace_messages(ids[start : start + _WRITE_BATCH], matcher)
        with self._engine.writing() as connection:
            sessions: dict[str, dict[str, Any]] = {}
            for found, columns in self._session_changes(connection, matcher):
                sessions.setdefault(found.session_id, {}).update(columns)
            for session_id, columns in sessions.items():
                if columns:
                    self._write_session(connection, session_id, columns)
                    changed += 1
            for _, key, value in list(self._value_changes(connection, matcher)):
                connection.execute("UPDATE state_meta SET value = ? WHERE key = ?", (value, key))
                changed += 1
        if changed:
            self._engine.shrink_log()
        return changed

    def _message_changes(self, matcher: TextMatcher) -> Iterator[_Change]:
        statement, values = self._select_messages("m.id > ?", ())
        for row in paged_rows(self._engine, statement, values, _READ_BATCH):
            if matcher.may_be_in("\n".join([value for value in row if isinstance(value, str)])):
                change = _message_change(_as_fields(row), matcher)
                if change is not None:
                    yield change

    def _select_messages(self, condition: str, values: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
        # By the ids of messages: through the sessions of a user, every batch would read and sort all of them.
        in_scope = self._scope.condition(self._dialect.unindexed("sessions"))
        statement = (
            f"SELECT {', '.join(f'm.{name}' for name in _READ_COLUMNS)}, CASE WHEN m.content_format = '{SAME}'"
            " THEN original.content_format ELSE m.content_format END,"
            f" sessions.ended_at IS NULL FROM messages m JOIN sessions ON sessions.id = m.session_id {JOIN_ORIGINAL}"
            f" WHERE {in_scope} AND {condition}"
        )
        return statement, (*self._scope.values, *values)

    def _replace_messages(self, ids: Sequence[int], matcher: TextMatcher) -> int:
        selected = self._select_messages(*self._dialect.one_of("m.id", ids))
        first: dict[str, int] = {}
        with self._engine.writing() as connection:
            rows = list(readable_rows(connection, *selected))
            found = (_message_change(_as_fields(row), matcher) for row in rows)
            changes = [change for change in found if change is not None and change.columns]
            with resealed(connection, [change.message_id for change in changes]):
                for change in changes:
                    _write_message(connection, change)
            for change in changes:
                session_id, number = change.found.session_id, change.message_id
                first[session_id] = min(number, first.get(session_id, number))
            for session_id, number in first.items():
                note_change(connection, session_id, number)
        return len(changes)

    def _session_changes(self, connection: Connection, matcher: TextMatcher) -> Iterator[_Change]:
        rows = connection.execute(
            f"SELECT {select_list(_SESSION_TEXTS)}, ended_at IS NULL FROM sessions WHERE {self._in_scope}",
            self._scope.values,
        ).fetchall()
        for *values, is_open in rows:
            row = dict(zip(_SESSION_TEXTS, values, strict=True))
            for name, value in row.items():
                if value is None:
                    continue
                if name in _SESSION_IDS:
                    if name in ("id", "source", "user_id") and matcher.found_in(value):
                        yield _Change(FoundPassage("identifier", row["id"], 1, open=bool(is_open)), {})
                    continue
                stored, count = _replace_stored(name, value, matcher)
                if count:
                    kind = {"system_prompt": "prompt"}.get(name, name)
                    yield _Change(FoundPassage(kind, row["id"], count, open=bool(is_open)), {name: stored})

    def _write_session(self, connection: Connection, session_id: str, columns: dict[str, Any]) -> None:
        if columns.get("title") is not None:
            title = tidy(shorten_end(columns["title"], MAX_TITLE_CHARS)) or "[…]"
            columns = {**columns, "title": self._titles.next_title(connection, title)}
        update_columns(self._engine, connection, session_id, columns)
        (stored,) = connection.execute("SELECT extra FROM sessions WHERE id = ?", (session_id,)).fetchone()
        extra = decode_json(stored) if stored else {}
        if isinstance(extra, dict):
            extra[FORGOTTEN] = sorted({*extra.get(FORGOTTEN, ()), *columns})
            connection.execute("UPDATE sessions SET extra = ? WHERE id = ?", (dump_json(extra), session_id))
        note_change(connection, session_id)

    def _value_changes(self, connection: Connection, matcher: TextMatcher) -> list[tuple[FoundPassage, str, str]]:
        """Tasks and notes of conversations, which are values under a name that ends with the id of a session."""
        rows = connection.execute("SELECT key, value FROM state_meta WHERE value IS NOT NULL").fetchall()
        found = []
        for key, value in rows:
            kind, _, session_id = key.partition(":")
            if not session_id or not isinstance(value, str):
                continue
            stored, count = _replace_stored("extra", value, matcher)
            if count and self._exists(connection, session_id):
                found.append((FoundPassage(_VALUES.get(kind, kind), session_id, count), key, str(stored)))
        return found


_VALUES = {"todos": "tasks", "compression_notes": "notes"}


def _as_fields(row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((*_READ_COLUMNS, "content_format", "open"), row, strict=True))


def _message_change(row: dict[str, Any], matcher: TextMatcher) -> _Change | None:
    """What changes in a message; None if it does not have the text."""
    columns: dict[str, Any] = {}
    total = identifiers = 0
    for name in _MESSAGE_TEXTS:
        value = row[name]
        if value is None:
            continue
        if name in _MESSAGE_IDS:
            identifiers += name != "session_id" and matcher.found_in(value)
            continue
        if name == "content":
            content = decode_content(value, row["content_format"])
            replaced = matcher.replace_value(content)
            stored, count = replaced.value, replaced.count
        else:
            stored, count = _replace_stored(name, value, matcher)
        if count:
            columns[name] = stored
            total += count
    if not total and not identifiers:
        return None
    kind = "identifier" if not total else "summary" if row["is_summary"] else "message"
    return _Change(FoundPassage(kind, row["session_id"], total or identifiers, row["id"], bool(row["open"])), columns)


def _write_message(connection: Connection, change: _Change) -> None:
    columns = dict(change.columns)
    if "content" in columns:
        columns["content"], content_format = encode_content(columns["content"])
        # A copy has the format of its original, which is changed in the same way.
        connection.execute(
            f"UPDATE messages SET content_format = ? WHERE id = ? AND COALESCE(content_format, '') <> '{SAME}'",
            (content_format, change.message_id),
        )
    assignments = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE messages SET {assignments} WHERE id = ?", (*columns.values(), change.message_id))


def _replace_stored(name: str, value: str, matcher: TextMatcher) -> tuple[str, int]:
    """A stored column without the text, and how many times the text was in it."""
    if name in _JSON_COLUMNS:
        # Escapes hide parts of the text.
        if "\\" not in value and not matcher.found_in(value):
            return value, 0
        decoded = decode_json(value)
        replaced = matcher.replace_value(decoded)
        if not replaced.count:
            return value, 0
        # A value that another program wrote may be no JSON, and is returned as it is.
        return (str(replaced.value) if decoded is value else dump_json(replaced.value)), replaced.count
    replaced = matcher.replace(value)
    return str(replaced.value), replaced.count


_PAGE = 500
_SELECT = f"SELECT {', '.join(f'items.{name}' for name in COLUMNS)}, items.item_id FROM memory_items AS items"


@dataclass(frozen=True, slots=True)
class ItemPassage:
    """An item that has a text: how often in all versions, and whether it is removed as a whole.

    It is if its key or namespace has the text, or it is in a namespace of such items.
    """

    item_id: str
    user_id: str | None
    name: str
    count: int
    is_whole: bool


class ItemPassages(StorePart):
    """The texts of the items in one scope, in all versions."""

    _scoped_table = "items"

    def count(self) -> int:
        """How many items there are in the scope, with those of which only the history is left."""
        (count,) = self._fetch_one(
            f"SELECT count(DISTINCT items.item_id) FROM memory_items AS items WHERE {self._in_scope}",
            self._scope.values,
        )
        return int(count)

    def find(self, matcher: TextMatcher, whole: str = "") -> list[ItemPassage]:
        """Every item that has the text, in any version; items of the namespace `whole` are removed as a whole."""
        found: dict[str, ItemPassage] = {}
        for item_id, row in self._rows():
            labels = decode_namespace(row.namespace)
            named = matcher.found_in(row.key) or any(map(matcher.found_in, labels))
            value = row.value or ""
            count = matcher.replace_value(decode_json(value)).count if matcher.may_be_in(value) else 0
            if named or count:
                before = found[item_id].count if item_id in found else 0
                name = "/".join((*labels, row.key))
                is_whole = named or labels[0] == whole
                found[item_id] = ItemPassage(item_id, row.user_id, name, before + max(1, count), is_whole)
        return list(found.values())

    def replace(self, matcher: TextMatcher, whole: str = "") -> int:
        """Replace the text in values and remove items that are named by it; returns how many items were changed."""
        passages = self.find(matcher, whole)
        for passage in passages:
            with self._engine.writing() as connection:
                lock_item(self._engine, connection, passage.item_id)
                if passage.is_whole:
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
                for *values, _ in list(readable_rows(connection, f"{_SELECT} WHERE items.id = ?", (number,))):
                    _seal_item(connection, number, ItemRow(*values)._asdict())

    def _rows(self) -> Iterator[tuple[str, ItemRow]]:
        statement = f"{_SELECT} WHERE {self._in_scope} AND items.id > ?"
        for *values, item_id in paged_rows(self._engine, statement, self._scope.values, _PAGE):
            yield item_id, ItemRow(*values)


def _replace_in_versions(connection: Connection, item_id: str, matcher: TextMatcher) -> None:
    rows = list(readable_rows(connection, f"{_SELECT} WHERE items.item_id = ? AND items.value IS NOT NULL", (item_id,)))
    for *values, _ in rows:
        row = ItemRow(*values)
        replaced = matcher.replace_value(decode_json(row.value or "null"))
        if replaced.count:
            value = dump_json(replaced.value)
            connection.execute("UPDATE memory_items SET value = ? WHERE id = ?", (value, row.id))
            # Damage that was there before stays visible.
            if not row.damaged:
                _seal_item(connection, row.id, row._asdict() | {"value": value})
    note_item_change(connection, item_id)


def _seal_item(connection: Connection, number: int, row: Mapping[str, Any]) -> None:
    connection.execute("UPDATE memory_items SET checksum = ? WHERE id = ?", (checksum_of(row), number))
