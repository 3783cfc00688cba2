"""Lists sessions for people and models: one row per conversation, newest first."""

from collections.abc import Collection
from typing import Any

from memoranda.db.connection import Connection
from memoranda.sessions.copies import JOIN_ORIGINAL, read_columns
from memoranda.sessions.lifecycle import COLUMNS, Row, decode_session
from memoranda.sessions.lineage import conversation_chain
from memoranda.sessions.message_rows import decode_content, text_of
from memoranda.sessions.session_filter import SessionFilter
from memoranda.sessions.store_part import StorePart

_PREVIEW_CHARS = 60
_OF_CONVERSATION = "(SELECT {} FROM sessions member WHERE member.conversation_id = sessions.conversation_id)"
_FIRST = "FROM sessions first WHERE first.id = sessions.conversation_id"


class SessionList(StorePart):
    """Lists sessions; the cost of a list depends on the rows it returns, not on the size of the store."""

    def list_sessions_rich(
        self,
        /,
        source: str | Collection[str] | None = None,
        exclude_sources: Collection[str] = (),
        limit: int = 20,
        offset: int = 0,
        *,
        include_children: bool = False,
        include_archived: bool = False,
        min_message_count: int = 0,
        order_by_last_active: bool = False,
        since: float | None = None,
        until: float | None = None,
        projects: Collection[str] | None = None,
        archived_only: bool = False,
        **filters: Any,
    ) -> list[Row]:
        """Conversations, newest first, each with `preview` and `last_active`.

        A compressed conversation is one row: its latest session, with the start of its first one and
        `_lineage_root_id`; `message_count` says how many messages it has, each counted once. Delegated work is omitted
        unless `include_children`. `since` and `until` filter by the time of the last activity, `projects` by project,
        `filters` are the fields of `SessionFilter`; those about a session mean the one that stands for the
        conversation.
        """
        conditions: list[str] = [self._in_scope]
        values: list[Any] = [*self._scope.values]
        self._add_filters(conditions, values, source, exclude_sources, since, until)
        if min_message_count:
            conditions.append(f"{_OF_CONVERSATION.format('sum(member.own_message_count)')} >= ?")
            values.append(min_message_count)
        if projects is not None:
            condition, names = self._dialect.one_of("sessions.project", projects)
            conditions.append(condition)
            values += names
        archived = True if archived_only else None if include_archived else False
        narrowing = SessionFilter.of({"archived": archived, **filters}).condition(self._dialect)
        conditions.append(narrowing.text)
        values += narrowing.values
        if not include_children:
            conditions.append(f"NOT EXISTS (SELECT 1 {_FIRST} AND first.relation = 'delegation')")
        # The database walks an index from its end, so it reads only a page of rows and those of the same hour.
        if order_by_last_active:
            conditions.append("sessions.successor_id IS NULL")
            order = "sessions.active_hour DESC, sessions.last_active DESC, sessions.id DESC"
        else:
            conditions.append("sessions.conversation_id = sessions.id")
            order = "sessions.started_at DESC, sessions.id DESC"
        with self._engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM sessions WHERE {' AND '.join(conditions)}"
                f" ORDER BY {order} LIMIT ? OFFSET ?",
                (*values, limit, offset),
            ).fetchall()
            return [self._as_conversation(connection, decode_session(row)) for row in rows]

    def _as_conversation(self, connection: Connection, row: Row) -> Row:
        """The row of a whole conversation: the start of its first session, the state of its last."""
        chain = conversation_chain(connection, row["id"], self._scope) or [row["id"]]
        first, last = (
            row if session_id == row["id"] else self._load(connection, session_id)
            for session_id in (chain[0], chain[-1])
        )
        shown = last | {"started_at": first["started_at"], "preview": preview(connection, first["id"])}
        members = [last] if len(chain) == 1 else [self._load(connection, session_id) for session_id in chain]
        # What compression repeats in a later session was said once.
        shown["message_count"] = sum(member["own_message_count"] for member in members)
        shown["tool_call_count"] = sum(member["tool_call_count"] for member in members)
        if len(chain) > 1:
            shown["_lineage_root_id"] = first["id"]
            shown["title"] = last["title"] or first["title"]
        return shown

    def _load(self, connection: Connection, session_id: str) -> Row:
        row = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return decode_session(row)

    def first_words(self, session_id: str) -> str:
        """The start of the first message of the user in the conversation of a session; empty if there is none."""
        with self._engine.reading() as connection:
            chain = conversation_chain(connection, session_id, self._scope)
            return preview(connection, chain[0]) if chain else ""

    def known_projects(self) -> dict[str, int]:
        """The projects of the sessions in scope and how many sessions each has, the last active one first."""
        with self._engine.reading() as connection:
            rows = connection.execute(
                f"SELECT project, count(*) FROM sessions WHERE project IS NOT NULL AND {self._in_scope}"
                " GROUP BY project ORDER BY max(last_active) DESC",
                self._scope.values,
            )
            return dict(rows.fetchall())

    def search_sessions_by_id(self, text: str, limit: int = 20, *, include_archived: bool = True) -> list[Row]:
        """Conversations with a session whose id contains a text, ignoring the case of ASCII letters.

        An id that is the text comes first, then those that begin with it, then the others, the latest first. The rows
        are those of `list_sessions_rich`.
        """
        escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        like = self._dialect.like("id")
        archived = "" if include_archived else " AND archived = 0"
        with self._engine.reading() as connection:
            rows = connection.execute(
                f"SELECT id, conversation_id FROM sessions WHERE {like} AND {self._in_scope}{archived}"
                f" ORDER BY CASE WHEN id = ? THEN 0 WHEN {like} THEN 1 ELSE 2 END, started_at DESC, id DESC",
                (f"%{escaped}%", *self._scope.values, text, f"{escaped}%"),
            )
            found: dict[str, str] = {}
            for session_id, conversation in rows.fetchall() if text else ():
                found.setdefault(conversation, session_id)
            chosen = [self._load(connection, session_id) for session_id in list(found.values())[:limit]]
            return [self._as_conversation(connection, row) for row in chosen]

    def session_count(self, /, source: str | None = None, **filters: Any) -> int:
        """How many sessions there are, of every kind; `filters` are the fields of `SessionFilter`."""
        narrowing = SessionFilter.of(filters).condition(self._dialect)
        condition, values = (self._in_scope, [*self._scope.values])
        if source is not None:
            condition += " AND source = ?"
            values.append(source)
        with self._engine.reading() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM sessions WHERE {condition} AND {narrowing.text}", (*values, *narrowing.values)
            ).fetchone()
        return int(row[0])

    def _add_filters(
        self,
        conditions: list[str],
        values: list[Any],
        source: str | Collection[str] | None,
        exclude_sources: Collection[str],
        since: float | None,
        until: float | None,
    ) -> None:
        if source is not None:
            condition, names = self._dialect.one_of("sessions.source", [source] if isinstance(source, str) else source)
            conditions.append(condition)
            values += names
        if exclude_sources:
            condition, names = self._dialect.one_of("sessions.source", exclude_sources)
            conditions.append(f"NOT ({condition})")
            values += names
        for bound, sign in ((since, ">="), (until, "<=")):
            if bound is not None:
                conditions.append(f"{_OF_CONVERSATION.format('max(member.last_active)')} {sign} ?")
                values.append(bound)


def preview(connection: Connection, session_id: str) -> str:
    """The start of the first message of the user."""
    rows = connection.execute(
        f"SELECT {read_columns(('content', 'content_format'))} FROM messages m {JOIN_ORIGINAL}"
        " WHERE m.session_id = ? AND m.role = 'user' AND m.is_summary IS NULL AND (m.active = 1 OR m.compacted = 1)"
        " AND (m.content IS NOT NULL OR m.copy_of IS NOT NULL) ORDER BY m.id LIMIT 5",
        (session_id,),
    )
    for content, content_format in rows:
        words = " ".join(text_of(decode_content(content, content_format)).split())
        if words:
            return words if len(words) <= _PREVIEW_CHARS else words[:_PREVIEW_CHARS] + "..."
    return ""
