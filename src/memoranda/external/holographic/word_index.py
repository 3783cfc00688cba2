"""Word search over facts: a full-text table with the tokens of session search."""

import math
import re
from collections import Counter
from collections.abc import Container, Iterable
from typing import NamedTuple

from memoranda.search.index.related_words import related_words
from memoranda.search.index.stemmer import stem
from memoranda.search.index.tokenizer import STOP_WORDS, index_tokens, is_single_character, is_unspaced, query_words
from memoranda.storage.sqlite.database import Connection

# Japanese function words are written in these letters.
_HIRAGANA_PAIR = re.compile("[\u3041-\u309f]{2}")
_MAX_WORDS = 24
_MAX_PHRASE_TOKENS = 24
_MAX_ROWS = 2000
# The weight of a query word that occurs in no fact.
_UNKNOWN_WORD_WEIGHT = 0.7
# How much more a name counts than another word: a question about Brazil is hardly about a fact without Brazil.
_NAME_FACTOR = 2.0
_NAME = re.compile(r"(?<=[^.?!:\"“] )(?!I\b)[A-Z][\w+#]*")


def stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


# Words that say little, and numbers: they count little, stand for no other word, and are not enough alone.
_WEAK_WORDS = stems("""
    get take use need want have has had does did doing make go going come put keep give call thing way good better best
    look know find time day minute hour month year week still usually one other next last first new any today again let
    return mean kind lot
""")
_WEAK_WORD_WEIGHT = 0.3
# How much more a rare related word may count than the query word, if that is common.
_MAX_RELATED_WEIGHT = 1.5
# How much a related word counts for a fact with tags: they say already by which other words it should be found.
_RELATED_TO_TAGGED = 0.5


class WordMatch(NamedTuple):
    """A fact with words of the query: their weighted share, and how many they are, not counting weak words."""

    fact_id: int
    coverage: float
    words: int


def store_words(connection: Connection, fact_id: int, content: str, tags: Iterable[str]) -> None:
    """Indexes a fact; replaces its earlier words."""
    forget_words(connection, fact_id)
    text = " ".join(index_tokens("\n".join([content, *tags])))
    connection.execute("INSERT INTO fact_words (rowid, text) VALUES (?, ?)", (fact_id, text))


def forget_words(connection: Connection, fact_id: int) -> None:
    connection.execute("DELETE FROM fact_words WHERE rowid = ?", (fact_id,))


def erase_words(connection: Connection) -> None:
    """Removes the words of deleted facts from the table, which otherwise keeps them until it merges its parts."""
    connection.execute("INSERT INTO fact_words (fact_words) VALUES ('optimize')")


def match_words(connection: Connection, query: str, *, stop_words_too: bool = True) -> list[WordMatch]:
    """The facts with words of the query, or with words related to them, best first. No query is a syntax error.

    A query that has only stop words searches for these, unless `stop_words_too` is false.
    """
    words = _query_words(query, stop_words_too)
    names = set(query_words(" ".join(_NAME.findall(query))))
    (total,) = connection.execute("SELECT count(*) FROM facts").fetchone()
    tagged = {fact_id for (fact_id,) in connection.execute("SELECT fact_id FROM facts WHERE tags <> ''")}
    weights: dict[int, float] = {}
    counts: Counter[int] = Counter()
    total_weight = 0.0
    for word in words:
        is_weak = word[0] in _WEAK_WORDS or word[0].isdigit()
        weight, strengths = _match_word(connection, word, total, tagged, is_weak)
        weight *= _NAME_FACTOR if word in names else 1
        total_weight += weight
        # A word that matches many facts says little about each.
        weight *= math.sqrt(_rarity(total, sum(strengths.values())) / _rarity(total, 0))
        for fact_id, strength in strengths.items():
            weights[fact_id] = weights.get(fact_id, 0.0) + weight * strength
            counts[fact_id] += not is_weak
    matched = [WordMatch(fact_id, weight / total_weight, counts[fact_id]) for fact_id, weight in weights.items()]
    return sorted(matched, key=lambda match: (-match.coverage, -match.fact_id))


def _match_word(
    connection: Connection, word: tuple[str, ...], total: int, tagged: Container[int], is_weak: bool
) -> tuple[float, dict[int, float]]:
    """The weight of a word, and the facts that have it or a related word, each with the strength of the match."""
    found = _facts_with(connection, word)
    weight = _rarity(total, len(found)) * (1 if found else _UNKNOWN_WORD_WEIGHT)
    if is_weak:
        return _WEAK_WORD_WEIGHT * weight, dict.fromkeys(found, 1.0)
    strengths: dict[int, float] = {}
    for related, closeness in related_words(word[0]).items() if len(word) == 1 else ():
        if related not in _WEAK_WORDS:
            others = _facts_with(connection, (related,))
            rarity = _rarity(total, len(others)) / (weight if found else _rarity(total, 1))
            strength = closeness * min(_MAX_RELATED_WEIGHT, rarity)
            for fact_id in others:
                own = strength * _RELATED_TO_TAGGED if fact_id in tagged else strength
                strengths[fact_id] = max(strengths.get(fact_id, 0.0), own)
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
