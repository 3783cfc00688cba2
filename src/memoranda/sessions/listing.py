"""Lists of sessions for people and models: one line per conversation, newest first."""

from collections.abc import Collection
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.sessions.lifecycle import COLUMNS, Row, decode_session
from memoranda.sessions.part import Part
from memoranda.sessions.records import decode_content, text_of

_PREVIEW = 60


class Listing(Part):
    """What there is, without reading it all: every list costs as much as it returns."""

    def list_sessions_rich(
        self,
        source: str | None = None,
        exclude_sources: Collection[str] = (),
        limit: int = 20,
        offset: int = 0,
        *,
        include_children: bool = False,
        include_archived: bool = False,
        min_message_count: int = 0,
        order_by_last_active: bool = False,
    ) -> list[Row]:
        """Conversations, newest first, each with `preview` and `last_active`.

        A conversation that was compressed is one row: the session in which it goes on, with the start of its first
        one and `_lineage_root_id`. Delegated work is left out unless `include_children`.
        """
        conditions = [self._seen, "sessions.message_count >= ?"]
        values: list[Any] = [*self._scope.values, min_message_count]
        if source is not None:
            conditions.append("sessions.source = ?")
            values.append(source)
        if exclude_sources:
            conditions.append(f"sessions.source NOT IN ({', '.join('?' * len(exclude_sources))})")
            values += exclude_sources
        if not include_archived:
            conditions.append("sessions.archived = 0")
        if not include_children:
            conditions.append("(sessions.relation IS NULL OR sessions.relation <> 'delegation')")
        # Walking an index from its end finds a page of rows without looking at the others.
        if order_by_last_active:
            conditions.append("sessions.successor_id IS NULL")
            order = "sessions.last_active DESC, sessions.id DESC"
        else:
            conditions.append("sessions.conversation_id = sessions.id")
            order = "sessions.started_at DESC, sessions.id DESC"
        with self._db.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM sessions WHERE {' AND '.join(conditions)}"
                f" ORDER BY {order} LIMIT ? OFFSET ?",
                (*values, limit, offset),
            ).fetchall()
            return [_as_conversation(connection, decode_session(row)) for row in rows]

    def session_count(self) -> int:
        with self._db.reading() as connection:
            return int(
                connection.execute(f"SELECT count(*) FROM sessions WHERE {self._seen}", self._scope.values).fetchone()[
                    0
                ]
            )


def _as_conversation(connection: Connection, row: Row) -> Row:
    """A session of a chain as the whole: begun when the first began, standing where the last stands."""
    first = row
    if row["conversation_id"] != row["id"]:
        first = _load(connection, row["conversation_id"]) or row
    last, seen = row, {row["id"]}
    while last["successor_id"] and last["successor_id"] not in seen:
        seen.add(last["successor_id"])
        last = _load(connection, last["successor_id"]) or last
    shown = last | {"started_at": first["started_at"], "preview": preview(connection, first["id"])}
    if first["id"] != last["id"]:
        shown["_lineage_root_id"] = first["id"]
        shown["message_count"], shown["tool_call_count"] = _counts(connection, first["id"])
        shown["title"] = last["title"] or first["title"]
    return shown


def _load(connection: Connection, session_id: str) -> Row | None:
    row = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else decode_session(row)


def _counts(connection: Connection, conversation_id: str) -> tuple[int, int]:
    row = connection.execute(
        "SELECT sum(message_count), sum(tool_call_count) FROM sessions WHERE conversation_id = ?", (conversation_id,)
    ).fetchone()
    return int(row[0] or 0), int(row[1] or 0)


def preview(connection: Connection, session_id: str) -> str:
    """The beginning of the first thing that the user said."""
    rows = connection.execute(
        "SELECT content, content_format FROM messages WHERE session_id = ? AND role = 'user'"
        " AND (active = 1 OR compacted = 1) AND content IS NOT NULL ORDER BY id LIMIT 5",
        (session_id,),
    )
    for content, content_format in rows:
        words = " ".join(text_of(decode_content(content, content_format)).split())
        if words:
            return words if len(words) <= _PREVIEW else words[:_PREVIEW] + "..."
    return ""
