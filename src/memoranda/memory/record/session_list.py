"""Lists sessions for people and models: filtered, along their links, and with what they used.

A list has one row per conversation, newest first. A filter selects by title, model, provider, dates, sizes, costs and
the archive flag. Links between sessions are compression chains, branches and delegated work. Tokens and costs are
counted per session, with statistics over all sessions.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.copies import JOIN_ORIGINAL, read_columns
from memoranda.memory.record.message_rows import decode_content, require_storable, text_of
from memoranda.memory.record.schema import hour_of
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.sessions import SELECTED, Row, decode_session
from memoranda.memory.record.store_part import StoredName, StorePart, count_redactions
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, Dialect, Statement, readable_rows
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.lazy_dataclass import dataclass

_TOKENS = "(sessions.input_tokens + sessions.output_tokens)"
_COST = "COALESCE(sessions.actual_cost_usd, sessions.estimated_cost_usd, 0)"
# The texts are found anywhere in the column, ignoring the case of ASCII letters.
_CONTAINED = {"title": "title", "model": "model", "provider": "billing_provider"}
_BOUNDS = {
    "started_after": "{started_at} >= ?",
    "started_before": "{started_at} <= ?",
    "min_messages": "sessions.own_message_count >= ?",
    "max_messages": "sessions.own_message_count <= ?",
    "min_tool_calls": "sessions.tool_call_count >= ?",
    "max_tool_calls": "sessions.tool_call_count <= ?",
    "min_tokens": f"{_TOKENS} >= ?",
    "max_tokens": f"{_TOKENS} <= ?",
    "min_cost": f"{_COST} >= ?",
    "max_cost": f"{_COST} <= ?",
}


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Conditions that a session must all meet; a field that is None is no condition.

    Tokens are those sent and received, costs are in US dollars, timestamps are seconds since 1970.
    """

    title: str | None = None
    model: str | None = None
    provider: str | None = None
    end_reason: str | None = None
    started_after: float | None = None
    started_before: float | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    min_tool_calls: int | None = None
    max_tool_calls: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    min_cost: float | None = None
    max_cost: float | None = None
    archived: bool | None = None

    @classmethod
    def of(cls, filters: dict[str, Any]) -> "SessionFilter":
        """The filter with these fields; raises SessionError for one that does not exist or has the wrong type."""
        known = [field.name for field in fields(cls)]
        for name, value in filters.items():
            if name not in known:
                raise SessionError(f"Sessions cannot be filtered by {name!r}. There are: {', '.join(known)}.")
            wanted = bool if name == "archived" else int | float if name in _BOUNDS else str
            if value is not None and (not isinstance(value, wanted) or (name in _BOUNDS and isinstance(value, bool))):
                kind = "true or false" if name == "archived" else "a number" if name in _BOUNDS else "text"
                raise SessionError(f"{name} must be {kind}, not {value!r}.")
        return cls(**filters)

    def condition(self, dialect: Dialect) -> Condition:
        """The filter as a condition on the table `sessions`."""
        parts, values = ["1 = 1"], list[Any]()
        for name, column in _CONTAINED.items():
            if (text := getattr(self, name)) is not None:
                escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
                parts.append(dialect.like(f"sessions.{column}"))
                values.append(f"%{escaped}%")
        for name, bound in _BOUNDS.items():
            if (value := getattr(self, name)) is not None:
                # Which index is used depends on the order of the list; most sessions meet a bound like this.
                parts.append(bound.format(started_at=dialect.unindexed("sessions.started_at")))
                values.append(value)
        if self.end_reason is not None:
            parts.append("sessions.end_reason = ?")
            values.append(self.end_reason)
        if self.archived is not None:
            parts.append("sessions.archived = ?")
            values.append(int(self.archived))
        return Condition(" AND ".join(parts), tuple(values))


_STEP = "SELECT sessions.id, sessions.title, sessions.relation, sessions.parent_session_id FROM sessions JOIN family"


