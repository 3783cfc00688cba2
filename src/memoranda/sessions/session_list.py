"""Lists of sessions for people and models: one line per conversation, newest first."""

from collections.abc import Collection
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.sessions.copies import REFERRED_TO, read_fully
from memoranda.sessions.lifecycle import COLUMNS, Row, decode_session
from memoranda.sessions.lineage import chain_of
from memoranda.sessions.message_rows import decode_content, text_of
from memoranda.sessions.store_part import StorePart

_PREVIEW = 60
_OF_CONVERSATION = "(SELECT {} FROM sessions each WHERE each.conversation_id = sessions.conversation_id)"
_FIRST = "FROM sessions first WHERE first.id = sessions.conversation_id"


class SessionList(StorePart):
    """What there is, without reading it all: every list costs about as much as it returns."""

    def list_sessions_rich(
        self,
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
    ) -> list[Row]:
        """Conversations, newest first, each with `preview` and `last_active`.

        A conversation that was compressed is one row: the session in which it goes on, with the start of its first
        one and `_lineage_root_id`. Delegated work is left out unless `include_children`. `since` and `until` limit
        the time of the last activity, `projects` what was worked on.
        """
        conditions: list[str] = [self._seen]
        values: list[Any] = [*self._scope.values]
        _limit(conditions, values, source, exclude_sources, since, until)
        if min_message_count:
            conditions.append(f"{_OF_CONVERSATION.format('sum(each.message_count)')} >= ?")
            values.append(min_message_count)
        if projects is not None:
            conditions.append(f"sessions.project IN ({', '.join('?' * len(projects))})")
            values += projects
        if not include_archived:
            conditions.append("sessions.archived = 0")
        if not include_children:
            conditions.append(f"NOT EXISTS (SELECT 1 {_FIRST} AND first.relation = 'delegation')")
        # Walking an index from its end finds a page of rows without looking at the others, but for those of that hour.
        if order_by_last_active:
            conditions.append("sessions.successor_id IS NULL")
            order = "sessions.active_hour DESC, sessions.last_active DESC, sessions.id DESC"
        else:
            conditions.append("sessions.conversation_id = sessions.id")
            order = "sessions.started_at DESC, sessions.id DESC"
        with self._db.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM sessions WHERE {' AND '.join(conditions)}"
                f" ORDER BY {order} LIMIT ? OFFSET ?",
                (*values, limit, offset),
            ).fetchall()
            return [self._as_conversation(connection, decode_session(row)) for row in rows]

    def _as_conversation(self, connection: Connection, row: Row) -> Row:
        """A session of a chain as the whole: begun when the first began, standing where the last stands."""
        chain = chain_of(connection, row["id"], self._scope) or [row["id"]]
        first, last = (row if each == row["id"] else self._load(connection, each) for each in (chain[0], chain[-1]))
        shown = last | {"started_at": first["started_at"], "preview": preview(connection, first["id"])}
        if len(chain) > 1:
            members = [self._load(connection, each) for each in chain]
            shown["_lineage_root_id"] = first["id"]
            for name in ("message_count", "tool_call_count"):
                shown[name] = sum(member[name] for member in members)
            shown["title"] = last["title"] or first["title"]
        return shown

    def _load(self, connection: Connection, session_id: str) -> Row:
        row = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return decode_session(row)

    def known_projects(self) -> dict[str, int]:
        """The projects that sessions in scope belong to, with how many, the one that was worked on last first."""
        with self._db.reading() as connection:
            rows = connection.execute(
                f"SELECT project, count(*) FROM sessions WHERE project IS NOT NULL AND {self._seen}"
                " GROUP BY project ORDER BY max(last_active) DESC",
                self._scope.values,
            )
            return dict(rows.fetchall())

    def session_count(self) -> int:
        with self._db.reading() as connection:
            return int(
                connection.execute(f"SELECT count(*) FROM sessions WHERE {self._seen}", self._scope.values).fetchone()[
                    0
                ]
            )


def _limit(
    conditions: list[str],
    values: list[Any],
    source: str | Collection[str] | None,
    exclude_sources: Collection[str],
    since: float | None,
    until: float | None,
) -> None:
    if source is not None:
        sources = [source] if isinstance(source, str) else list(source)
        conditions.append(f"sessions.source IN ({', '.join('?' * len(sources))})")
        values += sources
    if exclude_sources:
        conditions.append(f"sessions.source NOT IN ({', '.join('?' * len(exclude_sources))})")
        values += exclude_sources
    for bound, sign in ((since, ">="), (until, "<=")):
        if bound is not None:
            conditions.append(f"{_OF_CONVERSATION.format('max(each.last_active)')} {sign} ?")
            values.append(bound)


def preview(connection: Connection, session_id: str) -> str:
    """The beginning of the first thing that the user said."""
    rows = connection.execute(
        f"SELECT {read_fully(('content', 'content_format'))} FROM messages m {REFERRED_TO}"
        " WHERE m.session_id = ? AND m.role = 'user' AND m.is_summary IS NULL AND (m.active = 1 OR m.compacted = 1)"
        " AND (m.content IS NOT NULL OR m.copy_of IS NOT NULL) ORDER BY m.id LIMIT 5",
        (session_id,),
    )
    for content, content_format in rows:
        words = " ".join(text_of(decode_content(content, content_format)).split())
        if words:
            return words if len(words) <= _PREVIEW else words[:_PREVIEW] + "..."
    return ""
