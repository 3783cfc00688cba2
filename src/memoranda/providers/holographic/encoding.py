"""What a fact, an entity and a name look like as vectors.

A fact is a bundle of its content, bound to the role of content, and of each of its entities, bound to the role of an
entity. So one scan over vectors answers questions by role, without an index and for several entities at once: a fact
that holds an entity resembles `bind(entity, ROLE_ENTITY)`, a fact in which the name is only a word does not. A name is
a bundle of the triples of its characters, so that a misspelt or partial name resembles the name that is meant.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from memoranda.index.stop_words import STOP_WORDS
from memoranda.index.tokenizer import tokenize
from memoranda.providers.holographic.algebra import (
    SKETCH_FACTOR,
    Vector,
    atom,
    bind,
    bundle,
    expected,
    noise,
    sketch,
    sketch_similarity,
    unbind,
)

# Changes with anything in this file or in `algebra`: facts encoded otherwise are encoded again.
VERSION = 2
MOST_ENTITIES = 16
_MOST_WORDS = 64
_ROLE_CONTENT = "role:content"
_ROLE_ENTITY = "role:entity"
_SURE = 5
_LIKELY = 3


class Encoder:
    """Encodes for one dimension."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.name = f"{VERSION}:{dimension}"
        self._content = atom(_ROLE_CONTENT, dimension)
        self._entity = atom(_ROLE_ENTITY, dimension)

    def fact(self, content: str, entities: Iterable[str]) -> Vector:
        """The vector of a fact; entities are given by their keys, and only the first few fit into a vector."""
        keys = list(dict.fromkeys(entities))[:MOST_ENTITIES]
        return bundle([bind(self.text(content), self._content), *map(self.entity, keys)])

    def text(self, text: str) -> Vector:
        """The bundle of the words of a text; small words are left out unless there is nothing else."""
        tokens = list(dict.fromkeys(tokenize(text)))
        return self.tokens([token for token in tokens if token not in STOP_WORDS] or tokens or [""])

    def tokens(self, tokens: Sequence[str]) -> Vector:
        return bundle([atom(token, self.dimension) for token in tokens[:_MOST_WORDS]])

    def entity(self, key: str) -> Vector:
        """What a fact that holds this entity resembles."""
        return bind(atom(key, self.dimension), self._entity)

    def content(self, fact: Vector) -> Vector:
        """The content of a fact, taken out of its vector; it resembles the text by `expected` of the fact's parts."""
        return unbind(fact, self._content)

    def about(self, text: str) -> Vector:
        """What a fact with such content resembles; the same as comparing its content, taken out, with the text."""
        return bind(self.text(text), self._content)

    def agreement(self, similarity: float, entities: int) -> float:
        """How much the content of a fact with so many entities is like a text, from 0 to 1."""
        if similarity < _LIKELY * noise(self.dimension):
            return 0.0
        return min(1.0, similarity / expected(1 + min(entities, MOST_ENTITIES)))

    def presence(self, similarity: float, entities: int) -> float:
        """How surely a fact with so many entities holds the one that it resembles this much: 1 sure, 0 not at all."""
        usual = expected(1 + min(entities, MOST_ENTITIES))
        if similarity < max(usual / 2, _SURE * noise(self.dimension)):
            return 0.0
        return min(1.0, similarity / usual)

    def name_sketch(self, key: str) -> bytes:
        return sketch(bundle([atom(part, self.dimension) for part in name_parts(key)]))

    def name_coverage(self, asked: str, asked_sketch: int, key: str, key_sketch: int) -> float:
        """About which share of the asked name's parts a known name has, worked out from the vectors."""
        parts, others = len(name_parts(asked)), len(name_parts(key))
        alike = sketch_similarity(asked_sketch, key_sketch, self.dimension) / SKETCH_FACTOR
        return alike / (parts * expected(parts) * expected(others))


@lru_cache(maxsize=4096)
def name_parts(key: str) -> tuple[str, ...]:
    """The triples of characters of a name, each word with its ends marked."""
    parts: list[str] = []
    for word in key.split() or [key]:
        marked = f"^{word}$"
        parts += [f"name:{marked[start : start + 3]}" for start in range(max(1, len(marked) - 2))]
    return tuple(dict.fromkeys(parts))
