"""Finds a text in the checkpoints of a user and overwrites it.

A checkpoint is opaque, so its bytes are searched. Asterisks take the place of the text and keep its length, which
leaves a serialized value valid. A serializer that encrypts or compresses hides the text; then only the thread or the
user can be deleted. A thread whose name has the text is deleted as a whole.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from memoranda.memory.checkpoints.schema import CHECKPOINTS, SEALED, TABLES, VALUES, WRITES, Serialized, checksum
from memoranda.memory.checkpoints.store import CheckpointStore, lock_thread
from memoranda.memory.checkpoints.threads import delete_threads
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine, paged_rows
from memoranda.support.text_matcher import TextMatcher, byte_pattern

_PAGE = 100
_OPAQUE = ((CHECKPOINTS, "state"), (CHECKPOINTS, "metadata"), (VALUES, "value"), (WRITES, "value"))


class ThreadPassages(NamedTuple):
    """A thread that has a text: how often, and whether its name has it."""

    thread_id: str
    matches: int
    named: bool


class CheckpointPassages:
    """The texts in the checkpoints of one user."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    def find(self, matcher: TextMatcher) -> list[ThreadPassages]:
        """Every thread that has the text."""
        if not self._store.exists():
            return []
        engine, pattern = self._store.engine, _pattern_of(matcher)
        found: dict[str, int] = {}
        for table, column in _OPAQUE:
            statement = f"SELECT id, thread_id, {column} FROM {table.name} WHERE user_id = ? AND id > ?"
            for _, thread_id, value in paged_rows(engine, statement, (self._store.user,), _PAGE):
                if count := len(pattern.findall(bytes(value).lower())):
                    found[thread_id] = found.get(thread_id, 0) + count
        named = {each for each in self._threads(engine) if matcher.found_in(each)}
        return [ThreadPassages(each, found.get(each, 1), each in named) for each in sorted({*found, *named})]

    def replace(self, matcher: TextMatcher) -> int:
        """Overwrite the text, and delete threads that are named by it; returns how many threads were changed."""
        passages = self.find(matcher)
        if not passages:
            return 0
        engine, pattern = self._store.engine, _pattern_of(matcher)
        delete_threads(self._store, [each.thread_id for each in passages if each.named])
        for each in passages:
            if not each.named:
                with engine.writing() as connection:
                    lock_thread(engine, connection, self._store.user, each.thread_id)
                    self._overwrite(connection, each.thread_id, pattern)
        engine.shrink_log()
        return len(passages)

    def _threads(self, engine: Engine) -> list[str]:
        with engine.reading() as connection:
            rows = [
                thread_id
                for table in TABLES
                for (thread_id,) in connection.execute(
                    f"SELECT DISTINCT thread_id FROM {table.name} WHERE user_id = ?", (self._store.user,)
                )
            ]
        return sorted(set(rows))

    def _overwrite(self, connection: Connection, thread_id: str, pattern: re.Pattern[bytes]) -> None:
        owner = (self._store.user, thread_id)
        overwritten: set[tuple[str, int]] = set()
        for table, column in _OPAQUE:
            rows = connection.execute(
                f"SELECT id, {column} FROM {table.name} WHERE user_id = ? AND thread_id = ?", owner
            ).fetchall()
            for number, value in rows:
                changed = _overwrite_in(bytes(value), pattern)
                if changed != value:
                    connection.execute(f"UPDATE {table.name} SET {column} = ? WHERE id = ?", (changed, number))
                    overwritten.add((table.name, number))
        overwritten |= {(CHECKPOINTS.name, number) for number in self._rename_values(connection, owner)}
        _seal(connection, overwritten)

    def _rename_values(self, connection: Connection, owner: tuple[str, str]) -> list[int]:
        """Name overwritten values by their new content: a program that stores the old one again must not get these.

        Returns the rows of checkpoints that were changed.
        """
        names: dict[str, str] = {}
        rows: Any = connection.execute(
            "SELECT id, value_id, kind, value FROM checkpoint_values WHERE user_id = ? AND thread_id = ? ORDER BY id",
            owner,
        ).fetchall()
        known = {value_id for _, value_id, _, _ in rows}
        for number, value_id, kind, value in rows:
            name = Serialized(kind, bytes(value)).value_id
            if name == value_id:
                continue
            names[value_id] = name
            if name in known:
                connection.execute("DELETE FROM checkpoint_values WHERE id = ?", (number,))
            else:
                connection.execute("UPDATE checkpoint_values SET value_id = ? WHERE id = ?", (name, number))
                known.add(name)
        checkpoints = connection.execute(
            "SELECT id, channels FROM checkpoints WHERE user_id = ? AND thread_id = ?", owner
        ).fetchall()
        changed = []
        for number, channels in checkpoints:
            found = json.loads(channels)
            renamed = {channel: names.get(value_id, value_id) for channel, value_id in found.items()}
            if renamed != found:
                connection.execute("UPDATE checkpoints SET channels = ? WHERE id = ?", (json.dumps(renamed), number))
                changed.append(number)
        return changed


def _pattern_of(matcher: TextMatcher) -> re.Pattern[bytes]:
    return byte_pattern(matcher.texts, whole_words=matcher.whole_words)


def _seal(connection: Connection, rows: Iterable[tuple[str, int]]) -> None:
    """Store the checksums of rows that were changed here; values have none."""
    for table, number in rows:
        if columns := SEALED.get(table):
            sealed = connection.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE id = ?", (number,)).fetchone()
            connection.execute(f"UPDATE {table} SET checksum = ? WHERE id = ?", (checksum(tuple(sealed)), number))


def _overwrite_in(value: bytes, pattern: re.Pattern[bytes]) -> bytes:
    """The value with the text overwritten; the pattern finds it in lower case, which has the same length."""
    changed = bytearray(value)
    for found in pattern.finditer(value.lower()):
        changed[found.start() : found.end()] = b"*" * len(found[0])
    return bytes(changed)
