"""Asking for facts: by words, by one entity, by what is connected to it, and by several entities at once.

Word search ranks by words, trust and age. The other three go through the sketches of all facts, and score the best by
the algebra on whole vectors. What the algebra adds to a table of links: a question by role needs no index, several
entities are asked at once by taking the least of their presences, and a name that is unknown, partial or misspelt is
met by the vector of its characters. Facts that do not hold an entity stay below a threshold that follows from the
dimension, so that nothing is returned rather than noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memoranda.providers.holographic.algebra import SKETCH_FACTOR, Vector, noise, similarities, sketch
from memoranda.providers.holographic.entity_links import KnownEntity, entities_of, find_entity, similar_names
from memoranda.providers.holographic.fact import Fact
from memoranda.providers.holographic.fact_store import FactStore
from memoranda.providers.holographic.word_index import match_words

_MOST_SCORED = 512
# A sketch that resembles less than this many deviations is not looked at.
_WORTH_A_LOOK = 2.5
_LEAST_COVERAGE = 0.45
_ALMOST_AS_GOOD = 0.15
_MOST_MEANT = 3
_MOST_NEIGHBOURS = 10
_THROUGH_ANOTHER = 0.5


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact that answers; `score` ranks, `match` is how well it answers whatever its trust and age."""

    fact: Fact
    score: float
    match: float
    through: str = ""

    def as_data(self) -> dict[str, Any]:
        data = self.fact.as_data() | {"score": round(self.score, 4), "match": round(self.match, 4)}
        return data | {"through": self.through} if self.through else data


class FactFilter(NamedTuple):
    """Which facts may be returned, how many, and what those about an entity should best speak of."""

    category: str | None = None
    min_trust: float = 0.0
    limit: int = 10
    about: str = ""


class Neighbour(NamedTuple):
    """An entity that shares facts with the one that was asked for."""

    name: str
    score: float
    facts: int


