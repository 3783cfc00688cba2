"""Retrieves facts: by words, by one entity, by the entities connected to it, and by several entities at once.

Word search ranks by words, trust and age. The other three compare the sketches of all facts and score the best by whole
vectors. The vectors can do more than a table of links: they need no index, they answer for several entities at once
(with the minimum of their presences), and the vector of a name's characters finds partial and misspelt names. Facts
that are not about an entity stay below a threshold that follows from the dimension, so a query returns no noise.

If the application gave the provider a sentence encoder, facts are also compared with a prompt by meaning.
"""

import logging
import struct
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any, NamedTuple

from memoranda.errors import MemorandaError
from memoranda.external.holographic.algebra import SKETCH_FACTOR, Vector, fast_arithmetic, noise, similarities, sketch
from memoranda.external.holographic.entities import KnownEntity, entities_of, find_entity, similar_names
from memoranda.external.holographic.fact_store import Fact, FactStore
from memoranda.external.holographic.recall_threshold import read_demand
from memoranda.external.holographic.word_index import WordMatch, match_words
from memoranda.external.provider import TextEmbedder
from memoranda.storage.sqlite.database import Connection
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_MAX_FACTS = 5000
_MAX_EMBEDDED = 64
# Every encoder finds some likeness in any two texts. It is estimated from all facts; a few count as much as these.
_ASSUMED_BACKGROUND = 0.08
_ASSUMED_FACTS = 10

_MAX_SCORED = 512
_MAX_ALIKE = 50
# Sketches with fewer standard deviations of similarity are skipped.
_MIN_SKETCH_DEVIATIONS = 2.5
_MIN_COVERAGE = 0.45
_COVERAGE_MARGIN = 0.15
_MAX_MATCHING_ENTITIES = 3
_MAX_NEIGHBOURS = 10
_NEIGHBOUR_WEIGHT = 0.5


class FactMeanings:
    """The vectors of the facts of one store."""

    def __init__(self, store: FactStore, embedder: TextEmbedder) -> None:
        self._store = store
        self._embedder = embedder
        self._failed = False

    def compare(self, text: str) -> Mapping[int, float]:
        """How alike a text and each fact are, above what any two texts have in common. Empty if the encoder fails."""
        if self._failed:
            return {}
        try:
            self._embed_missing()
            [query] = self._embedder.embed([text])
            with self._store.database.reading() as connection:
                rows = self._read(connection)
        except MemorandaError as error:
            # The session continues with words only, instead of trying in every turn.
            self._failed = True
            _log.warning("Facts are recalled by their words only: %s", error)
            return {}
        return _likeness(query, rows)

    def _embed_missing(self) -> None:
        with self._store.database.reading() as connection:
            missing = connection.execute(
                "SELECT fact_id, content FROM facts WHERE fact_id NOT IN (SELECT fact_id FROM meanings WHERE model = ?)"
                " ORDER BY fact_id DESC LIMIT ?",
                (self._embedder.name, _MAX_EMBEDDED),
            ).fetchall()
        if not missing:
            return
        vectors = self._embedder.embed([content for _, content in missing])
        with self._store.database.writing() as connection:
            for (fact_id, content), vector in zip(missing, vectors, strict=True):
                # Not if the fact was removed or changed in the meantime.
                connection.execute(
                    "INSERT OR REPLACE INTO meanings (fact_id, model, vector)"
                    " SELECT fact_id, ?, ? FROM facts WHERE fact_id = ? AND content = ?",
                    (self._embedder.name, vector, fact_id, content),
                )

    def _read(self, connection: Connection) -> list[tuple[int, bytes]]:
        return connection.execute(
            "SELECT fact_id, vector FROM meanings WHERE model = ? ORDER BY fact_id DESC LIMIT ?",
            (self._embedder.name, _MAX_FACTS),
        ).fetchall()


def _likeness(query: bytes, rows: Sequence[tuple[int, bytes]]) -> dict[int, float]:
    products = _products(query, [vector for _, vector in rows])
    background = (sum(products) + _ASSUMED_FACTS * _ASSUMED_BACKGROUND) / (len(rows) + _ASSUMED_FACTS)
    return {fact_id: product - background for (fact_id, _), product in zip(rows, products, strict=True)}


def _products(query: bytes, vectors: Sequence[bytes]) -> list[float]:
    numpy = fast_arithmetic()
    if numpy is None or not vectors:
        numbers = _floats(query)
        return [sum(map(mul, numbers, _floats(vector))) for vector in vectors]
    matrix = numpy.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
    found: list[float] = (matrix @ numpy.frombuffer(query, "<f4")).tolist()
    return found


