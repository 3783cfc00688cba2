"""Facts are kept once, with their provenance, trust and entities, by any number of processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.external.holographic.fact_store import FactError, FactStore, Provenance, read_state
from memoranda.external.holographic.provider import HolographicProvider
from memoranda.external.holographic.retrieval import FactFilter, Retriever
from memoranda.external.holographic.shared_facts import cache_path
from memoranda.external.holographic.user_facts import delete_cache, sweep_caches
from tests.forked import Forked, Say, forking
from tests.timing import GIVE_UP

from .conftest import Clock, opened

pytestmark = pytest.mark.slow

WRITER = """
import sys
from pathlib import Path
from memoranda.external.holographic.fact_store import FactStore
store = FactStore(Path(sys.argv[1]), "")
for number in range(25):
    store.add(f"Worker {sys.argv[2]} saw Atlas {number} times")
    store.add(f"Everybody saw Atlas {number} times")
store.close()
"""


def test_a_fact_is_kept_with_where_it_comes_from(home: Path, clock: Clock) -> None:
    """Provenance, category, tags and time survive closing."""
    with opened(home, clock=clock) as store:
        made, new = store.add(
            "Ana lives in Berlin", category="project", tags=["home, city", "home"],
            provenance=Provenance("s1", "call 7", "tool"),
        )  # fmt: skip
        assert new
    with opened(home) as store:
        fact = store.get(made.fact_id)
    assert fact == made
    assert fact.provenance == ("s1", "call 7", "tool")
    assert (fact.category, fact.tags, fact.trust, fact.created_at) == ("project", ("home", "city"), 0.5, clock.now)


@pytest.mark.parametrize("again", ["Ana lives in Berlin", "  ana  lives in BERLIN.", "Ａna lives in Berlin"])
def test_the_same_text_is_one_fact(store: FactStore, again: str) -> None:
    """However it is spelt, the fact that was there is returned."""
    first, _ = store.add("Ana lives in Berlin")
    assert store.add(again, category="tool") == (first, False)
    assert len(store.list_facts()) == 1


def test_trust_follows_feedback_within_its_limits(store: FactStore) -> None:
    """Up by 0.05, down by 0.10, never beyond 0 and 1."""
    fact, _ = store.add("Ana lives in Berlin")
    before, rated = store.rate(fact.fact_id, helpful=True)
    assert (before, rated.trust, rated.helpful_count) == (0.5, 0.55, 1)
    assert store.rate(fact.fact_id, helpful=False)[1].trust == 0.45
    for _ in range(6):
        store.rate(fact.fact_id, helpful=False)
    assert store.list_facts()[0].trust == 0
    assert store.update(fact.fact_id, trust_delta=9).trust == 1
    assert store.list_facts()[0].helpful_count == 1


def test_retrievals_are_counted(store: FactStore) -> None:
    """Once per return."""
    fact, _ = store.add("Ana lives in Berlin")
    store.count_retrieved([fact.fact_id])
    store.count_retrieved([fact.fact_id, 999])
    assert store.list_facts()[0].retrieval_count == 2


def test_changing_a_fact_changes_what_finds_it(store: FactStore, ask: Retriever) -> None:
    """Words, entities and vector follow the text."""
    fact, _ = store.add("Ana lives in Berlin")
    changed = store.update(fact.fact_id, content="Bob lives in Oslo", tags=["norway"])
    assert changed.entities == ("Bob", "Oslo")
    assert ask.probe("Ana", FactFilter()) == [] == ask.search("Berlin", FactFilter())
    assert [each.fact.fact_id for each in ask.probe("Bob", FactFilter())] == [fact.fact_id]
    assert [each.fact.fact_id for each in ask.search("norway", FactFilter())] == [fact.fact_id]
    store.remove(fact.fact_id)
    assert ask.probe("Bob", FactFilter()) == [] == ask.search("norway", FactFilter())


def test_a_text_that_another_fact_has_is_refused(store: FactStore) -> None:
    """With the number of the fact that has it; nothing changes."""
    first, _ = store.add("Ana lives in Berlin")
    second, _ = store.add("Ana lives in Tokyo")
    with pytest.raises(FactError, match=f"Fact {first.fact_id} already says that"):
        store.update(second.fact_id, content="ana lives in berlin")
    assert store.get(second.fact_id) == second
    assert store.update(first.fact_id, content="Ana lives in BERLIN").content == "Ana lives in BERLIN"


@pytest.mark.parametrize("other", ["user%name", "userXname", "user_nam_", "%"])
def test_names_with_special_characters_are_distinct(store: FactStore, ask: Retriever, other: str) -> None:
    """Names are compared for equality."""
    store.add("One", entities=["user_name"])
    store.add("Two", entities=[other])
    assert [each.fact.content for each in ask.probe("user_name", FactFilter())] == ["One"]


def test_names_that_are_said_to_be_one_become_one(store: FactStore, ask: Retriever) -> None:
    """Facts of both are found by either, those from before included."""
    for text in ("BDFL retired in 2018", "Guido wrote Python", "Guido aka BDFL is Dutch"):
        store.add(text)
    for name in ("Guido", "bdfl"):
        assert len(ask.probe(name, FactFilter())) == 3


def test_secrets_are_not_kept(store: FactStore) -> None:
    """What looks like a credential is taken out of a fact."""
    fact, _ = store.add("The key of Ana is ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    assert "ghp_a1B2" not in fact.content


def test_another_dimension_encodes_again(home: Path) -> None:
    """Larger and smaller; everything is still found."""
    for dimension in (1024, 512, 2000):
        with opened(home, dimension=dimension) as store:
            store.add(f"Ana saw {dimension} birds")
            found = Retriever(store).probe("Anna", FactFilter()) or Retriever(store).probe("Ana", FactFilter())
            assert len(found) == len(store.list_facts())
            assert store.encode_stale() == 0


def test_several_processes_write_one_store(home: Path) -> None:
    """Nothing is lost, and what both say is kept once."""
    command = [sys.executable, "-c", WRITER, str(home)]
    writers = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    assert [writer.wait(timeout=GIVE_UP) for writer in writers] == [0, 0]
    with opened(home) as store:
        texts = [fact.content for fact in store.list_facts(limit=500)]
        assert len(Retriever(store).probe("Atlas", FactFilter(limit=500))) == 75
    assert len(texts) == len(set(texts)) == 75


@forking
def test_first_sessions_that_start_at_once_find_their_facts(home: Path) -> None:
    """None deletes the cache that another one is creating."""

    def start(say: Say) -> None:
        provider = HolographicProvider()
        provider.initialize("s1", hermes_home=str(home))
        provider.on_memory_write("add", "memory", f"Ana saw {os.getpid()} birds")
        say(provider.prefetch(f"Who saw {os.getpid()} birds?").encode())
        provider.shutdown()

    sessions = [Forked(start) for _ in range(6)]
    assert [b"Ana saw" in session.rest() for session in sessions] == [True] * 6
    with opened(home) as store:
        assert len(store.list_facts()) == 6


def test_a_session_that_starts_leaves_a_new_cache_to_its_creator(home: Path) -> None:
    """Whether it has its tables already or not."""
    path = cache_path(home, "ben")
    with opened(home, "ada") as store:
        path.touch()
        sweep_caches(home)
        assert path.exists()
        assert store.add("Ana lives in Berlin")[1]


def test_a_cache_that_is_deleted_while_it_is_open_is_filled_again(home: Path) -> None:
    """Another session deletes it after facts were removed on another machine."""
    with opened(home) as store:
        store.add("Ana lives in Berlin")
        delete_cache(cache_path(home, ""))
        store.refresh()
        assert [fact.content for fact in store.list_facts()] == ["Ana lives in Berlin"]


def test_a_damaged_cache_is_filled_again(home: Path) -> None:
    """The facts are in `home.db`; nothing is lost with the file that finds them."""
    with opened(home) as store:
        store.add("Ana lives in Berlin")
    cache_path(home, "").write_bytes(b"no database at all, but long enough to look like one" * 100)
    with opened(home) as store:
        assert [found.fact.content for found in Retriever(store).search("Berlin", FactFilter())] == [
            "Ana lives in Berlin"
        ]


def test_a_refused_change_does_not_fill_the_cache_again(home: Path) -> None:
    """A text that another fact has changes nothing, so nothing must be read again."""
    with opened(home) as store:
        store.add("Ana lives in Berlin")
        store.add("Ana lives in Rome")
        with pytest.raises(FactError):
            store.update(2, content="Ana lives in Berlin")
        with store.database.reading() as connection:
            assert read_state(connection)[0] == 2


def test_adding_does_not_get_slower_with_the_number_of_facts(store: FactStore) -> None:
    """Only the rows of the new fact are written."""
    for number in range(60):
        store.add(f"Ana saw {number} birds in Oslo")
    with store.database.reading() as connection:
        before = dict(connection.execute("SELECT fact_id, vector FROM vectors"))
    store.add("Ana saw a cat in Oslo")
    with store.database.reading() as connection:
        after = dict(connection.execute("SELECT fact_id, vector FROM vectors"))
    assert len(after) == 61
    assert {number: after[number] for number in before} == before