class Retriever:
    """Answers questions over one store."""

    def __init__(self, store: FactStore, half_life_days: float = 0.0) -> None:
        self._store = store
        self._encoder = store.encoder
        self._half_life = half_life_days

    def search(self, query: str, wanted: FactFilter, least_coverage: float = 0.0) -> list[FoundFact]:
        """Facts by words: the share of the query's words that they have, by weight, then trust and age."""
        with self._store.database.reading() as connection:
            matched = match_words(connection, query, small_too=not least_coverage)
            matched = [match for match in matched if match.coverage >= least_coverage]
            if wanted.category is None:
                # Trust and age hardly lift what is further down.
                matched = matched[:_MOST_SCORED]
            facts = self._store.facts([match.fact_id for match in matched])
        pairs = [(facts[match.fact_id], match.score) for match in matched if match.fact_id in facts]
        return self._ranked(pairs, wanted)

    def meant(self, name: str) -> list[KnownEntity]:
        """The entities that a name stands for: the one that has it, else those whose names are closest to it."""
        with self._store.database.reading() as connection:
            exact = find_entity(connection, name)
            if exact is not None:
                return [exact]
            close = similar_names(connection, self._encoder, name, _LEAST_COVERAGE)
        return [known for coverage, known in close if coverage >= close[0][0] - _ALMOST_AS_GOOD][:_MOST_MEANT]

    def probe(self, name: str, wanted: FactFilter) -> list[FoundFact]:
        """Facts about one entity."""
        return self._ranked(self._holding([self.meant(name)], wanted.about), wanted)

    def reason(self, names: Sequence[str], wanted: FactFilter) -> list[FoundFact]:
        """Facts that hold all of these entities at once."""
        return self._ranked(self._holding([self.meant(name) for name in names], wanted.about), wanted)

    def related(self, name: str, wanted: FactFilter) -> tuple[list[Neighbour], list[FoundFact]]:
        """What is connected to an entity: the entities that share facts with it, those facts, and the neighbours' own.

        The neighbours are read out of the facts by the algebra: a fact resembles each entity that it holds.
        """
        meant = self.meant(name)
        holding = self._holding([meant])
        about = self._ranked(holding, wanted._replace(limit=_MOST_SCORED))
        neighbours = self._neighbours(about, {known.entity_id for known in meant})
        shared = [found for found in about if len(found.fact.entities) > 1]
        seen = {fact.fact_id for fact, _ in holding}
        if not neighbours or len(shared) >= wanted.limit:
            return [neighbour for _, neighbour in neighbours], shared[: wanted.limit]
        further: list[FoundFact] = []
        for known, neighbour in neighbours:
            strength = _THROUGH_ANOTHER * neighbour.score / neighbours[0][1].score
            for found in self._ranked(self._holding([[known]]), wanted):
                if found.fact.fact_id not in seen:
                    seen.add(found.fact.fact_id)
                    further.append(FoundFact(found.fact, found.score * strength, found.match, neighbour.name))
        further.sort(key=lambda found: -found.score)
        return [neighbour for _, neighbour in neighbours], (shared + further)[: wanted.limit]

    def _neighbours(self, about: list[FoundFact], asked: set[int]) -> list[tuple[KnownEntity, Neighbour]]:
        vectors = self._store.vectors([found.fact.fact_id for found in about])
        with self._store.database.reading() as connection:
            links = entities_of(connection, list(vectors))
        facts = {found.fact.fact_id: found for found in about}
        holders: dict[KnownEntity, list[int]] = {}
        for fact_id, entities in links.items():
            for known in entities:
                if known.entity_id not in asked:
                    holders.setdefault(known, []).append(fact_id)
        scored = []
        for known, fact_ids in holders.items():
            alike = similarities(self._encoder.entity(known.key), [vectors[fact_id] for fact_id in fact_ids])
            score = sum(
                self._encoder.presence(similarity, len(links[fact_id])) * facts[fact_id].score
                for fact_id, similarity in zip(fact_ids, alike, strict=True)
            )
            if score > 0:
                scored.append((known, Neighbour(known.name, round(score, 4), len(fact_ids))))
        scored.sort(key=lambda pair: (-pair[1].score, pair[0].entity_id))
        return scored[:_MOST_NEIGHBOURS]

    def _holding(self, groups: list[list[KnownEntity]], about: str = "") -> list[tuple[Fact, float]]:
        """The facts that hold an entity of every group, with the least of their presences.

        With `about`, those whose content is like that text count up to twice as much as the others.
        """
        if not groups or not all(groups):
            return []
        self._store.encode_stale()
        keys = [[self._encoder.entity(known.key) for known in group] for group in groups]
        with self._store.database.reading() as connection:
            rows = connection.execute(
                "SELECT fact_id, sketch, entity_count FROM facts WHERE encoding = ?", (self._encoder.name,)
            ).fetchall()
            promising = self._promising(rows, keys)
            vectors = self._store.vectors(promising)
            facts = self._store.facts(list(vectors))
        counts = {fact_id: count for fact_id, _, count in rows}
        order = list(vectors)
        least = [1.0] * len(order)
        for group in keys:
            present = self._presence(group, [vectors[fact_id] for fact_id in order], [counts[n] for n in order])
            least = [min(pair) for pair in zip(least, present, strict=True)]
        if about:
            alike = similarities(self._encoder.about(about), [vectors[fact_id] for fact_id in order])
            least = [
                value * (1 + self._encoder.agreement(similarity, counts[fact_id])) / 2
                for fact_id, value, similarity in zip(order, least, alike, strict=True)
            ]
        return [
            (facts[fact_id], value) for fact_id, value in zip(order, least, strict=True) if value and fact_id in facts
        ]

    def _promising(self, rows: list[tuple[int, bytes, int]], keys: list[list[Vector]]) -> list[int]:
        """The facts whose sketches resemble every group: one XOR and one count of bits for each."""
        asked = [[int.from_bytes(sketch(key), "little") for key in group] for group in keys]
        dimension = self._encoder.dimension
        # In bits that differ; sketches of unrelated vectors differ in half of theirs.
        most = dimension * (1 - _WORTH_A_LOOK * noise(dimension) * SKETCH_FACTOR)
        near: list[tuple[int, int]] = []
        if len(asked) == 1 and len(asked[0]) == 1:
            ((only,),) = asked
            for fact_id, bits, _ in rows:
                apart = (int.from_bytes(bits, "little") ^ only).bit_count()
                if apart < most:
                    near.append((apart, -fact_id))
        else:
            for fact_id, bits, _ in rows:
                number = int.from_bytes(bits, "little")
                apart = max(min((number ^ key).bit_count() for key in group) for group in asked)
                if apart < most:
                    near.append((apart, -fact_id))
        near.sort()
        return [-negative for _, negative in near[:_MOST_SCORED]]

    def _presence(self, group: list[Vector], vectors: list[Vector], counts: list[int]) -> list[float]:
        alike = [similarities(key, vectors) for key in group]
        return [
            self._encoder.presence(max(values), count)
            for values, count in zip(zip(*alike, strict=True), counts, strict=True)
        ]

    def _ranked(self, pairs: list[tuple[Fact, float]], wanted: FactFilter) -> list[FoundFact]:
        now = self._store.clock()
        found = [
            FoundFact(fact, match * fact.trust * fact.decay(now, self._half_life), match)
            for fact, match in pairs
            if fact.trust >= wanted.min_trust and wanted.category in (None, fact.category)
        ]
        found.sort(key=lambda each: (-each.score, -each.fact.fact_id))
        return found[: wanted.limit]
