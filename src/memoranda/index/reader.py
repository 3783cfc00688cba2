"""Reads one consistent view of the index for the length of a search, and builds its full-text queries."""

import sqlite3
from collections.abc import Callable, Collection
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar, assert_never

from memoranda.db.position import START, Position
from memoranda.index.index_file import IndexState, read_state
from memoranda.index.message_text import kinds_for_roles
from memoranda.index.phrase_order import keep_in_order
from memoranda.index.postings import (
    TITLE,
    And,
    Filters,
    IndexedSession,
    IndexSize,
    Or,
    Pattern,
    Phrase,
    Posting,
    Prefix,
    Without,
    Word,
)
from memoranda.index.sqlite_errors import describe_error
from memoranda.index.tokenizer import is_single_character, is_unspaced
from memoranda.index.unindexed_scan import FIRST_NUMBER, UnindexedScan
from memoranda.sessions.feed import Feed, FeedMessage, Head

_Answer = TypeVar("_Answer")

_MAX_COUNTED = 20_000
_BATCH_SIZE = 500
Table = Literal["words", "pairs"]

# SQLite's parser has a limit, far beyond what people type.
_MAX_DEPTH = 40


class IndexConnection(NamedTuple):
    """A connection to the index file, and the function to call if it fails."""

    connection: sqlite3.Connection
    on_error: Callable[[sqlite3.DatabaseError], None]


class MatchQuery(NamedTuple):
    """A pattern for the full-text tables: a MATCH expression for one of them, or SQL for row numbers.

    If one table has all tokens of a pattern, it is one MATCH expression. A pattern that needs both tables (`table` is
    None) combines the row numbers that its parts find.
    """

    table: Table | None
    text: str
    values: tuple[str, ...] = ()

    def rows(self) -> "MatchQuery":
        """The same query as SQL for row numbers."""
        if self.table is None:
            return self
        return MatchQuery(None, f"SELECT rowid FROM {self.table} WHERE {self.table} MATCH ?", (self.text,))


