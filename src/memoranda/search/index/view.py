"""Reads one index, in its file or in memory, for the length of a search: sets of documents, and their rows."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, assert_never

from memoranda.search.index import doc_sets
from memoranda.search.index.doc_sets import DocSet, decode, decode_bits, difference, intersection, union
from memoranda.search.index.message_text import SPOKEN, filter_token, kinds_for_roles
from memoranda.search.index.postings import (
    TITLE,
    And,
    Filters,
    Or,
    Pattern,
    Phrase,
    Posting,
    Prefix,
    Without,
    Word,
    has_phrase,
)
from memoranda.search.index.segments import Segment, read_segments
from memoranda.search.index.sequences import keep_with_sequences, phrase_bytes, read_sequences
from memoranda.search.index.tokenizer import is_single_character
from memoranda.search.index.vocabulary import words_with

_MAX_DEPTH = 40
_BATCH_SIZE = 480
_FILLED = 40
# What a view keeps for the next search: frequent words and filters, which are large and asked for again and again.
_MAX_KEPT_BYTES = 16_000_000
_MAX_KEPT_FILTERS = 8
_INTEGER_BYTES = 100
_LAST_CHARACTER = "\U0010ffff"
_MAX_LONGER = 200

# For each session its first document, the end of the last, how many it has, and how many of them are in the last places
# that all but one of them would take: so many, if at most the first one stands apart.
_EXTENTS = (
    "session, first, end, count, (SELECT count(*) FROM docs WHERE docs.session = extent.session AND doc > end - count)"
    " FROM (SELECT session, min(doc) AS first, max(doc) + 1 AS end, count(*) AS count FROM docs WHERE session IN"
)

_as_posting: Callable[[Iterable[Any]], Posting] = partial(tuple.__new__, Posting)
"""Like `Posting._make`, in half the time: a search has hundreds."""


class IndexView:
    """One consistent view of an index. Sets that were read are kept, because a search asks for the same ones again.

    The next search may use the view again, and the sets as well if nothing has changed since.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._version: int | None = None
        self.reload()

    def reload(self) -> None:
        """Forget what was read, after documents were added."""
        self._segments = {segment.number: segment for segment in read_segments(self.connection)}
        self._numbers = ", ".join(map(str, self._segments))
        self._stored: dict[str, list[tuple[Segment, int, bytes]]] = {}
        self._counts: dict[str, int] = {}
        # Those that were used last are at the end.
        self._sets: dict[str, DocSet] = {}
        self._size = 0
        self._allowed: dict[Filters, DocSet] = {}
        self._rows: dict[int, Posting] = {}

    def begin(self) -> None:
        """Begin a transaction, and forget what may have changed since the last one."""
        self.connection.execute("BEGIN")
        # It rises with every change by another connection, and this one changes nothing.
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.reload()
            self._version = version

    def end(self) -> None:
        """End the transaction; of what was read, only some sets stay in memory."""
        self.connection.execute("ROLLBACK")
        while self._size > _MAX_KEPT_BYTES and self._sets:
            self._size -= _memory_size(self._sets.pop(next(iter(self._sets))))
        if len(self._allowed) > _MAX_KEPT_FILTERS:
            self._allowed = {}
        self._stored, self._rows = {}, {}
        self._counts = {token: count for token, count in self._counts.items() if token in self._sets}

    def load(self, tokens: Collection[str]) -> None:
        """Read the sets of these tokens with one statement."""
        wanted = [token for token in dict.fromkeys(tokens) if token not in self._counts]
        if not wanted:
            return
        rows = self.connection.execute(
            "SELECT token, segment, count, docs FROM postings"
            f" WHERE segment IN ({self._numbers}) AND token IN ({placeholders(wanted)})",
            wanted,
        )
        self._stored |= {token: [] for token in wanted}
        for token, number, count, data in rows:
            _require_set(count, data)
            stored, segment = self._stored[token], self._segments[number]
            if stored and stored[-1][0] is segment:
                stored[-1] = (segment, count, stored[-1][2] + data)
            else:
                stored.append((segment, count, data))
        for token in wanted:
            self._counts[token] = sum(count for _, count, _ in self._stored[token])

    def count(self, token: str) -> int:
        """How many documents have a token, those included that were deleted since the last purge."""
        self.load((token,))
        return self._counts[token]

    def docs(self, token: str) -> DocSet:
        """The documents with a token."""
        if (found := self._sets.pop(token, None)) is None:
            self.load((token,))
            flags: dict[int, bytes] = {}
            bits: dict[int, int] = {}
            for segment, count, data in self._stored[token]:
                block = segment.block
                read = decode(count, data, *segment.offsets)
                if block in bits:
                    bits[block] |= int.from_bytes(read, "little")
                    flags.pop(block, None)
                else:
                    bits[block], flags[block] = int.from_bytes(read, "little"), read
            found = DocSet(bits, flags)
            self._size += _memory_size(found)
        self._sets[token] = found
        return found

    def match(self, pattern: Pattern, depth: int = 0, *, in_order: bool = True) -> DocSet:
        """The documents that match a pattern; with a phrase also a few that have its words apart.

        Without `in_order`, all that have the words of a phrase.
        """
        if depth > _MAX_DEPTH:
            return DocSet()
        match pattern:
            case Word(token):
                return self._with_prefix(token) if is_single_character(token) else self.docs(token)
            case Prefix(token):
                return self._with_prefix(token)
            case Phrase(tokens):
                self.load(tokens)
                words = self._all([Word(token) for token in dict.fromkeys(tokens)], depth, in_order)
                return self.keep_in_sequence(tokens, words, whole=True) if in_order else words
            case And(parts):
                return self._all(parts, depth, in_order)
            case Or(parts):
                return union([self.match(part, depth + 1, in_order=in_order) for part in parts])
            case Without(keep, drop):
                kept = self.match(keep, depth + 1, in_order=in_order)
                # Messages that only have the words of an excluded phrase must stay.
                return kept if has_phrase(drop) else difference(kept, self.match(drop, depth + 1))
            case _:
                assert_never(pattern)

    def keep_in_sequence(self, tokens: tuple[str, ...], docs: DocSet, *, whole: bool = False) -> DocSet:
        """Of documents with these tokens those that seem to have them in this order; `whole` if these are all."""
        name = " ".join(tokens)
        if name in self._sets:
            found = self._sets[name] = self._sets.pop(name)
            return found if whole else intersection(found, docs)
        found = keep_with_sequences(self.connection, docs, phrase_bytes(tokens))
        if whole:
            self._sets[name] = found
            self._size += _memory_size(found)
        return found

    def allowed(self, filters: Filters) -> DocSet:
        """The documents that pass the filters, except for messages that they name one by one."""
        if filters not in self._allowed:
            self._allowed[filters] = self._pass(filters)
        return self._allowed[filters]

    def of_kinds(self, kinds: Iterable[int]) -> DocSet:
        return self._any_of("kind", kinds)

    def spoken(self) -> DocSet:
        """What people and models said, and titles; not the output of tools."""
        return self.docs(SPOKEN)

    def of_sources(self, sources: Iterable[str]) -> DocSet:
        return self._any_of("source", sources)

    def rows(self, docs: Iterable[int]) -> dict[int, Posting]:
        """The postings of documents; those of deleted messages are missing."""
        wanted = list(docs)
        known = self._rows
        rest = [doc for doc in wanted if doc not in known]
        columns = "doc, message, session, place, role & 3, length, time FROM docs WHERE doc IN"
        known |= {row[0]: _as_posting(row[1:]) for row in self._select_in(columns, rest)}
        return {doc: known[doc] for doc in wanted if doc in known}

    def sequences(self, postings: Collection[Posting]) -> dict[Posting, bytes]:
        """The sequences of postings that this view has read."""
        wanted = frozenset(postings)
        docs = {doc: row for doc, row in self._rows.items() if row in wanted}
        return {docs[doc]: words for doc, words in read_sequences(self.connection, docs)}

    def docs_of_sessions(self, numbers: Collection[int]) -> list[int]:
        """The documents of sessions, rising. Those of a session are mostly consecutive, except for its title."""
        found: list[int] = []
        scattered: list[int] = []
        for session, first, end, count, last_run in self._select_in(_EXTENTS, numbers, "GROUP BY session) AS extent"):
            if last_run >= count - 1:
                found += (first, *range(end - count + 1, end))
            else:
                scattered.append(session)
        found += (doc for (doc,) in self._select_in("doc FROM docs WHERE session IN", scattered))
        return sorted(found)

    def _select_in(self, statement: str, values: Collection[int], order: str = "") -> Iterator[tuple[Any, ...]]:
        """The rows of a statement that ends with IN. Lists are filled up, so that few statements are compiled."""
        rest = iter(values)
        while batch := list(islice(rest, _BATCH_SIZE)):
            batch += batch[-1:] * (-len(batch) % _FILLED)
            yield from self.connection.execute(f"SELECT {statement} ({placeholders(batch)}) {order}", batch)

    def _all(self, parts: Iterable[Pattern], depth: int, in_order: bool) -> DocSet:
        found: DocSet | None = None
        for part in parts:
            docs = self.match(part, depth + 1, in_order=in_order)
            found = docs if found is None else intersection(found, docs)
            if not found:
                return DocSet()
        return found or DocSet()

    def _with_prefix(self, prefix: str) -> DocSet:
        """The documents with any token that begins so."""
        name = f"{prefix}*"
        if (found := self._sets.pop(name, None)) is None:
            found = DocSet()
            for segment in self._segments.values():
                rows = self.connection.execute(
                    "SELECT token, count, docs FROM postings WHERE segment = ? AND token >= ? AND token < ?"
                    " ORDER BY token, piece",
                    (segment.number, prefix, prefix + _LAST_CHARACTER),
                )
                stored: dict[str, tuple[int, bytes]] = {}
                for token, count, data in rows:
                    _require_set(count, data)
                    stored[token] = (count, stored[token][1] + data if token in stored else data)
                for count, data in stored.values():
                    block = segment.block
                    found[block] = found.get(block, 0) | decode_bits(count, data, *segment.offsets)
            self._size += _memory_size(found)
        self._sets[name] = found
        return found

    def longer_words(self, parts: Collection[str], *, inside: bool) -> dict[str, list[str]]:
        """For each text the words that begin with it, or with `inside` all that contain it; of very many, some."""
        if inside:
            words = words_with(self.connection, self._segments, parts, _MAX_LONGER)
            return {part: [word for word in words if part in word] for part in parts}
        statement = (
            f"SELECT DISTINCT token FROM postings WHERE segment IN ({self._numbers}) AND token > ? AND token < ?"
            f" LIMIT {_MAX_LONGER}"
        )
        return {
            part: [token for (token,) in self.connection.execute(statement, (part, part + _LAST_CHARACTER))]
            for part in parts
        }

    def _pass(self, filters: Filters) -> DocSet:
        found = self._within(filters.since, filters.until)
        if not filters.scope.all:
            found = intersection(found, self._any_of("user", (filters.scope.user,)))
        for column, values in filters.columns:
            found = intersection(found, self._any_of(column, values))
        if filters.excluded_sources:
            found = difference(found, self.of_sources(filters.excluded_sources))
        if filters.roles is not None:
            found = intersection(found, self.of_kinds((*kinds_for_roles(filters.roles), TITLE)))
        if not filters.titles:
            found = difference(found, self.of_kinds((TITLE,)))
        dead = [doc for (doc,) in self.connection.execute("SELECT doc FROM dead")]
        return difference(found, doc_sets.from_docs(dead)) if dead else found

    def _within(self, since: float | None, until: float | None) -> DocSet:
        """The documents that were written within a time."""
        low = float("-inf") if since is None else since
        high = float("inf") if until is None else until
        found = DocSet()
        for segment in self._segments.values():
            if segment.newest < low or segment.oldest > high:
                continue
            first, end = segment.offsets
            bits = (1 << end) - (1 << first)
            if segment.oldest < low or segment.newest > high:
                rows = self.connection.execute(
                    "SELECT doc FROM docs WHERE doc >= ? AND doc < ? AND time >= ? AND time <= ?",
                    (segment.first, segment.end, low, high),
                )
                bits = doc_sets.from_docs(doc for (doc,) in rows).get(segment.block, 0)
            found[segment.block] = found.get(segment.block, 0) | bits
        return found

    def _any_of(self, field: str, values: Iterable[object]) -> DocSet:
        tokens = [filter_token(field, value) for value in values]
        self.load(tokens)
        return union([self.docs(token) for token in tokens]) if tokens else DocSet()


def _memory_size(docs: DocSet) -> int:
    """About how many bytes a set takes in memory."""
    return sum((bits.bit_length() >> 2) + _INTEGER_BYTES for bits in docs.values())


def _require_set(count: object, data: object) -> None:
    """In a damaged page, columns may be missing."""
    if type(count) is not int or type(data) is not bytes:
        raise sqlite3.DatabaseError("a set of documents is damaged")


def placeholders(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
