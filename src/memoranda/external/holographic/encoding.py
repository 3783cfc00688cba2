"""Encodes facts, entities and names as vectors.

A fact is a bundle of its content, bound to the content role, and of its entities, each bound to the entity role. So one
scan over the vectors answers a question by role, without an index and for several entities at once: a fact about an
entity resembles `bind(entity, ROLE_ENTITY)`, and a fact in which the name is only a word does not. A name is a bundle
of its character triples, so a misspelt or partial name resembles the name that is meant.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from memoranda.external.holographic.algebra import (
    SKETCH_FACTOR,
    Vector,
    atom,
    bind,
    bundle,
    expected_similarity,
    noise,
    sketch,
    sketch_similarity,
    unbind,
)
from memoranda.search.index.tokenizer import STOP_WORDS, tokenize

# Raise this with any change to the encoding: facts with another version are encoded again.
VERSION = 1
MAX_ENTITIES = 16
_MAX_WORDS = 64
_ROLE_CONTENT = "role:content"
_ROLE_ENTITY = "role:entity"
_SURE_DEVIATIONS = 5
_LIKELY_DEVIATIONS = 3


class Encoder:
    """Encodes vectors of one dimension."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.name = f"{VERSION}:{dimension}"
        self._content = atom(_ROLE_CONTENT, dimension)
        self._entity = atom(_ROLE_ENTITY, dimension)

    def fact(self, content: str, entities: Iterable[str]) -> Vector:
        """The vector of a fact. `entities` are keys; a vector has room for the first `MAX_ENTITIES`."""
        keys = list(dict.fromkeys(entities))[:MAX_ENTITIES]
        return bundle([bind(self.text(content), self._content), *map(self.entity, keys)])

    def text(self, text: str) -> Vector:
        """The bundle of the words of a text, without stop words unless there are no others."""
        tokens = list(dict.fromkeys(tokenize(text)))
        return self.tokens([token for token in tokens if token not in STOP_WORDS] or tokens or [""])

    def tokens(self, tokens: Sequence[str]) -> Vector:
        return bundle([atom(token, self.dimension) for token in tokens[:_MAX_WORDS]])

    def entity(self, key: str) -> Vector:
        """The vector that facts about this entity resemble."""
        return bind(atom(key, self.dimension), self._entity)

    def content(self, fact: Vector) -> Vector:
        """The content unbound from a fact's vector, which resembles the text by `expected_similarity`."""
        return unbind(fact, self._content)

    def about(self, text: str) -> Vector:
        """The vector that facts with this content resemble; the same as comparing `content(fact)` with the text."""
        return bind(self.text(text), self._content)

    def agreement(self, similarity: float, entities: int) -> float:
        """How similar the content of a fact with this number of entities is to a text, from 0 to 1."""
        if similarity < _LIKELY_DEVIATIONS * noise(self.dimension):
            return 0.0
        return min(1.0, similarity / expected_similarity(1 + min(entities, MAX_ENTITIES)))

    def presence(self, similarity: float, entities: int) -> float:
        """How certainly a fact with this number of entities is about the entity with this similarity, from 0 to 1."""
        usual = expected_similarity(1 + min(entities, MAX_ENTITIES))
        if similarity < max(usual / 2, _SURE_DEVIATIONS * noise(self.dimension)):
            return 0.0
        return min(1.0, similarity / usual)

    def name_sketch(self, key: str) -> bytes:
        return sketch(bundle([atom(part, self.dimension) for part in name_parts(key)]))

    def name_coverage(self, query: str, query_sketch: int, key: str, key_sketch: int) -> float:
        """The estimated share of the parts of the queried name that a known name has."""
        query_parts, key_parts = len(name_parts(query)), len(name_parts(key))
        alike = sketch_similarity(query_sketch, key_sketch, self.dimension) / SKETCH_FACTOR
        return alike / (query_parts * expected_similarity(query_parts) * expected_similarity(key_parts))


@lru_cache(maxsize=4096)
def name_parts(key: str) -> tuple[str, ...]:
    """The character triples of a name; the ends of each word are marked."""
    parts: list[str] = []
    for word in key.split() or [key]:
        marked = f"^{word}$"
        parts += [f"name:{marked[start : start + 3]}" for start in range(max(1, len(marked) - 2))]
    return tuple(dict.fromkeys(parts))
