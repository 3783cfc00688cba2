"""Word search over facts: the segmentation of session search, in a full-text table beside the facts."""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from memoranda.db.sqlite import Connection
from memoranda.index.stop_words import STOP_WORDS
from memoranda.index.tokenizer import index_tokens, is_single_character, is_unspaced, query_words

# Japanese writes its small words in these letters.
_GRAMMAR = re.compile("[\u3041-\u309f]{2}")
_MOST_WORDS = 24
_LONGEST_PHRASE = 24
_MOST_ROWS = 2000
# A word that no fact has may be beside the point.
_UNKNOWN = 0.7
_BY_COVERAGE = 0.8


class WordMatch(NamedTuple):
    """A fact that has words of a query: which share of them by weight, and the score that follows from it."""

    fact_id: int
    coverage: float
    score: float


def store_words(connection: Connection, fact_id: int, content: str, tags: Iterable[str]) -> None:
    """Index a fact, or index it again."""
    forget_words(connection, fact_id)
    text = " ".join(index_tokens("\n".join([content, *tags])))
    connection.execute("INSERT INTO fact_words (rowid, text) VALUES (?, ?)", (fact_id, text))


def forget_words(connection: Connection, fact_id: int) -> None:
    connection.execute("DELETE FROM fact_words WHERE rowid = ?", (fact_id,))


def match_words(connection: Connection, query: str, *, small_too: bool = True) -> list[WordMatch]:
    """The facts that have words of the query, best first. Whatever the query is, it is never a syntax error.

    Small words are looked for when there is nothing else, unless `small_too` says not to.
    """
    phrases = _phrases(query, small_too)
    (total,) = connection.execute("SELECT count(*) FROM facts").fetchone()
    weights: dict[int, float] = {}
    everything_asked = 0.0
    for phrase in phrases:
        found = connection.execute(
            "SELECT rowid FROM fact_words WHERE fact_words MATCH ? LIMIT ?", (phrase, _MOST_ROWS)
        ).fetchall()
        weight = math.log(1 + (total + 1) / (len(found) + 0.5))
        everything_asked += weight if found else weight * _UNKNOWN
        for (fact_id,) in found:
            weights[fact_id] = weights.get(fact_id, 0.0) + weight
    if not weights:
        return []
    ranks = dict(
        connection.execute(
            "SELECT rowid, -rank FROM fact_words WHERE fact_words MATCH ? ORDER BY rank LIMIT ?",
            (" OR ".join(phrases), _MOST_ROWS),
        ).fetchall()
    )
    highest = max([*ranks.values(), 1e-9])
    matched = []
    for fact_id, weight in weights.items():
        coverage = weight / everything_asked
        score = _BY_COVERAGE * coverage + (1 - _BY_COVERAGE) * ranks.get(fact_id, 0.0) / highest
        matched.append(WordMatch(fact_id, coverage, score))
    return sorted(matched, key=lambda match: (-match.score, -match.fact_id))


def _phrases(query: str, small_too: bool) -> list[str]:
    words: list[tuple[str, ...]] = []
    for word in query_words(query):
        # A run of an unspaced script may be a whole question: each of its pairs is a word.
        words += [(token,) for token in word] if is_unspaced(word[0]) else [word]
    words = list(dict.fromkeys(words))
    telling = [word for word in words if not all(token in STOP_WORDS or _GRAMMAR.fullmatch(token) for token in word)]
    return [_phrase(word) for word in (telling or (words if small_too else []))[:_MOST_WORDS]]


def _phrase(tokens: tuple[str, ...]) -> str:
    """A word is looked for as it is, several as a phrase; a single character begins some pair."""
    tokens = tokens[:_LONGEST_PHRASE]
    return f'"{" ".join(tokens)}"' + (" *" if is_single_character(tokens[-1]) else "")
