"""Answers a search from one consistent view of the index, and from the record for messages that are not indexed yet.

A search first selects the sessions whose messages have the most weight, out of the whole store, and reads only those.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from heapq import nlargest
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from memoranda.memory.record.feed import Feed, FeedMessage, Head
from memoranda.search.index.doc_sets import (
    DocSet,
    WeighedDocs,
    count_docs,
    difference,
    from_docs,
    intersection,
    masks_of,
    newest,
    union,
)
from memoranda.search.index.generations import describe_error
from memoranda.search.index.index_file import IndexState, read_state
from memoranda.search.index.phrase_order import is_in_order, read_texts
from memoranda.search.index.postings import (
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
    has_phrase,
    tokens_of,
)
from memoranda.search.index.tokenizer import is_single_character
from memoranda.search.index.unindexed_scan import FIRST_NUMBER, UnindexedScan
from memoranda.search.index.view import IndexView, placeholders
from memoranda.storage.position import START, Position

# Weights are rounded to so many steps.
_STEPS = 15
_SATURATION = 1.2
_ROUNDS = 4
# The weight of being preferred, as a share of all weights.
_PREFERENCE = 0.15


class Wanted(NamedTuple):
    """How much is chosen, and what is preferred."""

    docs: int = 80
    sessions: int = 30
    background: frozenset[str] = frozenset()
    """Sources whose messages must not crowd out the others."""
    also: frozenset[int] = frozenset()
    """Sessions that are chosen in any case."""

    def times(self, factor: int) -> "Wanted":
        return self._replace(docs=self.docs * factor, sessions=self.sessions * factor)


class BestSessions(NamedTuple):
    """The messages of the sessions that were chosen, each with the patterns that it matches: bits, in their order."""

    rows: list[tuple[Posting, int]]
    complete: bool
    """Whether every session that matches was chosen."""


class Selection:
    """The sessions of one view of the index whose messages have the highest sums of weights."""

    def __init__(
        self,
        view: IndexView,
        sets: Sequence[DocSet],
        weights: Sequence[float],
        allowed: DocSet,
        wanted: Wanted,
        counts: Callable[[Posting], bool],
        compare: Callable[[Sequence[int]], dict[int, DocSet]],
    ) -> None:
        """`sets` are the documents of each pattern, with these weights; rows that do not count are left out.

        `compare` returns those of some documents that have phrases for certain, by the numbers of the patterns.
        """
        self._view = view
        self._counts = counts
        self._compare = compare
        # What people and models said is preferred to the output of tools, and to what background sources repeat.
        preferred = view.spoken()
        if wanted.background:
            preferred = difference(preferred, view.of_sources(wanted.background))
        self._weighed = weigh(sets, weights, allowed, preferred)
        self._allowed = allowed
        self._sets = [*sets, preferred]
        self._weights = [*weights, _PREFERENCE * sum(weights)]
        self.complete = True
        """Whether every session that matches was chosen."""
        self.sessions = set(wanted.also)
        self._choose(wanted.docs, wanted.sessions)

    def rows(self, sessions: Collection[int]) -> list[tuple[Posting, int]]:
        """The messages of these sessions that match any pattern, newest first; the patterns of each as bits."""
        docs = self._view.docs_of_sessions(sessions)
        compared = self._compare(docs)
        sets = [compared.get(number, some) for number, some in enumerate(self._sets[:-1])]
        masks = masks_of(docs, sets, self._allowed)
        found = self._view.rows(sorted(masks, reverse=True))
        return [(row, masks[doc]) for doc, row in found.items() if self._counts(row)]

    def _choose(self, docs: int, sessions: int) -> None:
        """Choose sessions by their heaviest documents: the more of the weights these have together, the better."""
        among = self._weighed.any
        by_session: dict[int, list[int]] = {}
        for _ in range(_ROUNDS):
            chosen = self._weighed.heaviest(among, docs)
            for doc, row in self._view.rows(chosen).items():
                if self._counts(row):
                    by_session.setdefault(row[1], []).append(doc)
            exhausted = len(chosen) < docs
            if exhausted or len(by_session) >= sessions:
                break
            # A few sessions have all of these documents, so the next round looks at the others.
            among = difference(among, from_docs([*chosen, *self._view.docs_of_sessions(by_session)]))
        self.complete = self.complete and exhausted and len(by_session) <= sessions
        if len(by_session) > sessions:
            promise = self._promises(by_session)
            self.sessions.update(nlargest(sessions, promise, key=promise.__getitem__))
        else:
            self.sessions.update(by_session)

    def _promises(self, by_session: Mapping[int, Sequence[int]]) -> dict[int, float]:
        """For each session, the weight of its heaviest document, and how much all of its documents have together."""
        totals = dict.fromkeys(sorted(chain.from_iterable(by_session.values())), 0.0)
        session_of = {doc: session for session, docs in by_session.items() for doc in docs}
        together = dict.fromkeys(by_session, 0.0)
        for docs, weight in zip(self._sets, self._weights, strict=True):
            counts: dict[int, int] = {}
            for doc in docs.keep(totals):
                totals[doc] += weight
                session = session_of[doc]
                counts[session] = counts.get(session, 0) + 1
            for session, count in counts.items():
                together[session] += weight * count / (count + _SATURATION)
        return {session: together[session] + max(map(totals.__getitem__, by_session[session])) for session in together}


def weigh(
    sets: Sequence[DocSet], weights: Sequence[float], allowed: DocSet, preferred: DocSet | None = None
) -> WeighedDocs:
    """Add up the weights of the sets for each document that is allowed."""
    unit = max(weights, default=1.0) / _STEPS
    steps = [max(1, round(weight / unit)) for weight in weights]
    bonus = None if preferred is None else (preferred, max(1, round(_PREFERENCE * sum(steps))))
    return WeighedDocs(list(zip(sets, steps, strict=True)), allowed, bonus)


_Answer = TypeVar("_Answer")

_BATCH_SIZE = 500
# Of so many messages with the words of a phrase at least, the order of words is compared at once.
_COMPARED_AT_ONCE = 200
_MAX_AT_ONCE = 5_000


class IndexConnection(NamedTuple):
    """A view of the index file, and the function to call if reading it fails."""

    view: IndexView
    on_error: Callable[[sqlite3.DatabaseError], None]


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
        self._messages: dict[int, FeedMessage | None] = {}
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
            indexed, total = map(self._feed.count_up_to, (self._state.message, self._head.message))
            share = 100 * indexed // max(total, 1)
            note = f"{share} % of the messages are indexed; the rest was searched directly"
        if self._problem is not None:
            note += f" (the index cannot be used: {self._problem})"
        if self._scan.partial:
            note += ". There were so many matches that only the newest were searched"
        return note + "."

    def postings(self, pattern: Pattern, filters: Filters, limit: int) -> list[Posting]:
        """The postings that match, newest first."""
        # The file comes first: if it turns out to be damaged, everything is scanned.
        found = self._ask_file(lambda view: self._matching(view, pattern, filters, limit)) or []
        if self._scan is not None:
            self._scan.prepare(pattern)
            found = self._matching(self._scan.view, pattern, filters, limit) + found
        if self._stale:
            found.sort(key=lambda posting: posting.message, reverse=True)
        return found[:limit]

    def frequency(self, pattern: Pattern) -> int:
        """How many messages and titles match; of a phrase, how many have its words."""
        if pattern in self._counts:
            return self._counts[pattern]
        counted = self._ask_file(lambda view: _count(view, pattern)) or 0
        if self._scan is not None:
            self._scan.prepare(pattern)
            counted += _count(self._scan.view, pattern)
        else:
            # A reader that reads the record as well has no exact count, or had to do without the file.
            self._counts[pattern] = counted
        return counted

    def prepare(self, patterns: Iterable[Pattern]) -> None:
        """Read the words of patterns together, which is faster than one by one."""
        tokens = {token for pattern in patterns for token in tokens_of(pattern) if not is_single_character(token)}
        self._ask_file(lambda view: view.load(sorted(tokens)))

    def best_sessions(
        self,
        weighted: Sequence[tuple[Pattern, float]],
        filters: Filters,
        excluded: Pattern | None,
        wanted: Wanted,
    ) -> BestSessions:
        """The messages of the sessions whose messages weigh most, out of the whole store."""
        select = partial(self._select, weighted=weighted, filters=filters, excluded=excluded, wanted=wanted)
        indexed = self._ask_file(select)
        selections = [] if indexed is None else [indexed]
        if self._scan is not None:
            for pattern, _ in weighted:
                self._scan.prepare(pattern)
            selections.append(select(self._scan.view))
        sessions = set().union(*(selection.sessions for selection in selections))
        found: list[tuple[Posting, int]] = []
        for selection in reversed(selections):
            read = partial(_read_rows, selection, sessions)
            rows = self._ask_file(read) if selection is indexed else read()
            if rows is None:
                # The file has just turned out to be damaged, so everything comes from the record.
                return self.best_sessions(weighted, filters, excluded, wanted)
            found += rows
        return BestSessions(found, all(selection.complete for selection in selections))

    def heaviest(
        self, weighted: Sequence[tuple[Pattern, float]], among: Pattern, filters: Filters, limit: int
    ) -> list[Posting]:
        """Of the messages that match `among`, those with the highest weights, best first."""

        def choose(view: IndexView) -> list[tuple[float, Posting]]:
            allowed = intersection(view.match(among), view.allowed(filters))
            sets = [view.match(pattern) for pattern, _ in weighted]
            weighed = weigh(sets, [weight for _, weight in weighted], allowed)
            rows = view.rows(weighed.heaviest(allowed, limit))
            return [
                (sum(weight for docs, (_, weight) in zip(sets, weighted, strict=True) if docs.has_doc(doc)), row)
                for doc, row in rows.items()
                if self._counts_in(view, row, filters)
            ]

        found = self._ask_file(choose) or []
        if self._scan is not None:
            self._scan.prepare(Or(tuple(pattern for pattern, _ in weighted)))
            found += choose(self._scan.view)
        found.sort(key=lambda weighed: (-weighed[0], -weighed[1].time))
        return [row for _, row in found[:limit]]

    def occurs(self, pattern: Pattern, filters: Filters) -> bool:
        """Whether anything that passes the filters matches, or seems to have a phrase."""

        def has_any(view: IndexView) -> bool:
            return bool(intersection(view.match(pattern), view.allowed(filters)))

        if self._ask_file(has_any):
            return True
        if self._scan is None:
            return False
        self._scan.prepare(pattern)
        return has_any(self._scan.view)

    def longer_words(self, parts: Collection[str], *, inside: bool) -> dict[str, list[str]]:
        """For each text the words that begin with it, or with `inside` all that contain it; of very many, some."""
        found = self._ask_file(lambda view: view.longer_words(parts, inside=inside)) or {}
        if self._scan is not None:
            self._scan.prepare(Or(tuple(map(Word, parts))))
            others = self._scan.view.longer_words(parts, inside=inside)
            found = {part: list(dict.fromkeys([*found.get(part, ()), *others[part]])) for part in parts}
        return found

    def size(self) -> IndexSize:
        """How much a search can find; messages that are not indexed are estimated."""
        if self._state is None:
            total = self._feed.count_up_to(self._head.message)
            return IndexSize(total, max(1, total // 20), total * 100)
        state = self._state
        missing = 0
        if state.message < self._head.message:
            indexed, total = map(self._feed.count_up_to, (state.message, self._head.message))
            missing = max(0, total - indexed)
        average = state.tokens / state.messages if state.messages else 100
        return IndexSize(state.messages + missing, state.sessions, state.tokens + int(missing * average))

    def sessions(self, numbers: Collection[int]) -> dict[int, IndexedSession]:
        """The sessions with these numbers; deleted ones are missing."""
        found: dict[int, IndexedSession] = {}
        if self._scan is not None:
            found |= _fetch_sessions(self._scan.view.connection, numbers)
        rest = [number for number in numbers if number not in found]
        return found | (self._ask_file(lambda view: _fetch_sessions(view.connection, rest)) or {})

    def view_in_file(self) -> AbstractContextManager[None]:
        """In the block, all reads from a record in a file see the same state, which is faster."""
        return self._feed.view_in_file()

    def messages(self, ids: Collection[int]) -> dict[int, FeedMessage]:
        """The messages with these ids, from the record; those that were read before are not read again."""
        if missing := [number for number in ids if number not in self._messages]:
            self._messages |= dict.fromkeys(missing) | self._feed.messages_by_id(missing)
        return {number: message for number in ids if (message := self._messages[number]) is not None}

    def sequences(self, postings: Collection[Posting]) -> dict[Posting, bytes]:
        """The words of some messages in their order, see `sequences`; only of messages that were read before."""
        found = self._ask_file(lambda view: view.sequences(postings)) or {}
        return found if self._scan is None else found | self._scan.view.sequences(postings)

    def messages_from(self, session_id: str, first_id: int, limit: int) -> list[FeedMessage]:
        """The messages of a session from an id on, from the record."""
        return self._feed.messages_from(session_id, first_id, limit)

    def close(self) -> None:
        if self._scan is not None:
            self._scan.close()

    def _begin(self, view: IndexView) -> None:
        state = read_state(view.connection)
        if state.change < self._head.change:
            # Another process applies these changes; until then their sessions are read from the record.
            changed = self._changed_since(state.change)
            found = (_find_number(view.connection, session_id) for session_id in changed)
            self._stale = {number for number in found if number is not None}
            if not self._feed.lists_deletions:
                existing = self._feed.session_ids()
                rows = view.connection.execute("SELECT number, id FROM sessions")
                self._stale |= {number for number, session_id in rows if session_id not in existing}
            self._state = state
            self._start_scan()
            assert self._scan is not None
            self._scan.add_sessions(changed)
        self._state = state

    def _changed_since(self, position: Position) -> set[str]:
        found: set[str] = set()
        while changes := self._feed.changes_after(position, _BATCH_SIZE, visible=True):
            found.update(change.session_id for change in changes)
            position = changes[-1].position
        return found

    def _start_scan(self) -> None:
        if self._scan is None:
            after = START if self._state is None else self._state.message
            self._scan = UnindexedScan(self._feed, after, self._head.message, self._number_of)

    def _number_of(self, session_id: str) -> int | None:
        return self._ask_file(lambda view: _find_number(view.connection, session_id))

    def _select(
        self,
        view: IndexView,
        weighted: Sequence[tuple[Pattern, float]],
        filters: Filters,
        excluded: Pattern | None,
        wanted: Wanted,
    ) -> Selection:
        allowed = view.allowed(filters)
        sets = [view.match(pattern) for pattern, _ in weighted]
        if excluded is not None:
            allowed = difference(allowed, self._in_order(view, excluded, intersection(allowed, union(sets))))
        phrases = {number: pattern for number, (pattern, _) in enumerate(weighted) if has_phrase(pattern)}

        def compare(docs: Sequence[int]) -> dict[int, DocSet]:
            among = intersection(from_docs(docs), allowed) if phrases else DocSet()
            return {number: self._in_order(view, pattern, among) for number, pattern in phrases.items()}

        weights = [weight for _, weight in weighted]
        return Selection(view, sets, weights, allowed, wanted, lambda row: self._counts_in(view, row, filters), compare)

    def _counts_in(self, view: IndexView, row: Posting, filters: Filters) -> bool:
        """Whether a row of a view counts: not if the other view has it, or the filters exclude its message."""
        if row[0] in filters.without:
            return False
        if self._scan is not None and view is self._scan.view:
            # The index file also has the title.
            return row[3] != TITLE or row[1] >= FIRST_NUMBER or row[1] in self._stale
        return row[1] not in self._stale

    def _in_order(self, view: IndexView, pattern: Pattern, among: DocSet, limit: int | None = None) -> DocSet:
        """Those of the documents that match, at least the newest `limit`."""
        rest = intersection(view.match(pattern, in_order=False), among)
        if limit is None or not has_phrase(pattern):
            return self._keep_in_order(view, pattern, rest)
        found = DocSet()
        size, seen, count = _COMPARED_AT_ONCE, 0, 0
        while rest and count < limit:
            some = rest if count_docs(rest) <= size else from_docs(newest(rest, size))
            rest = difference(rest, some)
            found = union([found, self._keep_in_order(view, pattern, some)])
            seen, count = seen + size, count_docs(found)
            # Those that are still wanted are likely to be among so many.
            likely = (limit - count) * seen // max(count, 1)
            size = min(4 * seen, _COMPARED_AT_ONCE + likely)
        return found

    def _keep_in_order(self, view: IndexView, pattern: Pattern, docs: DocSet) -> DocSet:
        """Those of the documents that match; texts are read only where the index does not know."""
        if isinstance(pattern, Word | Prefix) or not has_phrase(pattern):
            return intersection(view.match(pattern), docs)
        match pattern:
            case Phrase():
                with_words = intersection(view.match(pattern, in_order=False), docs)
                return from_docs(self._with_phrase(view, pattern, view.keep_in_sequence(pattern.tokens, with_words)))
            case And(parts):
                for part in sorted(parts, key=has_phrase):
                    docs = self._keep_in_order(view, part, docs)
                return docs
            case Or(parts):
                found = DocSet()
                for part in sorted(parts, key=has_phrase):
                    found = union([found, self._keep_in_order(view, part, difference(docs, found))])
                return found
            case Without(keep, drop):
                kept = self._keep_in_order(view, keep, docs)
                return difference(kept, self._keep_in_order(view, drop, kept))

    def _with_phrase(self, view: IndexView, phrase: Phrase, docs: DocSet) -> Iterator[int]:
        """Those of the documents whose texts have a phrase; not all texts are in memory at once."""
        rest = newest(docs)
        while some := list(islice(rest, _COMPARED_AT_ONCE)):
            rows = view.rows(some)
            texts = read_texts(rows.values(), self._feed.messages_by_id, self.sessions)
            yield from (doc for doc, row in rows.items() if row in texts and is_in_order(texts[row], phrase))

    def _matching(self, view: IndexView, pattern: Pattern, filters: Filters, limit: int) -> list[Posting]:
        """The documents of one view that match, newest first."""
        allowed = view.allowed(filters)
        spare = len(filters.without)
        # Of an index that is being read from the record as well, not all documents count.
        docs = newest(self._in_order(view, pattern, allowed, limit + spare if self._scan is None else None))
        found: list[Posting] = []
        while len(found) < limit and (batch := list(islice(docs, min(limit - len(found) + spare, _MAX_AT_ONCE)))):
            found += (row for row in view.rows(batch).values() if self._counts_in(view, row, filters))
        return found

    def _ask_file(self, ask: Callable[[IndexView], _Answer]) -> _Answer | None:
        """Run a query on the file; None without a file, or if it fails and all messages must be scanned."""
        if self._view is None:
            return None
        try:
            return ask(self._view.view)
        except sqlite3.DatabaseError as error:
            self._problem = describe_error(error)
            self._view.on_error(error)
        self._view, self._state, self._stale = None, None, set()
        self.close()
        self._scan = None
        self._start_scan()
        return None


def _read_rows(
    selection: Selection, sessions: Collection[int], _: IndexView | None = None
) -> list[tuple[Posting, int]]:
    """The rows of a selection, which has a view of its own."""
    return selection.rows(sessions)


def _count(view: IndexView, pattern: Pattern) -> int:
    if isinstance(pattern, Word) and not is_single_character(pattern.token):
        return view.count(pattern.token)
    return count_docs(view.match(pattern, in_order=False))


def _find_number(connection: sqlite3.Connection, session_id: str) -> int | None:
    row = connection.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else int(row[0])


def _fetch_sessions(connection: sqlite3.Connection, numbers: Collection[int]) -> dict[int, IndexedSession]:
    found: dict[int, IndexedSession] = {}
    rest = iter(numbers)
    while batch := list(islice(rest, _BATCH_SIZE)):
        rows = connection.execute(
            "SELECT number, id, conversation, user, source, title, started"
            f" FROM sessions WHERE number IN ({placeholders(batch)})",
            batch,
        )
        found |= {row[0]: IndexedSession(*row[1:]) for row in rows}
    return found