class IndexReader:
    """Answers from the index file, and from the record for messages that are not indexed yet."""

    def __init__(
        self, feed: Feed, head: Head, view: IndexConnection | None, problem: str | None, counts: dict[Pattern, int]
    ) -> None:
        """`counts` has the frequencies that other readers of the same record counted; this one adds its own."""
        self._feed = feed
        self._head = head
        self._view = view
        self._problem = problem
        self._counts = counts
        self._scan: UnindexedScan | None = None
        self._stale: set[int] = set()
        self._state: IndexState | None = None
        self._ask_file(self._begin)
        if self._state is None or self._state.message < head.message:
            self._start_scan()

    @property
    def note(self) -> str | None:
        """A sentence for the user if the index is not complete; None if it is."""
        if self._scan is None or (self._scan.reads_all and self._state is not None):
            return None
        if self._state is None:
            note = "The index does not exist yet, so the messages were searched directly"
        else:
            share = 100 * self._state.message.count // max(self._head.message.count, 1)
            note = f"{share} % of the messages are indexed; the rest was searched directly"
        if self._problem is not None:
            note += f" (the index cannot be used: {self._problem})"
        if self._scan.partial:
            note += ". There were so many matches that only the newest were searched"
        return note + "."

    def postings(self, pattern: Pattern, filters: Filters, limit: int) -> list[Posting]:
        """The postings that match, newest first."""
        query = match_query(pattern)
        if query is None:
            return []
        statement, values = _statement(query, filters)
        values.append(limit)
        indexed = self._ask_file(lambda connection: self._fetch_indexed(connection, statement, values, limit))
        found: list[Posting] = []
        if self._scan is not None:
            self._scan.prepare(pattern)
            rows = self._scan.connection.execute(statement, values)
            found = [Posting._make(row) for row in rows if not self._is_indexed_title(row[3], row[1])]
        found += indexed or []
        if self._stale:
            found.sort(key=lambda posting: posting.message, reverse=True)
        found = found[:limit]
        return keep_in_order(found, pattern, self._feed.messages_by_id) if _needs_order(pattern) else found

    def frequency(self, pattern: Pattern) -> int:
        """How many messages and titles match; counting stops at `_MAX_COUNTED`."""
        if pattern in self._counts:
            return self._counts[pattern]
        query = match_query(pattern)
        if query is None:
            return 0
        counted = self._ask_file(lambda connection: _count(connection, query)) or 0
        if self._scan is not None:
            self._scan.prepare(pattern)
            counted += _count(self._scan.connection, query)
        else:
            # A reader that reads the record as well has no exact count, or had to do without the file.
            self._counts[pattern] = counted
        return counted

    def size(self) -> IndexSize:
        """How much a search can find; messages that are not indexed are estimated."""
        counted = self._ask_file(_count_sessions)
        if self._state is None or counted is None:
            total = self._head.message.count
            return IndexSize(total, max(1, total // 20), total * 100)
        state = self._state
        behind = state.message < self._head.message
        missing = max(0, self._head.message.count - state.message.count) if behind else 0
        average = state.tokens / state.messages if state.messages else 100
        return IndexSize(state.messages + missing, counted, state.tokens + int(missing * average))

    def sessions(self, numbers: Collection[int]) -> dict[int, IndexedSession]:
        """The sessions with these numbers; deleted ones are missing."""
        found: dict[int, IndexedSession] = {}
        if self._scan is not None:
            found |= _fetch_sessions(self._scan.connection, numbers)
        rest = [number for number in numbers if number not in found]
        return found | (self._ask_file(lambda connection: _fetch_sessions(connection, rest)) or {})

    def may_have_source(self, sources: Collection[str]) -> bool:
        """Whether a session comes from one of these sources; True while some messages are not indexed."""
        found = self._ask_file(lambda connection: _has_source(connection, sources))
        return self._scan is not None or found is not False

    def messages(self, ids: Collection[int]) -> dict[int, FeedMessage]:
        """The messages with these ids, from the record."""
        return self._feed.messages_by_id(ids)

    def messages_from(self, session_id: str, first_id: int, limit: int) -> list[FeedMessage]:
        """The messages of a session from an id on, from the record."""
        return self._feed.messages_from(session_id, first_id, limit)

    def close(self) -> None:
        if self._scan is not None:
            self._scan.close()

    def _begin(self, connection: sqlite3.Connection) -> None:
        state = read_state(connection)
        if state.change < self._head.change:
            # Another process applies these changes; until then their sessions are read from the record.
            changed = self._changed_since(state.change)
            found = (_find_number(connection, session_id) for session_id in changed)
            self._stale = {number for number in found if number is not None}
            self._state = state
            self._start_scan()
            assert self._scan is not None
            self._scan.add_sessions(changed)
        self._state = state

    def _changed_since(self, position: Position) -> set[str]:
        found: set[str] = set()
        while changes := self._feed.changes_after(position, _BATCH_SIZE):
            found.update(change.session_id for change in changes)
            position = changes[-1].position
        return found

    def _start_scan(self) -> None:
        if self._scan is None:
            after = START if self._state is None else self._state.message
            self._scan = UnindexedScan(self._feed, after, self._head.message, self._number_of)

    def _is_indexed_title(self, role: int, session: int) -> bool:
        """Whether the index file also has this title."""
        return role == TITLE and session < FIRST_NUMBER and session not in self._stale

    def _number_of(self, session_id: str) -> int | None:
        return self._ask_file(lambda connection: _find_number(connection, session_id))

    def _fetch_indexed(
        self, connection: sqlite3.Connection, statement: str, values: list[object], limit: int
    ) -> list[Posting]:
        if not self._stale:
            return list(map(_as_posting, connection.execute(statement, values)))
        rows = connection.execute(statement, [*values[:-1], -1])
        return [Posting._make(row) for row in islice((row for row in rows if row[1] not in self._stale), limit)]

    def _ask_file(self, ask: Callable[[sqlite3.Connection], _Answer]) -> _Answer | None:
        """Run a query on the file; None without a file, or if it fails and all messages must be scanned."""
        if self._view is None:
            return None
        try:
            return ask(self._view.connection)
        except sqlite3.DatabaseError as error:
            self._problem = describe_error(error)
            self._view.on_error(error)
        self._view, self._state, self._stale = None, None, set()
        self.close()
        self._scan = None
        self._start_scan()
        return None


_as_posting: Callable[[tuple[Any, ...]], Posting] = partial(tuple.__new__, Posting)
"""Like `Posting._make`, in half the time: a search has thousands."""


def _statement(query: MatchQuery, filters: Filters) -> tuple[str, list[object]]:
    """The SELECT for a query and its values, without the last one: the limit."""
    conditions, values = _session_conditions(filters)
    join = " CROSS JOIN sessions s ON s.number = d.session" if conditions else ""
    if filters.roles is not None:
        kinds = kinds_for_roles(filters.roles)
        conditions.append(f"(d.role IN ({_placeholders(kinds)}) OR d.role = {TITLE})")
        values += kinds
    if not filters.titles:
        conditions.append(f"d.role <> {TITLE}")
    if filters.without:
        # SQLite limits the number of values; these are integers, so they are safe in the text of the statement.
        conditions.append(f"d.message NOT IN ({', '.join(map(str, sorted(filters.without)))})")
    for bound, operator in ((filters.since, ">="), (filters.until, "<=")):
        if bound is not None:
            conditions.append(f"d.time {operator} ?")
            values.append(bound)
    where = "".join(f" AND {condition}" for condition in conditions)
    columns = "SELECT d.message, d.session, d.place, d.role & 3, d.length, d.time"
    if query.table is None:
        source = f"FROM docs d{join} WHERE d.doc IN ({query.text}){where} ORDER BY d.doc DESC"
        return f"{columns} {source} LIMIT ?", [*query.values, *values]
    source = (
        f"FROM {query.table} t CROSS JOIN docs d ON d.doc = t.rowid{join}"
        f" WHERE t.{query.table} MATCH ?{where} ORDER BY t.rowid DESC"
    )
    return f"{columns} {source} LIMIT ?", [query.text, *values]


def _session_conditions(filters: Filters) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    if not filters.scope.all:
        conditions.append("s.user IS ?")
        values.append(filters.scope.user)
    if filters.sources is not None:
        conditions.append(f"s.source IN ({_placeholders(filters.sources)})")
        values += sorted(filters.sources)
    if filters.excluded_sources:
        conditions.append(f"s.source NOT IN ({_placeholders(filters.excluded_sources)})")
        values += sorted(filters.excluded_sources)
    if filters.projects is not None:
        conditions.append(f"s.project IN ({_placeholders(filters.projects)})")
        values += sorted(filters.projects)
    return conditions, values


def _count(connection: sqlite3.Connection, query: MatchQuery) -> int:
    rows = query.rows()
    (count,) = connection.execute(
        f"SELECT count(*) FROM (SELECT * FROM ({rows.text}) LIMIT {_MAX_COUNTED})", rows.values
    ).fetchone()
    return int(count)


def _count_sessions(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
    return int(count)


def _has_source(connection: sqlite3.Connection, sources: Collection[str]) -> bool:
    statement = f"SELECT 1 FROM sessions WHERE source IN ({_placeholders(sources)}) LIMIT 1"
    return connection.execute(statement, tuple(sources)).fetchone() is not None


def _find_number(connection: sqlite3.Connection, session_id: str) -> int | None:
    row = connection.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else int(row[0])


def _fetch_sessions(connection: sqlite3.Connection, numbers: Collection[int]) -> dict[int, IndexedSession]:
    found: dict[int, IndexedSession] = {}
    rest = iter(numbers)
    while batch := list(islice(rest, _BATCH_SIZE)):
        rows = connection.execute(
            "SELECT number, id, conversation, user, source, title, started"
            f" FROM sessions WHERE number IN ({_placeholders(batch)})",
            batch,
        )
        found |= {row[0]: IndexedSession(*row[1:]) for row in rows}
    return found


def _placeholders(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def match_query(pattern: Pattern, depth: int = 0) -> MatchQuery | None:
    """The query for a pattern; None if nothing can match it. It is never a syntax error."""
    if depth > _MAX_DEPTH:
        return None
    match pattern:
        case Word(token):
            return _phrase((token,))
        case Prefix(token):
            return _match((token,), " *")
        case Phrase(tokens):
            return _phrase(tokens)
        case And(parts):
            queries = [match_query(part, depth + 1) for part in parts]
            return None if None in queries else _combine("AND", "INTERSECT", [part for part in queries if part])
        case Or(parts):
            queries = [match_query(part, depth + 1) for part in parts]
            return _combine("OR", "UNION", [part for part in queries if part])
        case Without(keep, drop):
            kept, dropped = match_query(keep, depth + 1), match_query(drop, depth + 1)
            return _combine("NOT", "EXCEPT", [kept, dropped]) if kept and dropped else kept
        case _:
            assert_never(pattern)


def _phrase(tokens: tuple[str, ...]) -> MatchQuery | None:
    """The query for a phrase: words must follow each other; pairs of unspaced scripts must only all occur."""
    pieces: list[tuple[str, ...]] = []
    for token in tokens:
        if pieces and not is_unspaced(token) and not is_unspaced(pieces[-1][-1]):
            pieces[-1] += (token,)
        else:
            pieces.append((token,))
    # Every character of a run begins some token.
    queries = [_match(piece, " *" if is_single_character(piece[-1]) else "") for piece in dict.fromkeys(pieces)]
    return None if None in queries else _combine("AND", "INTERSECT", [part for part in queries if part])


def _match(tokens: tuple[str, ...], ending: str) -> MatchQuery | None:
    plain = all(token and all(c.isalnum() or not c.isascii() for c in token) for token in tokens)
    if not plain:
        return None
    return MatchQuery("pairs" if is_unspaced(tokens[0]) else "words", f'"{" ".join(tokens)}"{ending}')


def _combine(operator: str, compound: str, parts: list[MatchQuery]) -> MatchQuery | None:
    if not parts:
        return None
    if operator != "NOT":
        parts = [joined for table in ("words", "pairs", None) for joined in _merge_table(table, operator, parts)]
    if len(parts) == 1:
        return parts[0]
    if len({part.table for part in parts}) == 1 and parts[0].table is not None:
        return MatchQuery(parts[0].table, _join_expressions(operator, parts))
    rows = [part.rows() for part in parts]
    text = f" {compound} ".join(f"SELECT * FROM ({part.text})" for part in rows)
    return MatchQuery(None, text, tuple(value for part in rows for value in part.values))


def _merge_table(table: Table | None, operator: str, parts: list[MatchQuery]) -> list[MatchQuery]:
    """The parts for one table, joined into one; parts for both tables stay separate."""
    found = [part for part in parts if part.table == table]
    return [MatchQuery(table, _join_expressions(operator, found))] if table is not None and len(found) > 1 else found


def _join_expressions(operator: str, parts: list[MatchQuery]) -> str:
    return f" {operator} ".join(f"({part.text})" for part in parts)


def _needs_order(pattern: Pattern) -> bool:
    match pattern:
        case Phrase(in_order=in_order):
            return in_order
        case And(parts) | Or(parts):
            return any(map(_needs_order, parts))
        case Without(keep, _):
            return _needs_order(keep)
        case _:
            return False
