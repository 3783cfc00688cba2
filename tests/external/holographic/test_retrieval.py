"""Facts are found by words, by entity, by connection and by several entities at once."""

import pytest

from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.retrieval import FactFilter, FoundFact, Retriever
from tests.external.holographic.generated_facts import SEEDS, chance_level, filled_store, generate, precision

from .conftest import Clock

pytestmark = pytest.mark.slow

ALL = FactFilter()


def _texts(found: list[FoundFact]) -> list[str]:
    return [each.fact.content for each in found]


@pytest.mark.parametrize("seed", SEEDS)
def test_entities_are_answered_precisely(seed: int) -> None:
    """400 facts, 50 entities with names that share their parts, and distractors: precision at 4 of 0.9 and more."""
    generated = generate(seed)
    assert (len(generated.facts), len(generated.names)) == (400, 50)
    with filled_store(generated) as store:
        reached = precision(store, generated)
    assert min(reached["probe"], reached["reason"]) >= 0.9
    assert min(reached.values()) >= 0.9
    assert max(chance_level(generated).values()) < 0.05


def test_probe_knows_who_a_fact_is_about(store: FactStore, ask: Retriever) -> None:
    """A name as an entity counts, the same word elsewhere does not."""
    about = [store.add(text)[0].content for text in ("Mark lives in Oslo", "Everybody trusts Mark")]
    store.add("We set a mark in the calendar")
    assert sorted(_texts(ask.probe("mark", ALL))) == sorted(about)
    assert len(ask.search("mark", ALL)) == 3


@pytest.mark.parametrize("name", ["Ana Kovac", "ana kovac", "Kovac", "Ana Kovax", "Ana Kovač", "“Ana Kovac”"])
def test_partial_and_misspelt_names_are_understood(store: FactStore, ask: Retriever, name: str) -> None:
    """The vector of a name's characters meets the name that is meant."""
    store.add("Ana Kovac lives in Berlin")
    store.add("Bruno Moreau lives in Lyon")
    assert _texts(ask.probe(name, ALL)) == ["Ana Kovac lives in Berlin"]


def test_an_unknown_name_finds_nothing(store: FactStore, ask: Retriever) -> None:
    """Nothing rather than noise."""
    store.add("Ana Kovac lives in Berlin")
    assert ask.probe("Wolfgang", ALL) == []
    assert ask.reason(["Ana Kovac", "Wolfgang"], ALL) == []


def test_reason_wants_all_entities_at_once(store: FactStore, ask: Retriever) -> None:
    """The only joint fact comes, and nothing else."""
    for text in ("Ana met Bob in Oslo", "Ana lives in Berlin", "Bob lives in Oslo", "Ana met Carol in Oslo"):
        store.add(text)
    assert _texts(ask.reason(["Bob", "Ana"], ALL)) == ["Ana met Bob in Oslo"]
    assert len(ask.reason(["Ana", "Oslo"], ALL)) == 2


def test_facts_about_an_entity_are_ordered_by_the_query(store: FactStore, ask: Retriever) -> None:
    """The content is unbound from the vectors and compared; no fact is omitted."""
    for text in ("Ana lives in Berlin", "Ana plays the violin at home", "Ana drinks green tea", "Bob plays the violin"):
        store.add(text)
    for query, text in (("playing violin", "Ana plays the violin at home"), ("which tea", "Ana drinks green tea")):
        found = ask.probe("Ana", FactFilter(about=query))
        assert _texts(found)[0] == text
        assert len(found) == 3


def test_related_returns_neighbours_and_shared_facts(store: FactStore, ask: Retriever) -> None:
    """Entities that share facts are ordered by strength, then further facts about them."""
    for text in ("Ana met Bob", "Ana told Bob about it", "Ana called Carol", "Bob likes tea", "Dora likes tea"):
        store.add(text)
    neighbours, found = ask.related("Ana", ALL)
    assert [(neighbour.name, neighbour.facts) for neighbour in neighbours] == [("Bob", 2), ("Carol", 1)]
    assert set(_texts(found)[:3]) == {"Ana met Bob", "Ana told Bob about it", "Ana called Carol"}
    assert [(each.fact.content, each.through) for each in found[3:]] == [("Bob likes tea", "Bob")]


def test_a_fact_with_many_entities_is_found_by_each(store: FactStore, ask: Retriever) -> None:
    """A vector has room for sixteen."""
    names = [f"Person{letter}" for letter in "ABCDEFGHIJKLMNOP"]
    store.add("They all met.", entities=names)
    for number in range(40):
        store.add(f"Another person met number {number}.", entities=[f"Other{number}"])
    assert [_texts(ask.probe(name, ALL)) for name in names] == [["They all met."]] * 16
    assert _texts(ask.reason(names, ALL)) == ["They all met."]


def test_words_are_stemmed_and_weighed(store: FactStore, ask: Retriever) -> None:
    """The fact with most of the words comes first."""
    store.add("The deployments of Atlas are started by hand")
    store.add("The backups are started at night")
    found = ask.search("who starts the deployment?", ALL)
    assert _texts(found)[0] == "The deployments of Atlas are started by hand"
    assert found[0].score > found[1].score


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("東京", "田中は東京に住んでいる"),
        ("田中さんはどこに住んでいますか", "田中は東京に住んでいる"),
        ("犬", "山本は犬を飼っている"),
        ("用户喜欢什么主题", "用户喜欢深色主题"),
        ("커피", "민수는 커피를 좋아한다"),
    ],
)
def test_scripts_without_spaces_are_searched(store: FactStore, ask: Retriever, query: str, text: str) -> None:
    """Chinese, Japanese and Korean, as a word and as a question."""
    for fact in ("田中は東京に住んでいる", "山本は犬を飼っている", "用户喜欢深色主题", "민수는 커피를 좋아한다"):
        store.add(fact)
    assert _texts(ask.search(query, ALL))[0] == text


def test_trust_and_age_rank(store: FactStore, clock: Clock) -> None:
    """A fact counts half after the half life; without one it does not age."""
    store.add("Ana likes green tea")
    clock.pass_days(30)
    store.add("Ana likes black tea")
    ageing, ageless = Retriever(store, half_life_days=30), Retriever(store)
    young, old = ageing.probe("Ana", ALL)
    assert (young.fact.content, old.fact.content) == ("Ana likes black tea", "Ana likes green tea")
    assert old.score / old.match == pytest.approx(0.25, rel=1e-6)
    assert young.score / young.match == pytest.approx(0.5, rel=1e-6)
    assert {round(each.score / each.match, 6) for each in ageless.probe("Ana", ALL)} == {0.5}
    store.update(old.fact.fact_id, trust_delta=0.5)
    assert _texts(ageless.search("tea", ALL))[0] == "Ana likes green tea"


def test_filters_omit_facts(store: FactStore, ask: Retriever) -> None:
    """They filter by category, trust and number."""
    store.add("Ana likes tea", category="user_pref")
    fact, _ = store.add("Ana builds Atlas", category="project")
    store.update(fact.fact_id, trust_delta=-0.4)
    assert _texts(ask.probe("Ana", FactFilter(category="project"))) == ["Ana builds Atlas"]
    assert _texts(ask.probe("Ana", FactFilter(min_trust=0.3))) == ["Ana likes tea"]
    assert len(ask.search("Ana", FactFilter(limit=1))) == 1
