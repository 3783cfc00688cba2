"""Word search over facts: a full-text table with the tokens of session search."""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from memoranda.db.sqlite import Connection
from memoranda.index.related_words import related_words
from memoranda.index.stop_words import STOP_WORDS
from memoranda.index.tokenizer import index_tokens, is_single_character, is_unspaced, query_words

# Japanese function words are written in these letters.
_HIRAGANA_PAIR = re.compile("[\u3041-\u309f]{2}")
_MAX_WORDS = 24
_MAX_PHRASE_TOKENS = 24
_MAX_ROWS = 2000
# The weight of a query word that occurs in no fact.
_UNKNOWN_WORD_WEIGHT = 0.7
_COVERAGE_SHARE = 0.8


class WordMatch(NamedTuple):
    """A fact with words of the query: their weighted share, and the score."""

    fact_id: int
    coverage: float
    score: float


def store_words(connection: Connection, fact_id: int, content: str, tags: Iterable[str]) -> None:
    """Indexes a fact; replaces its earlier words."""
    forget_words(connection, fact_id)
    text = " ".join(index_tokens("\n".join([content, *tags])))
    connection.execute("INSERT INTO fact_words (rowid, text) VALUES (?, ?)", (fact_id, text))


def forget_words(connection: Connection, fact_id: int) -> None:
    connection.execute("DELETE FROM fact_words WHERE rowid = ?", (fact_id,))


def match_words(connection: Connection, query: str, *, stop_words_too: bool = True) -> list[WordMatch]:
    """The facts with words of the query, or with words related to them, best first. No query is a syntax error.

    A query that has only stop words searches for these, unless `stop_words_too` is false.
    """
    words = _query_words(query, stop_words_too)
    (total,) = connection.execute("SELECT count(*) FROM facts").fetchone()
    weights: dict[int, float] = {}
    total_weight = 0.0
    for word in words:
        weight, strengths = _match_word(connection, word, total)
        total_weight += weight
        # A word that matches many facts says little about each.
        weight *= _rarity(total, sum(strengths.values())) / _rarity(total, 0)
        for fact_id, strength in strengths.items():
            weights[fact_id] = weights.get(fact_id, 0.0) + weight * strength
    if not weights:
        return []
    ranks = dict(
        connection.execute(
            "SELECT rowid, -rank FROM fact_words WHERE fact_words MATCH ? ORDER BY rank LIMIT ?",
            (" OR ".join(map(_phrase, words)), _MAX_ROWS),
        ).fetchall()
    )
    highest = max([*ranks.values(), 1e-9])
    matched = []
    for fact_id, weight in weights.items():
        coverage = weight / total_weight
        score = _COVERAGE_SHARE * coverage + (1 - _COVERAGE_SHARE) * ranks.get(fact_id, 0.0) / highest
        matched.append(WordMatch(fact_id, coverage, score))
    return sorted(matched, key=lambda match: (-match.score, -match.fact_id))


def _match_word(connection: Connection, word: tuple[str, ...], total: int) -> tuple[float, dict[int, float]]:
    """The weight of a word, and the facts that have it or a related word, each with the strength of the match."""
    found = _facts_with(connection, word)
    weight = _rarity(total, len(found)) * (1 if found else _UNKNOWN_WORD_WEIGHT)
    strengths: dict[int, float] = {}
    for related, closeness in related_words(word[0]).items() if len(word) == 1 else ():
        others = _facts_with(connection, (related,))
        # A common word is a weaker match than the rare word that it stands for.
        strength = closeness * (min(1.0, _rarity(total, len(others)) / weight) if found else 1.0)
        for fact_id in others:
            strengths[fact_id] = max(strengths.get(fact_id, 0.0), strength)
    return weight, strengths | dict.fromkeys(found, 1.0)


def _facts_with(connection: Connection, word: tuple[str, ...]) -> list[int]:
    rows = connection.execute(
        "SELECT rowid FROM fact_words WHERE fact_words MATCH ? LIMIT ?", (_phrase(word), _MAX_ROWS)
    ).fetchall()
    return [fact_id for (fact_id,) in rows]


def _rarity(total: int, matches: float) -> float:
    return math.log(1 + (total + 1) / (matches + 0.5))


def _query_words(query: str, stop_words_too: bool) -> list[tuple[str, ...]]:
    words: list[tuple[str, ...]] = []
    for word in query_words(query):
        # A run of an unspaced script may be a whole question, so each of its pairs counts as a word.
        words += [(token,) for token in word] if is_unspaced(word[0]) else [word]
    words = list(dict.fromkeys(words))
    content = [
        word for word in words if not all(token in STOP_WORDS or _HIRAGANA_PAIR.fullmatch(token) for token in word)
    ]
    return (content or (words if stop_words_too else []))[:_MAX_WORDS]


def _phrase(tokens: tuple[str, ...]) -> str:
    """The search expression for a word or a phrase; a single character matches the start of a pair."""
    tokens = tokens[:_MAX_PHRASE_TOKENS]
    return f'"{" ".join(tokens)}"' + (" *" if is_single_character(tokens[-1]) else "")
