"""From what was typed to conversations: strictly first, then relaxed by itself, and the answer says which.

Keywords are looked for together in one message, then together in neighbouring messages, then singly. A question is
ranked by how much of it a conversation holds. What is quoted, starred, grouped or excluded is meant as it stands, and
is given up only when it finds nothing; what is excluded stays excluded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memoranda.index.postings import TITLE, Filters, IndexedSession
from memoranda.index.reader import IndexReader
from memoranda.index.search_index import SearchIndex
from memoranda.recall.by_time import Sort
from memoranda.recall.finding import Finding, Outcome
from memoranda.recall.query import Query, Term, parse
from memoranda.recall.ranking import SessionScore

NOTHING_TYPED = "nothing to look for"
NOT_ALL = "So much matches that only the newest of it was looked at; add a word or a time."
_ROLES = ("user", "assistant", "tool", "session_title")
# Sessions that nobody sat in front of stand behind the others.
_BEHIND = frozenset({"cron"})
_MOST_MESSAGES = 100_000


@dataclass(frozen=True, slots=True)
class Hit:
    """One conversation, by the session in it that matches best."""

    session_id: str
    conversation_id: str
    message_id: int | None
    """The best message; None when only the title matched."""
    role: str
    score: float
    signals: Mapping[str, float]
    """What put it there, by name."""
    matches: int
    """How many messages of the conversation match, as far as they were looked at."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to a search. `how` says in words what was asked of the hits.

    `missing` occurs nowhere in what this user can see, whatever the filter leaves out.
    """

    query: Query
    hits: tuple[Hit, ...]
    how: str
    terms: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    matched_sessions: int = 0
    note: str | None = None
    unlisted: bool = False
    """Whether more matches, worse than the hits, so that it is not listed however many are asked for."""


class Search:
    """Searches one index."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index

    def find(
        self,
        text: str,
        filters: Filters,
        *,
        limit: int,
        sort: Sort | None = None,
        now: float,
        explain: bool = False,
    ) -> SearchResult:
        """The conversations that match best, or the newest or oldest of those that match.

        With `explain` every hit has its signals, also where the order does not need them.
        """
        query = parse(text)
        if not query.parts:
            return SearchResult(query, (), NOTHING_TYPED)
        with self._index.reading() as reader:
            hits: list[Hit] = []
            told = None
            for each in _in_order(filters, sort):
                # What was said first was mostly recorded first, and the newest records are looked at first.
                finding = Finding(reader, query, each, now, thorough=sort == "oldest")
                outcome = finding.conversations(limit, sort, explain=explain)
                if told is None or not hits:
                    told = outcome
                hits = _joined(hits, _fold(reader, outcome, sort, limit + len(hits)))
                if len(hits) >= limit:
                    break
            assert told is not None
            return SearchResult(
                query,
                tuple(hits[: max(0, limit)]),
                told.how,
                tuple(dict.fromkeys(term.text for term in query.terms)),
                _nowhere(reader, filters, told.missing),
                max(told.sessions, outcome.sessions),
                reader.note or (NOT_ALL if told.more else None),
                any(len(each.scores) < each.sessions for each in (told, outcome)),
            )

    def messages(
        self,
        text: str,
        filters: Filters,
        *,
        limit: int,
        offset: int = 0,
        sort: Sort | None = None,
        now: float = 0.0,
    ) -> list[int]:
        """The ids of the messages that match, best first; a negative limit means all."""
        query = parse(text)
        if not query.parts:
            return []
        most = _MOST_MESSAGES if limit < 0 else limit
        with self._index.reading() as reader:
            found = Finding(reader, query, filters, now).messages(offset + most, sort)
        return [row.message for row in found if row.role != TITLE][offset : offset + most]


def _in_order(filters: Filters, sort: Sort | None) -> tuple[Filters, ...]:
    """Where to look: first where people sat, so that the runs of a job cannot crowd them out, then everywhere."""
    behind = _BEHIND if filters.sources is None else _BEHIND & filters.sources
    if sort is not None or filters.excluded_sources >= behind or filters.sources == behind:
        return (filters,)
    return replace(filters, excluded_sources=filters.excluded_sources | behind), filters


def _nowhere(reader: IndexReader, filters: Filters, terms: Sequence[Term]) -> tuple[str, ...]:
    """Those of the terms that a search did not find and would not find without its filter either."""
    visible = Filters(filters.scope)
    return tuple(dict.fromkeys(term.text for term in terms if not reader.postings(term.pattern, visible, 1)))


def _joined(first: list[Hit], then: list[Hit]) -> list[Hit]:
    seen = {hit.conversation_id for hit in first}
    return first + [hit for hit in then if hit.conversation_id not in seen]


def _fold(reader: IndexReader, outcome: Outcome, sort: Sort | None, most: int) -> list[Hit]:
    """One hit per conversation, scheduled jobs last; the first of them."""
    sessions = reader.sessions([score.session for score in outcome.scores])
    best: dict[str, tuple[SessionScore, IndexedSession]] = {}
    matches: dict[str, int] = {}
    for score in outcome.scores:
        session = sessions.get(score.session)
        if session is None:
            # Gone since the index was asked.
            continue
        best.setdefault(session.conversation_id, (score, session))
        matches[session.conversation_id] = matches.get(session.conversation_id, 0) + score.matches
    found = list(best.values())
    if sort is None:
        found.sort(key=lambda each: each[1].source in _BEHIND)
    return [_hit(score, session, matches[session.conversation_id]) for score, session in found[: max(0, most)]]


def _hit(score: SessionScore, session: IndexedSession, matches: int) -> Hit:
    row = score.best
    return Hit(
        session.id,
        session.conversation_id,
        None if row.role == TITLE else row.message,
        _ROLES[row.role],
        score.score,
        score.signals,
        matches,
    )