def _floats(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A retrieved fact; `score` ranks it, `match` is how well it matches regardless of trust and age."""

    fact: Fact
    score: float
    match: float
    through: str = ""

    def as_data(self) -> dict[str, Any]:
        data = self.fact.as_data() | {"score": round(self.score, 4), "match": round(self.match, 4)}
        return data | {"through": self.through} if self.through else data


class FactFilter(NamedTuple):
    """Which facts may be returned, how many, and a text that facts about an entity should resemble."""

    category: str | None = None
    min_trust: float = 0.0
    limit: int = 10
    about: str = ""


class Neighbour(NamedTuple):
    """An entity that shares facts with the requested one."""

    name: str
    score: float
    facts: int


class Retriever:
    """Retrieves facts from one store."""

    def __init__(self, store: FactStore, half_life_days: float = 0.0, meanings: FactMeanings | None = None) -> None:
        self._store = store
        self._meanings = meanings
        self._encoder = store.encoder
        self._half_life = half_life_days

    def search(self, query: str, filters: FactFilter) -> list[FoundFact]:
        """Facts by the weighted share of the query's words that they have, then by trust and age."""
        with self._store.database.reading() as connection:
            matched = match_words(connection, query)
        if filters.category is None:
            # Trust and age hardly raise facts that are further down.
            matched = matched[:_MAX_SCORED]
        facts = self._store.facts([match.fact_id for match in matched])
        pairs = [(facts[match.fact_id], match.coverage) for match in matched if match.fact_id in facts]
        return self._rank(pairs, filters)

    def recall(self, prompt: str, filters: FactFilter) -> list[FoundFact]:
        """The facts that meet what a prompt demands, by their words and, if there is an encoder, by their meaning."""
        demand = read_demand(prompt)
        likeness = self._meanings.compare(prompt) if self._meanings is not None and demand.is_question else {}
        with self._store.database.reading() as connection:
            found = match_words(connection, prompt, stop_words_too=False)[:_MAX_SCORED]
        matched = {match.fact_id: match for match in found}
        alike = sorted(likeness, key=lambda fact_id: -likeness[fact_id])[:_MAX_ALIKE]
        facts = self._store.facts(list({*matched, *alike}))
        pairs = []
        for fact_id, fact in facts.items():
            match = matched.get(fact_id, WordMatch(fact_id, 0.0, 0))
            score = demand.score(fact, match, likeness.get(fact_id))
            if score:
                pairs.append((fact, score))
        return self._rank(pairs, filters)

    def resolve(self, name: str) -> list[KnownEntity]:
        """The entities that a name may mean: the one with that name, otherwise those with the most similar names."""
        with self._store.database.reading() as connection:
            exact = find_entity(connection, name)
            if exact is not None:
                return [exact]
            close = similar_names(connection, self._encoder, name, _MIN_COVERAGE)
        return [known for coverage, known in close if coverage >= close[0][0] - _COVERAGE_MARGIN][
            :_MAX_MATCHING_ENTITIES
        ]

    def probe(self, name: str, filters: FactFilter) -> list[FoundFact]:
        """Facts about one entity."""
        return self._rank(self._match_entities([self.resolve(name)], filters.about), filters)

    def reason(self, names: Sequence[str], filters: FactFilter) -> list[FoundFact]:
        """Facts about all of these entities at once."""
        return self._rank(self._match_entities([self.resolve(name) for name in names], filters.about), filters)

    def related(self, name: str, filters: FactFilter) -> tuple[list[Neighbour], list[FoundFact]]:
        """The entities that share facts with the named one, those facts, and further facts about these entities.

        The neighbours come from the vectors: a fact resembles each entity that it is about.
        """
        entities = self.resolve(name)
        matching = self._match_entities([entities])
        about = self._rank(matching, filters._replace(limit=_MAX_SCORED))
        neighbours = self._neighbours(about, {known.entity_id for known in entities})
        shared = [found for found in about if len(found.fact.entities) > 1]
        seen = {fact.fact_id for fact, _ in matching}
        if not neighbours or len(shared) >= filters.limit:
            return [neighbour for _, neighbour in neighbours], shared[: filters.limit]
        further: list[FoundFact] = []
        for known, neighbour in neighbours:
            strength = _NEIGHBOUR_WEIGHT * neighbour.score / neighbours[0][1].score
            for found in self._rank(self._match_entities([[known]]), filters):
                if found.fact.fact_id not in seen:
                    seen.add(found.fact.fact_id)
                    further.append(FoundFact(found.fact, found.score * strength, found.match, neighbour.name))
        further.sort(key=lambda found: -found.score)
        return [neighbour for _, neighbour in neighbours], (shared + further)[: filters.limit]

    def _neighbours(self, about: list[FoundFact], entity_ids: set[int]) -> list[tuple[KnownEntity, Neighbour]]:
        """The other entities of the facts `about` some entities."""
        vectors = self._store.vectors([found.fact.fact_id for found in about])
        with self._store.database.reading() as connection:
            links = entities_of(connection, list(vectors))
        facts = {found.fact.fact_id: found for found in about}
        facts_by_entity: dict[KnownEntity, list[int]] = {}
        for fact_id, entities in links.items():
            for known in entities:
                if known.entity_id not in entity_ids:
                    facts_by_entity.setdefault(known, []).append(fact_id)
        scored = []
        for known, fact_ids in facts_by_entity.items():
            alike = similarities(self._encoder.entity(known.key), [vectors[fact_id] for fact_id in fact_ids])
            score = sum(
                self._encoder.presence(similarity, len(links[fact_id])) * facts[fact_id].score
                for fact_id, similarity in zip(fact_ids, alike, strict=True)
            )
            if score > 0:
                scored.append((known, Neighbour(known.name, round(score, 4), len(fact_ids))))
        scored.sort(key=lambda pair: (-pair[1].score, pair[0].entity_id))
        return scored[:_MAX_NEIGHBOURS]

    def _match_entities(self, groups: list[list[KnownEntity]], about: str = "") -> list[tuple[Fact, float]]:
        """The facts about an entity of every group, with the minimum of their presences.

        With `about`, facts with content that resembles that text count up to twice as much as the others.
        """
        if not groups or not all(groups):
            return []
        self._store.encode_stale()
        keys = [[self._encoder.entity(known.key) for known in group] for group in groups]
        with self._store.database.reading() as connection:
            rows = connection.execute(
                "SELECT fact_id, sketch, entity_count FROM facts WHERE encoding = ?", (self._encoder.name,)
            ).fetchall()
            candidates = self._near_sketches(rows, keys)
            vectors = self._store.vectors(candidates)
            facts = self._store.facts(list(vectors))
        counts = {fact_id: count for fact_id, _, count in rows}
        order = list(vectors)
        minimum = [1.0] * len(order)
        for group in keys:
            present = self._presence(group, [vectors[fact_id] for fact_id in order], [counts[n] for n in order])
            minimum = [min(pair) for pair in zip(minimum, present, strict=True)]
        if about:
            alike = similarities(self._encoder.about(about), [vectors[fact_id] for fact_id in order])
            minimum = [
                value * (1 + self._encoder.agreement(similarity, counts[fact_id])) / 2
                for fact_id, value, similarity in zip(order, minimum, alike, strict=True)
            ]
        return [
            (facts[fact_id], value) for fact_id, value in zip(order, minimum, strict=True) if value and fact_id in facts
        ]

    def _near_sketches(self, rows: list[tuple[int, bytes, int]], keys: list[list[Vector]]) -> list[int]:
        """The facts with sketches that resemble every group; one XOR and one bit count per fact."""
        sketches = [[int.from_bytes(sketch(key), "little") for key in group] for group in keys]
        dimension = self._encoder.dimension
        # In differing bits; the sketches of unrelated vectors differ in half of their bits.
        max_distance = dimension * (1 - _MIN_SKETCH_DEVIATIONS * noise(dimension) * SKETCH_FACTOR)
        near: list[tuple[int, int]] = []
        if len(sketches) == 1 and len(sketches[0]) == 1:
            ((only,),) = sketches
            for fact_id, bits, _ in rows:
                distance = (int.from_bytes(bits, "little") ^ only).bit_count()
                if distance < max_distance:
                    near.append((distance, -fact_id))
        else:
            for fact_id, bits, _ in rows:
                number = int.from_bytes(bits, "little")
                distance = max(min((number ^ key).bit_count() for key in group) for group in sketches)
                if distance < max_distance:
                    near.append((distance, -fact_id))
        near.sort()
        return [-negative for _, negative in near[:_MAX_SCORED]]

    def _presence(self, group: list[Vector], vectors: list[Vector], counts: list[int]) -> list[float]:
        alike = [similarities(key, vectors) for key in group]
        return [
            self._encoder.presence(max(values), count)
            for values, count in zip(zip(*alike, strict=True), counts, strict=True)
        ]

    def _rank(self, pairs: list[tuple[Fact, float]], filters: FactFilter) -> list[FoundFact]:
        now = self._store.clock()
        found = [
            FoundFact(fact, match * fact.trust * fact.decay(now, self._half_life), match)
            for fact, match in pairs
            if fact.trust >= filters.min_trust and filters.category in (None, fact.category)
        ]
        found.sort(key=lambda hit: (-hit.score, -hit.fact.fact_id))
        return found[: filters.limit]
