"""Appending and reading messages."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from memoranda.db.dialect import RowRefused, add_row, after, next_number
from memoranda.db.position import START, Position
from memoranda.db.sqlite import Connection
from memoranda.errors import ContinuedError, SessionError
from memoranda.sessions.copies import REFERRED_TO, SAME, read_fully, repeating
from memoranda.sessions.lineage import chain_of
from memoranda.sessions.message_rows import WRITTEN, Message, as_chat, decode, decode_json, encode
from memoranda.sessions.schema import hour_of
from memoranda.sessions.store_part import StorePart, count_redactions, unknown

# A message that was deleted has had its id, which is never given again.
_DELETED = "(SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'last_deleted_message')"
_FIELDS = read_fully()
_ROLE = WRITTEN.index("role")
_CONTENT = WRITTEN.index("content")
_EXTERNAL_ID = WRITTEN.index("external_id")
_TOOL_CALLS = WRITTEN.index("tool_calls")
_TIMESTAMP = WRITTEN.index("timestamp")
_COPY_OF = WRITTEN.index("copy_of")
_IS_SUMMARY = WRITTEN.index("is_summary")
_EVERYTHING = 2**62
_AT_ONCE = 500
# Names by which messages are told apart; they are no text, and never redacted.
_NAMES = ("external_id", "platform_message_id", "message_id", "tool_call_id", "role", "timestamp")

SAID = "(active = 1 OR compacted = 1) AND copy_of IS NULL AND is_summary IS NULL"
"""What was said and not taken back, each thing once."""


class EncodedMessage(NamedTuple):
    """A row to be added, how many secrets were taken out of it, and how many tools it calls."""

    row: list[Any]
    secrets: int
    calls: int


class Messages(StorePart):
    """What was said in a session."""

    def append_message(
        self,
        session_id: str,
        role: str,
        content: Any = None,
        **fields: Any,
    ) -> int:
        """Record one message; when this returns its id, it is on the disk.

        `fields` are those of the messages table (tool_name, tool_calls, tool_call_id, token_count, finish_reason,
        reasoning, timestamp, external_id …); others are kept as well. A message whose external_id the session
        already has is not added again, and the id of the first one is returned.
        """
        return self.append_messages(session_id, [{"role": role, "content": content, **fields}])[0]

    def append_messages(
        self, session_id: str, messages: Iterable[Mapping[str, Any]], *, fail_if_continued: bool = False
    ) -> list[int]:
        """Record several messages in one commit: all of them or none.

        With `fail_if_continued` the store records nothing in a session that was compressed and raises ContinuedError,
        which names the continuation.
        """
        rows = self._encode_all(messages)
        ids, added = [], []
        with self._db.writing() as connection:
            if fail_if_continued:
                refuse_continued(connection, session_id)
            for each in rows:
                number, is_new = insert(connection, session_id, each.row)
                ids.append(number)
                if is_new:
                    added.append(each)
            self._count(connection, session_id, added)
            count_redactions(connection, sum([each.secrets for each in added]))
        return ids

    def get_messages(
        self, session_id: str, include_inactive: bool = False, limit: int | None = None, offset: int = 0
    ) -> list[Message]:
        """The messages that are in the session's context, in order, with every column.

        `include_inactive` adds those that compression took out of the context; messages taken back stay out.
        """
        which = "(m.active = 1 OR m.compacted = 1)" if include_inactive else "m.active = 1"
        most = _EVERYTHING if limit is None else limit
        return self._select(f"m.session_id = ? AND {which} ORDER BY m.id LIMIT ? OFFSET ?", (session_id, most, offset))

    def get_messages_as_conversation(self, session_id: str, include_ancestors: bool = False) -> list[Message]:
        """The session as chat APIs take it; with its ancestors, the whole of a compressed conversation."""
        if not include_ancestors:
            return [message for _, message in self.get_numbered_conversation(session_id)]
        with self._db.reading() as connection:
            chain = chain_of(connection, session_id, self._scope)
        # Each session of a chain repeats parts of the one before; the repetitions are left out.
        return [
            as_chat(message)
            for member in (chain[: chain.index(session_id) + 1] if session_id in chain else [session_id])
            for message in self.get_messages(member, include_inactive=True)
            if message["copy_of"] is None and not message["is_summary"]
        ]

    def get_numbered_conversation(self, session_id: str) -> list[tuple[int, Message]]:
        """The session as chat APIs take it, each message with its id."""
        return [(message["id"], as_chat(message)) for message in self.get_messages(session_id)]

    def get_message(self, message_id: int) -> Message | None:
        """One message, unless it was taken back."""
        found = self._select("m.id = ? AND (m.active = 1 OR m.compacted = 1)", (message_id,))
        return found[0] if found else None

    def get_messages_with(self, field: str, start: Position = START, *, first_id: int = 0) -> list[Message]:
        """The messages that have a field which is no column, in order, without copies.

        `start` limits them to those behind a position in the feed, `first_id` to that id and later ones.
        """
        condition, values = after("m.id", start)
        return self._select(
            f"{condition} AND m.id >= ? AND m.extra LIKE ? AND (m.active = 1 OR m.compacted = 1)"
            " AND m.copy_of IS NULL ORDER BY m.id",
            (*values, first_id, f'%"{field}"%'),
        )

    def last_message_id(self) -> int:
        """The highest id that any message of the store has; 0 without messages."""
        with self._db.reading() as connection:
            (number,) = connection.execute("SELECT max(id) FROM messages").fetchone()
        return int(number or 0)

    def get_external_ids(self, session_ids: Sequence[str], external_ids: Sequence[str]) -> dict[str, str]:
        """Which of these external ids the sessions have, each with the session that has it."""
        found: dict[str, str] = {}
        with self._db.reading() as connection:
            for session_id in session_ids:
                for start in range(0, len(external_ids), _AT_ONCE):
                    some = external_ids[start : start + _AT_ONCE]
                    rows = connection.execute(
                        "SELECT m.external_id FROM messages m JOIN sessions ON sessions.id = m.session_id"
                        f" WHERE m.session_id = ? AND m.external_id IN ({', '.join('?' * len(some))}) AND {self._seen}",
                        (session_id, *some, *self._scope.values),
                    )
                    found |= {row[0]: session_id for row in rows}
        return found

    def live_message_ids(self, session_id: str) -> frozenset[int]:
        """The messages that are in the session's context, and those that they repeat word for word."""
        with self._db.reading() as connection:
            # What is repeated in fewer words can still be looked up.
            rows = connection.execute(
                f"SELECT m.id, CASE WHEN m.copy_of IS NULL OR m.content_format = '{SAME}' THEN m.copy_of"
                "  WHEN COALESCE(m.content, '') ="
                "   (SELECT COALESCE(original.content, '') FROM messages original WHERE original.id = m.copy_of)"
                " THEN m.copy_of END FROM messages m JOIN sessions ON sessions.id = m.session_id"
                f" WHERE m.session_id = ? AND m.active = 1 AND {self._seen}",
                (session_id, *self._scope.values),
            )
            return frozenset(number for row in rows for number in row if number is not None)

    def _encode_all(self, messages: Iterable[Mapping[str, Any]]) -> list[EncodedMessage]:
        """Messages as they may be stored."""
        rows = []
        for message in messages:
            if type(message) is not dict and not isinstance(message, Mapping):
                raise SessionError(f"A message must be an object with a role, not {type(message).__name__}.")
            clean, count = self._redact_message(message)
            row = encode(clean)
            calls = 0 if row[_TOOL_CALLS] is None else _number_of_calls(clean["tool_calls"])
            rows.append(EncodedMessage(row, count, calls))
        return rows

    def _redact_message(self, message: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
        clean, count = self._redact(message)
        if not count:
            return message, 0
        names = {key: message[key] for key in _NAMES if key in message}
        clean, count = self._redact({key: value for key, value in message.items() if key not in names})
        return {**clean, **names}, count

    def _select(self, condition: str, values: Sequence[Any]) -> list[Message]:
        with self._db.reading() as connection:
            rows = connection.execute(
                f"SELECT {_FIELDS} FROM messages m JOIN sessions ON sessions.id = m.session_id {REFERRED_TO}"
                f" WHERE {self._seen} AND {condition}",
                (*self._scope.values, *values),
            )
            return [decode(row) for row in rows]

    def _count(self, connection: Connection, session_id: str, added: Sequence[EncodedMessage]) -> None:
        """Add new rows to the session's counters; this is also where another user's session is refused."""
        said = [each for each in added if each.row[_COPY_OF] is None and each.row[_IS_SUMMARY] is None]
        latest = max([each.row[_TIMESTAMP] for each in said], default=None)
        calls = sum([each.calls for each in said])
        hour = None if latest is None else hour_of(latest)
        counted, which = (len(said), calls, latest, latest), (session_id, *self._scope.values)
        within_hour, at_any_time = _counting(self._seen)
        # Mostly the hour stays: then its index is not touched.
        if (
            not connection.execute(within_hour, (*counted, hour, *which)).rowcount
            and not connection.execute(at_any_time, (*counted, latest, hour, *which)).rowcount
        ):
            raise unknown(session_id)
        if len(said) < len(added) and any(each.row[_COPY_OF] is not None for each in added):
            # One that repeats a message that is not there counts after all.
            recount(connection, session_id)


def insert(connection: Connection, session_id: str, row: Sequence[Any]) -> tuple[int, bool]:
    """Add a row; its id, and whether it is new."""
    if row[_COPY_OF] is not None:
        row = repeating(connection, session_id, row)
    try:
        given = [value for value in row if value is not None]
        number = add_row(connection, _insertion(tuple([value is not None for value in row])), (session_id, *given))
    except RowRefused as error:
        raise unknown(session_id) from error
    if number is not None:
        return number, True
    there, said_otherwise = connection.execute(
        "SELECT id, rewound IS NOT NULL AND (role, COALESCE(content, '')) <> (?, ?) FROM messages"
        " WHERE session_id = ? AND external_id = ?",
        (row[_ROLE], row[_CONTENT] or "", session_id, row[_EXTERNAL_ID]),
    ).fetchone()
    if not said_otherwise:
        return int(there), False
    # It was taken back and is said in other words now, as an edited message is: the name is the new one's.
    connection.execute("UPDATE messages SET external_id = NULL WHERE id = ?", (there,))
    return insert(connection, session_id, row)


def refuse_continued(connection: Connection, session_id: str) -> None:
    """Raise where a session was compressed and goes on in another one."""
    row = connection.execute("SELECT successor_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is not None and row[0] is not None:
        raise ContinuedError(session_id, row[0])


@cache
def _counting(seen: str) -> tuple[str, str]:
    """The statements that add to a session's counters: one for what is said within the same hour, and one for all."""
    latest = "{0} = CASE WHEN message_count = 0 OR last_active < ? THEN COALESCE(?, {0}) ELSE {0} END"
    counted = (
        "UPDATE sessions SET message_count = message_count + ?, tool_call_count = tool_call_count + ?,"
        f" {latest.format('last_active')}"
    )
    return (
        f"{counted} WHERE active_hour = ? AND id = ? AND {seen}",
        f"{counted}, {latest.format('active_hour')} WHERE id = ? AND {seen}",
    )


@cache
def _insertion(given: tuple[bool, ...]) -> str:
    """The statement that adds a row of which these values are given: each null that is handed over costs as much."""
    names = ["session_id", *(name for name, is_given in zip(WRITTEN, given, strict=True) if is_given)]
    return (
        f"INSERT INTO messages (id, {', '.join(names)})"
        f" VALUES ({next_number('messages', 'id', _DELETED)}, {', '.join('?' * len(names))})"
        " ON CONFLICT (session_id, external_id) WHERE external_id IS NOT NULL DO NOTHING"
    )


def delete_of(connection: Connection, session_id: str) -> int:
    """Delete every message of a session; how many there were."""
    connection.execute(
        "INSERT INTO state_meta (key, value) SELECT 'last_deleted_message', CAST(max(id) AS TEXT) FROM messages"
        " WHERE id IS NOT NULL HAVING max(id) IS NOT NULL ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        " WHERE CAST(state_meta.value AS INTEGER) < CAST(excluded.value AS INTEGER)"
    )
    return connection.execute("DELETE FROM messages WHERE session_id = ?", (session_id,)).rowcount


def recount(connection: Connection, session_id: str) -> None:
    """Set a session's counters and its last activity from its messages."""
    found = connection.execute(
        "SELECT count(m.id), COALESCE(max(m.timestamp), sessions.started_at) FROM sessions"
        f" LEFT JOIN messages m ON m.session_id = sessions.id AND {SAID} WHERE sessions.id = ? GROUP BY sessions.id",
        (session_id,),
    ).fetchone()
    if found is None:
        return
    count, latest = found
    rows = connection.execute(
        f"SELECT tool_calls FROM messages WHERE session_id = ? AND tool_calls IS NOT NULL AND {SAID}", (session_id,)
    )
    calls = sum(_number_of_calls(stored) for (stored,) in rows)
    connection.execute(
        "UPDATE sessions SET message_count = ?, tool_call_count = ?, last_active = ?, active_hour = ? WHERE id = ?",
        (count, calls, latest, hour_of(latest), session_id),
    )


def _number_of_calls(calls: Any) -> int:
    """How many calls a message makes, by its field or by the JSON of it."""
    calls = decode_json(calls) if isinstance(calls, str) else calls
    return len(calls) if isinstance(calls, (list, tuple)) else 1
