"""Lists sessions for people and models: one row per conversation, newest first."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any

from memoranda.memory.record.copies import JOIN_ORIGINAL, read_columns
from memoranda.memory.record.lifecycle import SELECTED, Row, decode_session
from memoranda.memory.record.lineage import conversation_chain
from memoranda.memory.record.message_rows import decode_content, text_of
from memoranda.memory.record.schema import hour_of
from memoranda.memory.record.session_filter import SessionFilter
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition
from memoranda.storage.sqlite.stored_texts import readable_rows

_PREVIEW_CHARS = 60
_FEW_SESSIONS = 200
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
        archived = True if archived_only else None if include_archived else False
        sources = [source] if isinstance(source, str) else source
        conditions = [
            SessionFilter.of({"archived": archived, **filters}).condition(self._dialect),
            *self._within(since, until),
        ]
        for column, values in (("sessions.source", sources), ("sessions.project", projects)):
            if values is not None:
                conditions.append(self._dialect.one_of(self._dialect.unindexed(column), values))
        if exclude_sources:
            excluded = self._dialect.one_of(self._dialect.unindexed("sessions.source"), exclude_sources)
            conditions.append(Condition(f"NOT ({excluded.text})", excluded.values))
        if min_message_count:
            count = _OF_CONVERSATION.format("sum(member.own_message_count)")
            conditions.append(Condition(f"{count} >= ?", (min_message_count,)))
        if not include_children:
            conditions.append(Condition(f"NOT EXISTS (SELECT 1 {_FIRST} AND first.relation = 'delegation')", ()))
        if order_by_last_active:
            conditions.append(Condition("sessions.successor_id IS NULL", ()))
            order: tuple[str, ...] = ("sessions.active_hour", "sessions.last_active", "sessions.id")
        else:
            conditions.append(Condition("sessions.conversation_id = sessions.id", ()))
            order = ("sessions.started_at", "sessions.id")
        with self._engine.reading() as connection:
            few = self._find_few(connection, sources, projects, since)
            rows = self._select(connection, conditions, few, order, (limit, offset))
            return [self._as_conversation(connection, decode_session(row)) for row in rows]

    def _select(
        self,
        connection: Connection,
        conditions: list[Condition],
        few: Condition | None,
        order: Sequence[str],
        page: tuple[int, int],
    ) -> list[Any]:
        """A page of the sessions that meet all conditions, in descending order.

        The database walks the index of the order from its end, so it reads only a page of rows and those of the same
        hour; or it reads the `few` sessions that can be in the list, and sorts them.
        """
        table = "sessions"
        if few is not None:
            table, order = self._dialect.unindexed(table), [self._dialect.unindexed(column) for column in order]
            conditions = [few, *conditions]
        conditions = [Condition(self._scope.condition(table), self._scope.values), *conditions]
        return connection.execute(
            f"SELECT {SELECTED} FROM sessions WHERE {' AND '.join(each.text for each in conditions)}"
            f" ORDER BY {', '.join(f'{column} DESC' for column in order)} LIMIT ? OFFSET ?",
            (*chain.from_iterable(each.values for each in conditions), *page),
        ).fetchall()

    def _find_few(
        self,
        connection: Connection,
        sources: Collection[str] | None,
        projects: Collection[str] | None,
        since: float | None,
    ) -> Condition | None:
        """The sessions that can be in a list, where an index finds them and they are few; None if they are many.

        Many are best found in the order of the list: its first page soon contains enough of them.
        """
        searches = [
            ("id", self._dialect.one_of(column, names))
            for column, names in (("source", sources), ("project", projects))
            if names is not None
        ]
        if since is not None and (hour := hour_of(since)) is not None:
            # A conversation was active since if any session of it was.
            searches.append(("conversation_id", Condition("active_hour >= ?", (hour,))))
        for column, condition in searches:
            found = connection.execute(
                f"SELECT {column} FROM sessions WHERE {condition.text} LIMIT ?", (*condition.values, _FEW_SESSIONS)
            ).fetchall()
            if len(found) < _FEW_SESSIONS:
                return self._dialect.one_of(f"sessions.{column}", [name for (name,) in found])
        return None

    def _within(self, since: float | None, until: float | None) -> Iterator[Condition]:
        """The conversations whose last activity is not before `since` and not after `until`."""
        last_active = _OF_CONVERSATION.format("max(member.last_active)")
        if until is not None:
            yield Condition(f"{last_active} <= ?", (until,))
            if (hour := hour_of(until)) is not None:
                # The index on hours finds where to begin.
                yield Condition("sessions.active_hour <= ?", (hour,))
        if since is not None:
            yield Condition(f"{last_active} >= ?", (since,))

    def _as_conversation(self, connection: Connection, row: Row) -> Row:
        """The row of a whole conversation: the start of its first session, the state of its last."""
        members = conversation_chain(connection, row["id"], self._scope) or [row["id"]]
        first, last = (
            row if session_id == row["id"] else self._load(connection, session_id)
            for session_id in (members[0], members[-1])
        )
        shown = last | {"started_at": first["started_at"], "preview": preview(connection, first["id"])}
        rows = [last] if len(members) == 1 else [self._load(connection, session_id) for session_id in members]
        # What compression repeats in a later session was said once.
        shown["message_count"] = sum(member["own_message_count"] for member in rows)
        shown["tool_call_count"] = sum(member["tool_call_count"] for member in rows)
        if len(members) > 1:
            shown["_lineage_root_id"] = first["id"]
            shown["title"] = last["title"] or first["title"]
        return shown

    def _load(self, connection: Connection, session_id: str) -> Row:
        row = connection.execute(f"SELECT {SELECTED} FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return decode_session(row)

    def last_activity(self, since: float, until: float, exclude_sources: Collection[str] = ()) -> list[tuple[Any, ...]]:
        """The time of the last message, the source and the number of messages of each conversation in a period.

        It is one row per conversation of `list_sessions_rich`, in no order, for counting them by day.
        """
        conditions = [
            Condition("sessions.active_hour >= ?", (hour_of(since),)),
            Condition("sessions.last_active >= ? AND sessions.last_active <= ?", (since, until)),
            Condition("sessions.successor_id IS NULL AND sessions.archived = 0", ()),
            Condition(f"NOT EXISTS (SELECT 1 {_FIRST} AND first.relation = 'delegation')", ()),
            Condition(self._scope.condition("sessions"), self._scope.values),
        ]
        if exclude_sources:
            excluded = self._dialect.one_of(self._dialect.unindexed("sessions.source"), exclude_sources)
            conditions.append(Condition(f"NOT ({excluded.text})", excluded.values))
        count = _OF_CONVERSATION.format("sum(member.own_message_count)")
        with self._engine.reading() as connection:
            return connection.execute(
                f"SELECT sessions.last_active, sessions.source, {count} FROM sessions"
                f" WHERE {' AND '.join(each.text for each in conditions)}",
                tuple(chain.from_iterable(each.values for each in conditions)),
            ).fetchall()

    def first_words(self, session_id: str) -> str:
        """The start of the first message of the user in the conversation of a session; empty if there is none."""
        with self._engine.reading() as connection:
            members = conversation_chain(connection, session_id, self._scope)
            return preview(connection, members[0]) if members else ""

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
        text = self._stored_name(text)
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

    def list_sessions_with_prefix(self, prefix: str, limit: int = 100, *, after: str | None = None) -> list[Row]:
        """The sessions whose id starts with a text, exactly as written, in the order of their ids; `after` is an id."""
        starts, values = self._dialect.starts_with("id", prefix) if prefix else Condition("1 = 1", ())
        later = " AND id > ?" if after is not None else ""
        with self._engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {SELECTED} FROM sessions WHERE {self._in_scope} AND {starts}{later} ORDER BY id LIMIT ?",
                (*self._scope.values, *values, *(() if after is None else (after,)), limit),
            )
            return [decode_session(row) for row in rows.fetchall()]

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


def preview(connection: Connection, session_id: str) -> str:
    """The start of the first message of the user."""
    rows = readable_rows(
        connection,
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