class Lineage(StorePart):
    """Ancestors, descendants and the conversation of a session, as far as they are in scope."""

    def get_compression_tip(self, session_id: str) -> str | None:
        """The latest session of a compressed conversation; the session itself if it was not compressed."""
        chain = self.get_compression_lineage(session_id)
        return chain[-1] if chain else None

    def get_compression_lineage(self, session_id: str) -> list[str]:
        """Every session of a conversation, from its first to its latest."""
        session_id = self._stored_name(session_id)
        with self._engine.reading() as connection:
            return conversation_chain(connection, session_id, self._scope)

    def get_conversation_root(self, session_id: str) -> str | None:
        """The first ancestor of a session over links of any kind."""
        ancestors = self.get_ancestors(session_id)
        return ancestors[-1]["id"] if ancestors else None

    def get_ancestors(self, session_id: str) -> list[dict[str, Any]]:
        """A session, its parent and so on up, each with id, title and relation."""
        session_id = self._stored_name(session_id)
        return self._walk("sessions.id = family.parent_session_id", session_id)

    def get_descendants(self, session_id: str) -> list[dict[str, Any]]:
        """A session and everything that descends from it."""
        session_id = self._stored_name(session_id)
        return self._walk("sessions.parent_session_id = family.id", session_id)

    def _walk(self, link: str, session_id: StoredName) -> list[dict[str, Any]]:
        # UNION, not UNION ALL: a cycle in the links ends instead of running forever.
        statement = (
            "WITH RECURSIVE family (id, title, relation, parent_session_id) AS ("
            f" SELECT id, title, relation, parent_session_id FROM sessions WHERE id = ? AND {self._in_scope}"
            f" UNION {_STEP} ON {link} WHERE {self._in_scope}) SELECT id, title, relation FROM family"
        )
        (rows,) = self._read_at_once((statement, (session_id, *self._scope.values, *self._scope.values)))
        return [dict(zip(("id", "title", "relation"), row, strict=True)) for row in rows]


def conversation_chain(connection: Connection, session_id: str, scope: Scope) -> list[str]:
    """The sessions of a conversation, each followed by its continuation; empty if it is out of scope."""
    in_scope = scope.condition("sessions")
    rows = connection.execute(
        "SELECT id, successor_id FROM sessions WHERE conversation_id ="
        f" (SELECT conversation_id FROM sessions WHERE id = ? AND {in_scope}) AND {in_scope}",
        (session_id, *scope.values, *scope.values),
    ).fetchall()
    return _in_order(dict(rows))


def _in_order(successors: Mapping[str, str | None]) -> list[str]:
    """The sessions of a conversation from its first on, by the continuation of each."""
    continuations = {successor for successor in successors.values() if successor is not None}
    chain = [member for member in successors if member not in continuations][:1]
    while chain and (member := successors.get(chain[-1])) and member in successors and member not in chain:
        chain.append(member)
    return chain


