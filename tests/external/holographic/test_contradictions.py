"""Facts that cannot both be right are found, and facts that go together are left alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.contradictions import Part, count
from memoranda.external.holographic.contradictions import compare, find_contradictions, read_claim
from memoranda.external.holographic.fact_store import FactStore
from tests.external.holographic.generated_facts import filled_store, generate

from .conftest import opened

pytestmark = pytest.mark.slow

CONTRADICTING = (
    ("Ana lives in Berlin", "Ana lives in Tokyo"),
    ("Ana lives in Berlin", "Ana moved to Tokyo"),
    ("Ana Kovac works at ACME Corp", "Ana Kovac is employed by Initech"),
    ("Ana now lives in New York", "Ana currently lives in San Francisco"),
    ("Ana lives in Berlin with her cat", "Ana lives in Tokyo"),
    ("The Gateway listens on port 8080", "The Gateway listens on port 9090"),
    ("The user prefers dark mode", "The user prefers light mode"),
    ("Bob's favorite editor is vim", "Bob's favourite editor is emacs"),
    ("The timeout of the Gateway is 30 seconds", "The timeout of the Gateway is 60 seconds"),
    ("Bob is 34 years old", "Bob is 35 years old"),
    ("Atlas is owned by the platform team", "Atlas is owned by the data team"),
    ("Atlas uses Python 3.11", "Atlas uses Python 3.12"),
    ("Bob eats meat", "Bob does not eat meat"),
    ("Releases of Atlas happen on Monday", "Releases of Atlas happen on Friday"),
    ("Atlas is deployed on Hetzner", "Atlas is hosted at Azure"),
    ("The nightly import of Atlas takes 5 minutes", "The nightly import of Atlas takes 20 minutes"),
    ("Guido aka BDFL lives in Oslo", "BDFL lives in Bergen"),
    ("Carla's boss is Henrik", "Carla's manager is Sabine"),
    ("The Riverside gym costs 30 euros", "The Riverside gym charges 45 euros a month"),
    ("The Linden library closes at 18:00", "The Linden library shuts at 20:00"),
    ("The wifi password is hunter2", "The wifi password is swordfish"),
    ("Kofi is divorced", "Kofi is married"),
    ("The Vault import takes 4 minutes", "The Vault import takes half an hour"),
    ("Karim loves olives", "Karim hates olives"),
    ("Imports of Vault are forbidden", "Imports of Vault are allowed"),
    ("Karim uses Slackware", "Karim switched from Slackware to Gentoo"),
    ("Karim smokes", "Karim quit smoking"),
    ("Dora was born in 1984", "Dora was born in 1979"),
)
GOING_TOGETHER = (
    ("Ana lives in Berlin", "Bob lives in Tokyo"),
    ("Ana lives in Berlin", "Bob lives in Berlin"),
    ("Ana lives in Berlin", "Ana works in Tokyo"),
    ("Ana lives in Berlin", "Ana lives in Berlin with her cat"),
    ("Ana lives in Berlin", "Ana used to live in Tokyo"),
    ("Ana lived in Berlin", "Ana lives in Tokyo"),
    ("Ana lives in Berlin in summer", "Ana lives in Tokyo in winter"),
    ("Ana likes tea", "Ana likes coffee"),
    ("Ana visited Berlin", "Ana visited Tokyo"),
    ("Ana knows Bob", "Ana knows Carol"),
    ("Ana is tall", "Ana is a doctor"),
    ("Ana's editor is vim", "Ana's shell is zsh"),
    ("Ana works at ACME Corp", "Ana works in Berlin"),
    ("Atlas uses Redis", "Atlas uses PostgreSQL"),
    ("The Gateway listens on port 8080", "The Gateway listens on the internal network"),
    ("Ana pairs with Bob on the billing page", "Ana pairs with Bob on the export queue"),
    ("Ana keeps the notes of the index in a folder", "Ana keeps the notes of the worker in a folder"),
    ("Ana fixed bug 12", "Ana fixed bug 14"),
    ("Ana wrote the parser", "Ana wrote the printer"),
    ("Ana handed report 12 over to Bob", "Ana handed queue 14 over to Bob"),
    ("Ana called Bob", "Ana called Carol"),
    ("Ana runs the backend", "Ana runs the frontend"),
    ("Ana works at ACME Corp", "Ana works on the billing page"),
    ("Ana is a nurse", "Ana is funny"),
    ("Ana is interested in chess", "Ana is interested in astronomy"),
    ("Atlas depends on numpy", "Atlas depends on scipy"),
    ("Atlas has 3 replicas", "Atlas has 2 shards"),
    ("The dishwasher is new", "The dishwasher is in the kitchen"),
    ("Ana loves olives", "Ana hates celery"),
    ("Ana was born in Berlin", "Ana moved from Berlin to Tokyo"),
    ("Ana uses Gentoo", "Ana switched from Slackware to Gentoo"),
)


def _found(home: Path, texts: tuple[str, ...]) -> list[tuple[set[str], float]]:
    with opened(home) as store:
        for text in texts:
            store.add(text)
        pairs = find_contradictions(store)
    return [({pair.newer.content, pair.older.content}, pair.score) for pair in pairs]


@pytest.mark.parametrize("texts", CONTRADICTING)
def test_different_values_of_one_attribute_are_found(home: Path, texts: tuple[str, str]) -> None:
    """Two values for what there is one of."""
    found = _found(home, texts)
    assert [pair for pair, _ in found] == [set(texts)]
    assert found[0][1] >= 0.5


@pytest.mark.parametrize("texts", GOING_TOGETHER)
def test_facts_that_go_together_are_not_reported(home: Path, texts: tuple[str, str]) -> None:
    """Other subjects, other attributes, other times, and attributes with many values."""
    assert _found(home, texts) == []


def test_all_true_pairs_are_found_among_everything_else(home: Path) -> None:
    """With every sentence of both lists in one store nothing is lost, and the newer fact comes first."""
    pairs = [pair for pair in CONTRADICTING if "Ana" not in pair[0] and "Bob is" not in pair[0]]
    with opened(home) as store:
        for texts in pairs:
            for text in texts:
                store.add(text)
        found = find_contradictions(store, limit=50)
    assert {(pair.older.content, pair.newer.content) for pair in found} == set(pairs)


def test_a_contradiction_has_both_facts_and_its_measures(store: FactStore) -> None:
    """Both facts, what they share, and how sure it is."""
    store.add("Ana lives in Berlin")
    store.add("Ana lives in Tokyo")
    (data,) = [pair.as_data() for pair in find_contradictions(store)]
    assert data["fact_a"]["content"] == "Ana lives in Tokyo"
    assert data["shared_entities"] == ["Ana"]
    assert data["entity_overlap"] == pytest.approx(1 / 3, abs=0.001)
    assert data["content_similarity"] == 1
    assert data["contradiction_score"] > 0.9


# What is said here is also measured: see benchmarks/contradictions.py.
@pytest.mark.parametrize(("part", "minimum"), [("development", 0.8), ("held out", 0.5), ("afterwards", 0.7)])
def test_some_pairs_of_a_larger_set_are_found_and_few_are_suspected(part: Part, minimum: float) -> None:
    """Pairs of several domains in many words; at most one in twenty that can both be right is suspected."""
    counted = count(part)
    assert counted.found / counted.contradicting >= minimum
    assert counted.suspected / counted.compatible <= 0.05


@pytest.mark.parametrize(
    ("a", "b", "contradicting"),
    [
        ("Bob no longer works at ACME Corp", "Bob works at ACME Corp", True),
        ("Bob no longer works at ACME Corp", "Bob works at Initech", False),
        ("Bob reports to Carol", "Bob's manager is Ana", True),
        ("Bob's manager is Carol", "Ana's manager is Carol", False),
        ("Atlas has a budget of 80,000 euros", "The budget for Atlas is 50,000 euros", True),
        ("The gym membership costs 29 euros a month", "The gym membership costs 35 euros a month", True),
        ("Carol is the head of Atlas", "The head of Atlas is Bob", True),
        ("Bob is taller than Carol", "Bob is taller than Ana", False),
        ("Bob's friend is Carol", "Bob's friend is Ana", False),
        ("Bob prefers green tea", "Bob prefers short answers", False),
        ("Bob takes the bus", "Bob takes vitamins", False),
        ("Bob does not eat meat", "Bob does not eat fish", False),
        ("Bob is allergic to peanuts", "Bob has no allergies", True),
        ("Bob should hand table 56 over", "Bob should hand table 61 over", False),
        ("Bob maintains the login queue 406 elsewhere", "Bob maintains the login queue 531 elsewhere", False),
        ("The login service 517 needs a review and a note", "The login service 412 needs a review and a note", False),
        ("The spare key is in the garage", "The spare ladder is in the cellar", False),
        ("Bob visited Rome in 2018", "Bob visited Rome in 2022", False),
    ],
)
def test_a_pair_must_be_about_one_entity_and_one_attribute(home: Path, a: str, b: str, contradicting: bool) -> None:
    """The order of the words does not matter, and some other phrases name the same attribute."""
    assert bool(_found(home, (a, b))) is contradicting


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_compared(a: str, b: str) -> None:
    """Whatever it is; and no text contradicts itself."""
    one, other = read_claim(a, {1: ["Ana"]}), read_claim(b, {1: ["Ana"]})
    assert 0 <= compare(one, other) <= 1
    assert compare(one, one) == 0


_SAID = """
Ana Bob is are has not no the a of in on at by 3 30 days May Monday 9:00 port due born lives moved called than taller
editor vim owns deploys stores data vegetarian 's does never wakes up half an hour there quit smoking
"""
_WORDS = st.lists(st.sampled_from(_SAID.split()), max_size=12).map(" ".join)


@given(_WORDS, _WORDS)
def test_any_order_of_words_can_be_compared(a: str, b: str) -> None:
    """In both directions with the same answer."""
    names = {1: ["Ana"], 2: ["Bob"]}
    one, other = read_claim(a, names), read_claim(b, names)
    assert compare(one, other) == compare(other, one)
    assert compare(one, one) == 0


def test_generated_facts_do_not_contradict_each_other() -> None:
    """Hundreds of facts in the same words about the same people, all of which can be true."""
    with filled_store(generate(1)) as store:
        assert find_contradictions(store) == []
