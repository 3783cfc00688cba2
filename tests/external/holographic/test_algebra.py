"""Vectors have the documented similarities."""

import math
from functools import cache
from itertools import combinations

import pytest

from memoranda.external.holographic import algebra
from memoranda.external.holographic.algebra import (
    SKETCH_FACTOR,
    atom,
    bind,
    bundle,
    expected_similarity,
    noise,
    pack,
    similarity,
    sketch,
    sketch_similarity,
    unbind,
    unpack,
)
from memoranda.external.holographic.encoding import Encoder

pytestmark = pytest.mark.slow

DIMENSION = 1024
NEAR = 4 * noise(DIMENSION)


def _atoms(count: int) -> list[algebra.Vector]:
    return [atom(f"word {number}", DIMENSION) for number in range(count)]


def test_atoms_are_the_same_everywhere() -> None:
    """Phases come from SHA-256 of the word and a counter."""
    angles = [phase * math.tau / algebra.TURN for phase in atom("hello", DIMENSION)]
    assert angles[:4] == pytest.approx([5.946572, 5.294247, 4.877388, 2.842562], abs=1e-6)
    assert atom("hello", 100) == atom("hello", DIMENSION)[:100]


def test_unrelated_atoms_resemble_each_other_by_nothing_but_noise() -> None:
    """The mean is 0 and the deviation what `noise` says."""
    alike = [similarity(a, b) for a, b in combinations(_atoms(30), 2)]
    assert max(map(abs, alike)) < 5 * noise(DIMENSION)
    assert math.sqrt(sum(value * value for value in alike) / len(alike)) == pytest.approx(noise(DIMENSION), rel=0.15)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_a_bundle_resembles_its_members_by_what_is_expected(count: int) -> None:
    """1, 2/π, 0.52 … for every member, and nothing for others."""
    *members, stranger = _atoms(count + 1)
    together = bundle(members)
    for member in members:
        assert similarity(together, member) == pytest.approx(expected_similarity(count), abs=NEAR)
    assert abs(similarity(together, stranger)) < NEAR


def test_unbinding_undoes_binding() -> None:
    """A bound vector resembles neither part, and unbinding restores every bit."""
    a, b = _atoms(2)
    bound = bind(a, b)
    assert unbind(bound, b) == a
    assert abs(similarity(bound, a)) < NEAR
    assert abs(similarity(bound, b)) < NEAR


def test_a_fact_answers_by_role() -> None:
    """Its entity is present as an entity, its text as content, and neither in the other's role."""
    encoder = Encoder(DIMENSION)
    fact = encoder.fact("lives in Berlin", ["ana"])
    assert similarity(fact, encoder.entity("ana")) == pytest.approx(2 / math.pi, abs=NEAR)
    assert abs(similarity(fact, encoder.entity("bob"))) < NEAR
    assert abs(similarity(fact, encoder.entity("berlin"))) < NEAR
    assert similarity(encoder.content(fact), encoder.text("lives in Berlin")) == pytest.approx(2 / math.pi, abs=NEAR)
    assert abs(similarity(encoder.content(fact), encoder.text("drinks green tea"))) < NEAR
    assert encoder.presence(similarity(fact, encoder.entity("ana")), 1) > 0.9
    assert encoder.presence(similarity(fact, encoder.entity("bob")), 1) == 0


def test_two_facts_that_share_their_entity_resemble_each_other_by_four_over_pi_squared() -> None:
    """(2/π)²."""
    encoder = Encoder(DIMENSION)
    a, b = encoder.fact("drinks tea", ["ana"]), encoder.fact("builds boats", ["ana"])
    assert similarity(a, b) == pytest.approx((2 / math.pi) ** 2, abs=NEAR)


def test_sketches_estimate_likeness() -> None:
    """Two bits per dimension are enough to tell members from strangers."""
    *members, stranger = _atoms(5)
    together = int.from_bytes(sketch(bundle(members)), "little")
    assert len(sketch(stranger)) == DIMENSION // 4

    def estimate(vector: algebra.Vector) -> float:
        return sketch_similarity(together, int.from_bytes(sketch(vector), "little"), DIMENSION) / SKETCH_FACTOR

    assert all(estimate(member) == pytest.approx(expected_similarity(4), abs=2 * NEAR) for member in members)
    assert abs(estimate(stranger)) < 2 * NEAR


def test_vectors_survive_being_stored() -> None:
    """Two bytes per phase."""
    (vector,) = _atoms(1)
    assert unpack(pack(vector)) == vector
    assert len(pack(vector)) == 2 * DIMENSION


def test_names_that_are_alike_resemble_each_other() -> None:
    """A part of a name is covered by it, a misspelling mostly, another name hardly."""
    encoder = Encoder(DIMENSION)

    def coverage(asked: str, known: str) -> float:
        sketches = (int.from_bytes(encoder.name_sketch(name), "little") for name in (asked, known))
        return encoder.name_coverage(asked, next(sketches), known, next(sketches))

    assert coverage("kovac", "ana kovac") == pytest.approx(1, abs=0.2)
    assert coverage("kovax", "ana kovac") == pytest.approx(0.6, abs=0.2)
    assert coverage("moreau", "ana kovac") < 0.25


def test_numpy_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numpy can be imported, bundles and likenesses are those of pure Python."""
    pytest.importorskip("numpy")
    vectors = _atoms(7)
    fast, fast_alike = bundle(vectors), algebra.similarities(vectors[0], vectors)
    monkeypatch.setattr(algebra, "fast_arithmetic", cache(lambda: None))
    slow, slow_alike = bundle(vectors), algebra.similarities(vectors[0], vectors)
    assert max((a - b + 1) % algebra.TURN for a, b in zip(fast, slow, strict=True)) <= 2
    assert fast_alike == pytest.approx(slow_alike, abs=1e-12)