_PREVIEW_CHARS = 60
_FEW_SESSIONS = 200
_OF_CONVERSATION = "(SELECT {} FROM sessions member WHERE member.conversation_id = sessions.conversation_id)"
_MEMBER_COLUMNS = ("id", "successor_id", "started_at", "title", "own_message_count", "tool_call_count")
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
        columns: Mapping[str, Collection[str]] | None = None,
        archived_only: bool = False,
        **filters: Any,
    ) -> list[Row]:
        """Conversations, newest first, each with `preview` and `last_active`.

        A compressed conversation is one row: its latest session, with the start of its first one and
        `_lineage_root_id`; `message_count` says how many messages it has, each counted once. Delegated work is omitted
        unless `include_children`. `since` and `until` filter by the time of the last activity, `projects` by project,
        `columns` by the values that any column may have. `filters` are the fields of `SessionFilter`; those about a
        session mean the one that stands for the conversation.
        """
        exclude_sources = self._stored_names(exclude_sources)
        projects = None if projects is None else self._stored_names(projects)
        archived = True if archived_only else None if include_archived else False
        sources = None if source is None else self._stored_names(source)
        named = {"source": sources, "project": projects, **(columns or {})}
        chosen = {column: values for column, values in named.items() if values is not None}
        conditions = [
            SessionFilter.of({"archived": archived, **filters}).condition(self._dialect),
            *self._within(since, until),
        ]
        for column, values in chosen.items():
            conditions.append(self._dialect.one_of(self._dialect.unindexed(f"sessions.{column}"), values))
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
        with self.view_in_file():
            rows = self._select(conditions, self._find_few(chosen, since), order, (limit, offset))
            return self._as_conversations(rows)

    def _select(
        self,
        conditions: list[Condition],
        few: Condition | None,
        order: Sequence[str],
        page: tuple[int, int],
    ) -> list[Row]:
        """A page of the sessions that meet all conditions, in descending order.

        The database walks the index of the order from its end, so it reads only a page of rows and those of the same
        hour; or it reads the `few` sessions that can be in the list, and sorts them.
        """
        table = "sessions"
        if few is not None:
            table, order = self._dialect.unindexed(table), [self._dialect.unindexed(column) for column in order]
            conditions = [few, *conditions]
        conditions = [Condition(self._scope.condition(table), self._scope.values), *conditions]
        statement = (
            f"SELECT {SELECTED} FROM sessions WHERE {' AND '.join(each.text for each in conditions)}"
            f" ORDER BY {', '.join(f'{column} DESC' for column in order)} LIMIT ? OFFSET ?"
        )
        values = (*chain.from_iterable(each.values for each in conditions), *page)
        (rows,) = self._read_at_once((statement, values))
        return [decode_session(row) for row in rows]

    def _find_few(self, columns: Mapping[str, Collection[str]], since: float | None) -> Condition | None:
        """The sessions that can be in a list, where an index finds them and they are few; None if they are many.

        Many are best found in the order of the list: its first page soon contains enough of them.
        """
        indexed = ("source", "project")
        searches = [("id", self._dialect.one_of(column, columns[column])) for column in indexed if column in columns]
        if since is not None and (hour := hour_of(since)) is not None:
            # A conversation was active since if any session of it was.
            searches.append(("conversation_id", Condition("active_hour >= ?", (hour,))))
        statements = [
            (f"SELECT {column} FROM sessions WHERE {each.text} LIMIT ?", (*each.values, _FEW_SESSIONS))
            for column, each in searches
        ]
        answers = self._read_at_once(*statements) if statements else []
        for (column, _), found in zip(searches, answers, strict=True):
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

    def _as_conversations(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of whole conversations, each given by one of its sessions; on a server in one round trip."""
        if not rows:
            return []
        members = f"SELECT {', '.join(_MEMBER_COLUMNS)} FROM sessions WHERE conversation_id = ? AND {self._in_scope}"
        names = [row["conversation_id"] for row in rows]
        statements = [*((members, (name, *self._scope.values)) for name in names), *map(_first_texts, names)]
        found = self._read_at_once(*statements)
        size = len(rows)
        return [self._as_conversation(*each) for each in zip(rows, found[:size], found[size:], strict=True)]

    def _as_conversation(self, row: Row, found: Sequence[Sequence[Any]], texts: list[Any]) -> Row:
        """The row of a whole conversation: the start of its first session, the state of its last."""
        known = {each[0]: dict(zip(_MEMBER_COLUMNS, each, strict=True)) for each in found}
        members = _in_order({name: each["successor_id"] for name, each in known.items()}) or [row["id"]]
        known.setdefault(row["id"], row)
        first, last = known[members[0]], row if members[-1] == row["id"] else self._load(members[-1])
        if members[0] != row["conversation_id"]:
            (texts,) = self._read_at_once(_first_texts(members[0]))
        shown = last | {"started_at": first["started_at"], "preview": _preview(texts)}
        # What compression repeats in a later session was said once.
        shown["message_count"] = sum(known[name]["own_message_count"] for name in members)
        shown["tool_call_count"] = sum(known[name]["tool_call_count"] for name in members)
        if len(members) > 1:
            shown["_lineage_root_id"] = first["id"]
            shown["title"] = last["title"] or first["title"]
        return shown

    def _load(self, session_id: str) -> Row:
        ((row,),) = self._read_at_once((f"SELECT {SELECTED} FROM sessions WHERE id = ?", (session_id,)))
        return decode_session(row)

    def last_activity(self, since: float, until: float, exclude_sources: Collection[str] = ()) -> list[tuple[Any, ...]]:
        """The time of the last message, the source and the number of messages of each conversation in a period.

        It is one row per conversation of `list_sessions_rich`, in no order, for counting them by day.
        """
        exclude_sources = self._stored_names(exclude_sources)
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
        return self._fetch_all(
            f"SELECT sessions.last_active, sessions.source, {count} FROM sessions"
            f" WHERE {' AND '.join(each.text for each in conditions)}",
            tuple(chain.from_iterable(each.values for each in conditions)),
        )

    def first_words(self, session_id: str) -> str:
        """The start of the first message of the user in the conversation of a session; empty if there is none."""
        session_id = self._stored_name(session_id)
        with self._engine.reading() as connection:
            members = conversation_chain(connection, session_id, self._scope)
            return _preview(readable_rows(connection, *_first_texts(members[0]))) if members else ""

    def known_projects(self) -> dict[str, int]:
        """The projects of the sessions in scope and how many sessions each has, the last active one first."""
        return self.known_values("project")

    def known_values(self, column: str) -> dict[str, int]:
        """The values of a column of the sessions in scope and how many sessions each has, the last active one first."""
        statement = (
            f"SELECT {column}, count(*) FROM sessions WHERE {column} IS NOT NULL AND {self._in_scope}"
            f" GROUP BY {column} ORDER BY max(last_active) DESC"
        )
        (rows,) = self._read_at_once((statement, self._scope.values))
        return dict(rows)

    def search_sessions_by_id(self, text: str, limit: int = 20, *, include_archived: bool = True) -> list[Row]:
        """Conversations with a session whose id contains a text, ignoring the case of ASCII letters.

        An id that is the text comes first, then those that begin with it, then the others, the latest first. The rows
        are those of `list_sessions_rich`.
        """
        text = self._stored_name(text)
        escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        like = self._dialect.like("id")
        archived = "" if include_archived else " AND archived = 0"
        with self.one_view():
            rows = self._fetch_all(
                f"SELECT id, conversation_id FROM sessions WHERE {like} AND {self._in_scope}{archived}"
                f" ORDER BY CASE WHEN id = ? THEN 0 WHEN {like} THEN 1 ELSE 2 END, started_at DESC, id DESC",
                (f"%{escaped}%", *self._scope.values, text, f"{escaped}%"),
            )
            found: dict[str, str] = {}
            for session_id, conversation in rows if text else ():
                found.setdefault(conversation, session_id)
            return self._as_conversations([self._load(session_id) for session_id in list(found.values())[:limit]])

    def list_sessions_with_prefix(self, prefix: str, limit: int = 100, *, after: str | None = None) -> list[Row]:
        """The sessions whose id starts with a text, exactly as written, in the order of their ids; `after` is an id."""
        prefix = self._stored_name(prefix)
        starts, values = self._dialect.starts_with("id", prefix) if prefix else Condition("1 = 1", ())
        later = " AND id > ?" if after is not None else ""
        rows = self._fetch_all(
            f"SELECT {SELECTED} FROM sessions WHERE {self._in_scope} AND {starts}{later} ORDER BY id LIMIT ?",
            (*self._scope.values, *values, *(() if after is None else (after,)), limit),
        )
        return [decode_session(row) for row in rows]

    def session_count(self, /, source: str | None = None, **filters: Any) -> int:
        """How many sessions there are, of every kind; `filters` are the fields of `SessionFilter`."""
        source = self._stored_name(source)
        narrowing = SessionFilter.of(filters).condition(self._dialect)
        condition, values = (self._in_scope, [*self._scope.values])
        if source is not None:
            condition += " AND source = ?"
            values.append(source)
        row = self._fetch_one(
            f"SELECT count(*) FROM sessions WHERE {condition} AND {narrowing.text}", (*values, *narrowing.values)
        )
        return int(row[0])


def _first_texts(session_id: str) -> Statement:
    """The statement for `_preview` of a session."""
    return (
        f"SELECT {read_columns(('content', 'content_format'))} FROM messages m {JOIN_ORIGINAL}"
        " WHERE m.session_id = ? AND m.role = 'user' AND m.is_summary IS NULL AND (m.active = 1 OR m.compacted = 1)"
        " AND (m.content IS NOT NULL OR m.copy_of IS NOT NULL) ORDER BY m.id LIMIT 5",
        (session_id,),
    )


def _preview(rows: Iterable[Sequence[Any]]) -> str:
    """The start of the first message of the user."""
    for content, content_format in rows:
        words = " ".join(text_of(decode_content(content, content_format)).split())
        if words:
            return words if len(words) <= _PREVIEW_CHARS else words[:_PREVIEW_CHARS] + "..."
    return ""


COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
            "api_call_count")  # fmt: skip
COSTS = ("estimated_cost_usd", "actual_cost_usd")
FACTS = ("model", "billing_provider", "billing_base_url", "billing_mode", "cost_status", "cost_source",
         "pricing_version")  # fmt: skip


class SessionUsage(StorePart):
    """Token counts, costs, statistics, and the facts that callers store under a key."""

    def update_token_counts(self, /, session_id: str, *, absolute: bool = False, **amounts: Any) -> None:
        """Add tokens, calls and costs to a session, or set them if `absolute`.

        The model, the billing fields and the facts about the cost replace the old ones unless they are None.
        """
        session_id = self._stored_name(session_id)
        assignments, values = [], []
        for name, amount in amounts.items():
            if name in (*COUNTERS, *COSTS):
                _check_counters(name, amount)
                assignments.append(f"{name} = ?" if absolute else f"{name} = COALESCE({name}, 0) + ?")
            elif name in FACTS:
                require_storable(name, amount)
                assignments.append(f"{name} = COALESCE(?, {name})")
            else:
                raise SessionError(f"{name} cannot be counted; {', '.join((*COUNTERS, *COSTS, *FACTS))} can.")
            values.append(amount)
        clean, redacted = self._redact(values)
        with self._engine.writing() as connection:
            self._require(connection, session_id)
            count_redactions(connection, redacted)
            if assignments:
                connection.execute(f"UPDATE sessions SET {', '.join(assignments)} WHERE id = ?", (*clean, session_id))

    def statistics(self) -> dict[str, Any]:
        """Totals over all sessions in scope, by source and by model; a store for one named user omits the secrets."""
        totals = ("count(*)", "sum(own_message_count)", "sum(tool_call_count)", *(f"sum({name})" for name in COUNTERS),
                  *(f"sum({name})" for name in COSTS), "min(started_at)", "max(last_active)")  # fmt: skip
        names = ("sessions", "messages", "tool_calls", *COUNTERS, *COSTS, "first", "last")
        with self._engine.reading() as connection:
            row = connection.execute(
                f"SELECT {', '.join(totals)} FROM sessions WHERE {self._in_scope}", self._scope.values
            ).fetchone()
            groups = {
                column: connection.execute(
                    f"SELECT COALESCE({column}, ''), count(*), sum(own_message_count) FROM sessions"
                    f" WHERE {self._in_scope} GROUP BY COALESCE({column}, '') ORDER BY 3 DESC, 1",
                    self._scope.values,
                ).fetchall()
                for column in ("source", "model")
            }
            redacted = int(read_meta(connection, "redacted_secrets") or 0)
        secrets = {"redacted_secrets": redacted} if self._scope.user is None else {}
        numbers = {name: value or 0 for name, value in zip(names, row, strict=True)}
        return (
            numbers
            | {
                "by_source": {
                    name: {"sessions": count, "messages": messages or 0} for name, count, messages in groups["source"]
                },
                "by_model": {
                    name: {"sessions": count, "messages": messages or 0} for name, count, messages in groups["model"]
                },
            }
            | secrets
        )

    def _refuse_user(self) -> None:
        """Raise SessionError in a store that is open for one user: the facts belong to the whole store."""
        if self._scope.user is not None:
            raise SessionError(f"Facts belong to the whole store; this store is open for {self._scope.user!r}.")

    def get_meta(self, key: str) -> str | None:
        """A value that was stored with `set_meta`, or None."""
        key = self._stored_name(key)
        self._refuse_user()
        with self._engine.reading() as connection:
            return read_meta(connection, key)

    def set_meta(self, key: str, value: str) -> None:
        key = self._stored_name(key)
        self._refuse_user()
        clean, redacted = self._redact(value)
        with self._engine.writing() as connection:
            count_redactions(connection, redacted)
            write_meta(connection, key, clean)


def _check_counters(name: str, amount: Any) -> None:
    kind = int if name in COUNTERS else int | float
    if isinstance(amount, bool) or not isinstance(amount, kind) or not abs(amount) < 2**62:
        what = "a whole number" if kind is int else "a number"
        raise SessionError(f"{name} must be {what}, not {str(amount)[:60]}.")
