"""Appends messages with one statement, for engines on which every statement is a round trip.

The statement locks the session, counts the messages, inserts them and returns their ids. Every append has a random
number: if the connection is lost, the statement is executed again, and the index over these numbers refuses the rows if
the first attempt was committed after all.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from memoranda.memory.record.checksums import CHECKSUM
from memoranda.memory.record.message_rows import WRITTEN, EncodedMessage, checksum_of_row
from memoranda.memory.record.schema import MESSAGES, hour_of
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.schema import Column

_COPY_OF, _IS_SUMMARY, _TIMESTAMP = map(WRITTEN.index, ("copy_of", "is_summary", "timestamp"))
_ARRAYS = {"text": "text[]", "integer": "bigint[]", "real": "double precision[]"}
_COLUMNS: dict[str, Column] = {column.name: column for column in MESSAGES.columns}
# Longer appends are imports, which a round trip more does not slow down.
_MAX_MESSAGES = 1000
_LATER = "own_message_count = 0 OR last_active < ?"


class SingleAppend:
    """One append to one session."""

    def __init__(self, engine: Engine, in_scope: str, scope_values: Sequence[Any], session_id: str) -> None:
        self._engine = engine
        self._in_scope = in_scope
        self._scope_values = scope_values
        self._session_id = session_id
        self._first = int.from_bytes(os.urandom(8)) >> 2
        self._count = 0

    def execute(self, messages: Sequence[EncodedMessage], *, fail_if_continued: bool) -> list[int]:
        """Append the rows and return their ids; [] if that needs more than one statement, and nothing was stored.

        The reason may be an external id that the session already has, a copy of another message, or an unknown session.
        """
        rows = [message.row for message in messages]
        secrets = sum([message.secrets for message in messages])
        if not 0 < len(rows) <= _MAX_MESSAGES or any([row[_COPY_OF] is not None for row in rows]):
            return []
        self._count = len(rows)
        filled = tuple([any([row[index] is not None for row in rows]) for index in range(len(WRITTEN))])
        locked = self._engine.locked_session(self._session_id)
        statement = _statement(filled, locked.text, self._in_scope, len(rows) == 1, fail_if_continued, bool(secrets))
        values = [*_counts(messages), *locked.values, *self._scope_values, *self._inserted(rows, filled)]
        if secrets:
            values += [str(secrets), secrets]
        try:
            return sorted([number for (number,) in self._engine.write_statement(statement, values)])
        except self._engine.dialect.row_refused:
            return []

    def find_stored(self, connection: Connection) -> list[int]:
        """The ids of the rows if an attempt to append them was committed; [] otherwise."""
        found = connection.execute(
            "SELECT id FROM messages WHERE session_id = ? AND append_id >= ? AND append_id < ? ORDER BY append_id",
            (self._session_id, self._first, self._first + self._count),
        )
        return [number for (number,) in found]

    def _inserted(self, rows: Sequence[list[Any]], filled: tuple[bool, ...]) -> list[Any]:
        """The values of the new rows: one for each column, or a list for each column."""
        checksums = [checksum_of_row(self._session_id, row) for row in rows]
        columns = [[row[index] for row in rows] for index in range(len(WRITTEN)) if filled[index]]
        columns = [list(range(self._first, self._first + len(rows))), checksums, *columns]
        return [column[0] for column in columns] if len(rows) == 1 else columns


def _counts(messages: Sequence[EncodedMessage]) -> list[Any]:
    """What the session's counters grow by, and its last activity."""
    said = [message for message in messages if message.row[_IS_SUMMARY] is None]
    latest = max([message.row[_TIMESTAMP] for message in said], default=None)
    hour = None if latest is None else hour_of(latest)
    return [len(messages), len(said), sum([message.tool_calls for message in said]), latest, latest, latest, hour]


@lru_cache(256)
def _statement(
    filled: tuple[bool, ...], locked: str, in_scope: str, is_single: bool, fail_if_continued: bool, has_secrets: bool
) -> str:
    names = ["append_id", CHECKSUM, *(name for name, used in zip(WRITTEN, filled, strict=True) if used)]
    if is_single:
        selected, source = ", ".join("?" * len(names)), ""
    else:
        kinds = ["bigint[]" if name == "append_id" else _ARRAYS[_COLUMNS[name].kind] for name in names]
        selected = ", ".join(f"added.{name}" for name in names)
        source = f", unnest({', '.join(f'?::{kind}' for kind in kinds)}) AS added ({', '.join(names)})"
    continued = " AND successor_id IS NULL" if fail_if_continued else ""
    redacted = (
        ", redacted AS (INSERT INTO state_meta (key, value) SELECT 'redacted_secrets', ? FROM counted"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(state_meta.value AS BIGINT) + ? AS TEXT))"
    )
    return (
        "WITH counted AS (UPDATE sessions SET message_count = message_count + ?,"
        " own_message_count = own_message_count + ?, tool_call_count = tool_call_count + ?,"
        f" last_active = CASE WHEN {_LATER} THEN COALESCE(?, last_active) ELSE last_active END,"
        f" active_hour = CASE WHEN {_LATER} THEN COALESCE(?, active_hour) ELSE active_hour END"
        f" WHERE id = {locked} AND {in_scope}{continued} RETURNING id, user_id),"
        f" stored AS (INSERT INTO messages (id, session_id, user_id, {', '.join(names)})"
        f" SELECT nextval('messages_id_seq'), counted.id, COALESCE(counted.user_id, ''), {selected}"
        f" FROM counted{source} RETURNING id){redacted if has_secrets else ''} SELECT id FROM stored"
    )
