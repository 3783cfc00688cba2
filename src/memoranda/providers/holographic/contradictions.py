"""Facts that cannot both be right: the same entity and the same attribute with different values.

Only facts that share an entity and perhaps an attribute are compared, so the work grows with what is alike, not with
all pairs. A pair that can be read as one frame with two values is scored by the algebra: frames must resemble each
other by more than (2/π)², which is what two frames of an entity and an attribute resemble each other by when only the
entity is the same; values must resemble each other by less.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

from memoranda.db.sqlite import Connection
from memoranda.index.stop_words import STOP_WORDS
from memoranda.providers.holographic.algebra import Vector, noise, similarity
from memoranda.providers.holographic.claims import ENTITY, Claim, read
from memoranda.providers.holographic.comparing import Difference, compare, keys
from memoranda.providers.holographic.encoding import Encoder
from memoranda.providers.holographic.entity_links import KnownEntity, entities_of
from memoranda.providers.holographic.fact import Fact
from memoranda.providers.holographic.fact_store import FactStore

HALF_SHARED = (2 / math.pi) ** 2
_MARGIN = 3
_MOST_FACTS = 5000
_MOST_ALIKE = 40
_MOST_PAIRS = 20_000
_NOBODY = 0


class Contradiction(NamedTuple):
    """Two facts, the newer one first."""

    newer: Fact
    older: Fact
    shared: tuple[str, ...]
    overlap: float
    agreement: float
    score: float

    def as_data(self) -> dict[str, Any]:
        return {
            "fact_a": self.newer.as_data(),
            "fact_b": self.older.as_data(),
            "shared_entities": list(self.shared),
            "entity_overlap": round(self.overlap, 3),
            "content_similarity": round(self.agreement, 3),
            "contradiction_score": round(self.score, 3),
        }


def find_contradictions(
    store: FactStore, *, category: str | None = None, min_trust: float = 0.0, limit: int = 10
) -> list[Contradiction]:
    """The pairs that contradict each other most clearly."""
    with store.database.reading() as connection:
        facts = {
            fact.fact_id: fact for fact in store.list_facts(category=category, min_trust=min_trust, limit=_MOST_FACTS)
        }
        links = entities_of(connection, list(facts))
        names = _names(connection)
    readings = {
        fact_id: read(fact.content, {known.entity_id: names[known.entity_id] for known in links.get(fact_id, [])})
        for fact_id, fact in facts.items()
    }
    found = []
    for a, b in _pairs(readings):
        difference = compare(readings[a], readings[b])
        if difference is not None:
            scored = _score(store.encoder, difference)
            if scored is not None:
                found.append(_contradiction(facts[a], facts[b], links.get(a, []), links.get(b, []), scored))
    found.sort(key=lambda each: (-each.score, -each.newer.fact_id))
    return found[:limit]


def threshold(dimension: int) -> float:
    """How much two frames must resemble each other to be about one attribute."""
    return HALF_SHARED + _MARGIN * noise(dimension)


def _names(connection: Connection) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for entity_id, alias in connection.execute("SELECT entity_id, alias FROM aliases"):
        names.setdefault(entity_id, []).append(alias)
    return names


def _pairs(readings: dict[int, Claim]) -> Iterator[tuple[int, int]]:
    """Pairs of facts that share an entity and perhaps an attribute, each once, the newest facts first."""
    alike: dict[tuple[int, str], list[int]] = {}
    for fact_id in sorted(readings, reverse=True):
        reading = readings[fact_id]
        groups = [(entity_id, key) for entity_id in reading.entities for key in keys(reading)]
        # A name that nobody took for one is a word like any other.
        groups += [(_NOBODY, word) for word in reading.subject if not word.startswith(ENTITY)]
        for each in groups:
            group = alike.setdefault(each, [])
            if len(group) < _MOST_ALIKE:
                group.append(fact_id)
    seen: set[tuple[int, int]] = set()
    for group in alike.values():
        for pair in combinations(group, 2):
            if pair not in seen:
                seen.add(pair)
                yield pair
        if len(seen) >= _MOST_PAIRS:
            return


def _score(encoder: Encoder, difference: Difference) -> tuple[float, float] | None:
    """How much the frames agree, and how sure the contradiction is; None when the algebra does not see it."""
    agreement = _alike(encoder, difference.frames)
    if agreement < threshold(encoder.dimension):
        return None
    if difference.negated:
        return agreement, agreement
    alike = _alike(encoder, difference.values)
    return None if alike >= HALF_SHARED else (agreement, agreement * min(1.0, 1 - alike))


def _alike(encoder: Encoder, sides: tuple[tuple[str, ...], tuple[str, ...]]) -> float:
    first, second = (tuple(sorted({token for token in side if token not in STOP_WORDS} or set(side))) for side in sides)
    return 1.0 if first == second else similarity(_bundle(encoder, first), _bundle(encoder, second))


@lru_cache(maxsize=1024)
def _bundle(encoder: Encoder, tokens: tuple[str, ...]) -> Vector:
    return encoder.tokens(tokens or ("",))


def _contradiction(
    a: Fact, b: Fact, links_a: list[KnownEntity], links_b: list[KnownEntity], scored: tuple[float, float]
) -> Contradiction:
    newer, older = (a, b) if (a.updated_at, a.fact_id) >= (b.updated_at, b.fact_id) else (b, a)
    shared = [known for known in links_a if known in links_b]
    overlap = len(shared) / max(1, len({*links_a, *links_b}))
    return Contradiction(newer, older, tuple(known.name for known in shared), overlap, *scored)
