"""Adds words that are related to those of a query: synonyms, members of a class, words that are close in meaning.

A related word stands for the typed one in messages that lack it, with a fraction of its weight; `ranking` says how
much. It finds the message about chess for a question about board games. Words that occur nowhere are skipped.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from memoranda.search.index.postings import Pattern, Word
from memoranda.search.index.related_words import close_words
from memoranda.search.query import Term

_MAX_PER_TERM = 3


class RelatedTerm(NamedTuple):
    """A term for a related word, the token of the typed term, and how close the two are: above 0, below 1."""

    term: Term
    typed: str
    closeness: float


def possible_patterns(terms: Sequence[Term]) -> list[Pattern]:
    """What `related_terms` is likely to ask for, so that it can be read at once."""
    tokens = (term.token for term in terms if not term.framing and isinstance(term.pattern, Word))
    return [Word(word) for token in tokens for word in islice(close_words(token), 2 * _MAX_PER_TERM)]


def related_terms(terms: Sequence[Term], occurs: Callable[[Pattern], object]) -> list[RelatedTerm]:
    """The words related to the terms that occur, closest first for each term; none for framing words and phrases."""
    typed = {term.token for term in terms}
    found: dict[str, RelatedTerm] = {}
    for term in terms:
        if term.framing or not isinstance(term.pattern, Word):
            continue
        count = 0
        for word, closeness in close_words(term.token).items():
            if count == _MAX_PER_TERM:
                break
            if word in typed or not occurs(Word(word)):
                continue
            count += 1
            if word not in found or found[word].closeness < closeness:
                found[word] = RelatedTerm(Term(word, Word(word), word), term.token, closeness)
    return list(found.values())
