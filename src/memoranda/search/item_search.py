"""Searches items with the index code of conversations, over an index file of their own.

Items and messages have separate files, so that no item changes which conversations a search finds, or their order.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.items import ItemRow, Items, check_filter, check_page, passes, searchable_text
from memoranda.memory.record.scope import Scope
from memoranda.search import ranking
from memoranda.search.index.postings import Filters
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.legs.leg import ComparesTexts, MakeRescorers, RescoringContext
from memoranda.search.legs.term_fetcher import TermFetcher
from memoranda.search.query import Query, find_perspective, parse
from memoranda.search.ranking import MaskValues, RankingContext
from memoranda.types import FoundItem

# How many more items are ranked than asked for, since filters and expiry remove some of them; then it is doubled.
_SPARE = 200
_MAX_RANKED = 20_000
_MAX_LITERAL = 20_000
_MAX_FACTOR = 200
# How much of the score is the order among items with the same words: length, words side by side, age.
_ORDER_SHARE = 0.2
# How many of the latest items are compared by meaning, besides those that have words of the query.
_MAX_COMPARED = 2_000
# Who searches items gets what is nearest, as in a store of vectors; below this, texts have nothing in common.
_MIN_LIKENESS = 0.1


class ItemSearch:
    """Finds the items of one user by their words and, if a rescorer compares texts, by what they mean."""

    def __init__(self, index: SearchIndex, items: Items, scope: Scope, rescorers: Sequence[MakeRescorers] = ()) -> None:
        self._index = index
        self._items = items
        self._filters = Filters(scope, titles=False)
        self._rescorers = rescorers

    def search(
        self,
        prefix: Sequence[str] = (),
        query: str | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[FoundItem]:
        """The items under a namespace that have words of the query, best first; without a query, the latest first.

        The score is the share of the query's weight that an item has: a rare word weighs more than a common one, and
        an item with every word has the highest. Quoted phrases, prefixes* and -exclusions must hold. With search by
        meaning, the score of an item that is more alike to the query than its words say is its likeness.
        """
        if query is not None and not isinstance(query, str):
            raise SessionError(f"A query must be text, not {type(query).__name__}.")
        if query is None or not query.strip():
            listed = self._items.list_items(prefix, filters=filters, limit=limit, offset=offset, refresh=refresh)
            return [FoundItem(item, None, searchable_text("", item.value, None).strip()) for item in listed]
        wanted = check_filter(filters or {})
        check_page(limit, offset)
        namespaces = frozenset(self._items.namespaces_under(prefix)) if prefix else None
        parsed = parse(query)
        if not limit or not parsed.parts or namespaces == frozenset():
            return []
        visible = self._filters.with_values("project", namespaces)
        found = self._read(parsed, visible, wanted, offset + limit)
        found = self._add_meaning(parsed, visible, prefix, wanted, found)
        chosen = found[offset : offset + limit]
        rows = [row for row, _ in chosen]
        if refresh:
            rows = self._items.refresh(rows)
        return [FoundItem(row.as_item(), score, _text_of(row)) for row, (_, score) in zip(rows, chosen, strict=True)]

    def _add_meaning(
        self,
        query: Query,
        filters: Filters,
        prefix: Sequence[str],
        wanted: Mapping[str, Any],
        found: list[tuple[ItemRow, float]],
    ) -> list[tuple[ItemRow, float]]:
        """The items that the words found, and the latest that are alike to the query, best first."""
        comparers = [each for make in self._rescorers for each in make() if isinstance(each, ComparesTexts)]
        if not comparers:
            return found
        rows = {row.id: row for row, _ in found}
        latest = islice(self._items.rows_under(prefix), _MAX_COMPARED)
        rows |= {row.id: row for row in latest if not wanted or passes(row.as_item().value, wanted)}
        texts = {number: text for number, row in rows.items() if (text := _text_of(row))}
        scores = {row.id: score for row, score in found}
        with self._index.reading() as reader:
            context = RescoringContext(reader, filters, len(texts))
            for comparer in comparers:
                for number, likeness in comparer.compare(query, texts, context).items():
                    if likeness >= _MIN_LIKENESS:
                        scores[number] = max(scores.get(number, 0.0), min(1.0, likeness))
        return sorted(((rows[number], score) for number, score in scores.items()), key=lambda each: -each[1])

    def _read(
        self, query: Query, filters: Filters, wanted: Mapping[str, Any], needed: int
    ) -> list[tuple[ItemRow, float]]:
        """The first `needed` items that match, from the record, which knows what has expired or changed since."""
        size = needed + _SPARE
        # Few candidates are enough for most queries; those for which they are not need many.
        factor = 2 + size // 50
        while True:
            with self._index.reading() as reader:
                ranked, complete = _rank(reader, query, filters, min(_MAX_FACTOR, factor))
            rows = self._items.rows_by_id([number for number, _ in ranked[:size]])
            found = [
                (row, score)
                for number, score in ranked[:size]
                if (row := rows.get(number)) is not None and (not wanted or passes(row.as_item().value, wanted))
            ]
            if len(found) >= needed or (complete and len(ranked) <= size) or size >= _MAX_RANKED:
                return found
            size *= 4
            factor = 12 + size // 10


def _text_of(row: ItemRow) -> str:
    """The texts by which an item is found, without its key."""
    return searchable_text("", row.as_item().value, row.indexed).strip()


def _rank(reader: IndexReader, query: Query, filters: Filters, factor: int) -> tuple[list[tuple[int, float]], bool]:
    """The row ids of items with any word of the query, and their scores, best first; whether these are all items.

    `factor` says how many times as many candidates are ranked as for a search for sessions.
    """
    size = reader.size()
    fetcher = TermFetcher(reader, size, query, filters, query.unwanted, frozenset())
    fetched = fetcher.terms(query.terms, factor)
    matches = fetched.matches
    if not matches.rows:
        return [], True
    context = RankingContext(find_perspective(query.text), ())
    ordered = ranking.score_messages(matches, fetcher.adjacent(fetched), size, context)
    weights = [ranking.term_weight(term.frequency, size.messages, framing=term.framing) for term in matches.terms]
    absent = (ranking.term_weight(0, size.messages, framing=term.framing) for term in fetched.absent)
    total = sum(weights) + sum(absent)
    values = MaskValues([weight / total for weight in weights])
    shares = {row.message: values[mask] for row, mask in matches.rows}
    literal = _literal_matches(fetcher, query)
    best = max((score for _, score in ordered), default=0.0) or 1.0
    scored = [
        (row.message, min(1.0, shares.get(row.message, 0.0)) * (1 - _ORDER_SHARE + _ORDER_SHARE * score / best))
        for row, score in ordered
        if literal is None or row.message in literal
    ]
    scored.sort(key=lambda found: -found[1])
    return scored, fetcher.complete


def _literal_matches(fetcher: TermFetcher, query: Query) -> set[int] | None:
    """The row ids of the items with every quoted, starred and grouped part; None if there is no such part."""
    found: set[int] | None = None
    for part in query.parts:
        if part.exact:
            rows = {row.message for row in fetcher.postings(part.pattern, _MAX_LITERAL)}
            found = rows if found is None else found & rows
    return found
