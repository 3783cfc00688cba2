"""Facts on a server: nodes with caches of their own see the same facts, and no crash makes a cache the truth."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.errors import StorageError
from memoranda.external.holographic import user_facts
from memoranda.external.holographic.fact_store import FactError, FactStore
from memoranda.external.holographic.retrieval import FactFilter, Retriever
from memoranda.external.holographic.shared_facts import SharedFacts, cache_path
from memoranda.external.holographic.user_facts import sweep_caches

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(tmp_path: Path, postgres_url: str) -> Iterator[list[FactStore]]:
    """The facts of one user on two nodes."""
    opened = [FactStore(tmp_path / name, "ada", postgres_url, dimension=256) for name in "ab"]
    yield opened
    for store in opened:
        store.close()


def _contents(store: FactStore) -> dict[int, str]:
    store.refresh()
    return {fact.fact_id: fact.content for fact in store.list_facts(limit=100)}


@pytest.mark.smoke
def test_both_nodes_have_every_change(nodes: list[FactStore]) -> None:
    """Added, changed, rated and removed facts, with the same numbers; and both find them."""
    here, there = nodes
    first, added = here.add("Ada lives in Oslo.", tags=["home"])
    assert added
    second, _ = there.add("Ada has a boat.", entities=["The Boat"])
    assert (first.fact_id, second.fact_id) == (1, 2)
    assert _contents(here) == _contents(there) == {1: "Ada lives in Oslo.", 2: "Ada has a boat."}
    there.update(1, content="Ada lives in Bergen.")
    there.rate(2, True)
    here.refresh()
    assert [hit.fact.fact_id for hit in Retriever(here, 0.0).search("Bergen", FactFilter(None, 0.0, 5))][:1] == [1]
    changed = here.get(2)
    assert changed is not None and (changed.trust, changed.entities) == (0.55, ("The Boat",))
    assert here.remove(1)
    assert _contents(there) == {2: "Ada has a boat."}
    assert Retriever(there, 0.0).search("Bergen", FactFilter(None, 0.0, 5)) == []


def test_the_same_text_is_one_fact_whichever_node_adds_it(nodes: list[FactStore]) -> None:
    """The second node gets the fact of the first, and a duplicate by a change is refused."""
    here, there = nodes
    here.add("Ada likes tea.")
    fact, added = there.add("ada likes tea")
    assert (fact.fact_id, added) == (1, False)
    there.add("Ada likes coffee.")
    with pytest.raises(FactError, match="already says"):
        here.update(2, content="Ada likes tea.")
    assert _contents(here) == _contents(there) == {1: "Ada likes tea.", 2: "Ada likes coffee."}


def test_texts_that_were_exchanged_and_numbers_that_were_removed(nodes: list[FactStore]) -> None:
    """A cache that missed many changes takes them over at once, and never uses a number again."""
    here, there = nodes
    for text in ("One.", "Two.", "Three."):
        here.add(text)
    there.refresh()
    here.update(1, content="Moving.")
    here.update(2, content="One.")
    here.update(1, content="Two.")
    here.remove(3)
    assert _contents(there) == {1: "Two.", 2: "One."}
    assert there.add("Four.")[0].fact_id == 4


def test_a_change_that_the_server_does_not_commit_is_in_no_cache(
    nodes: list[FactStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache had it already; the next use fills the cache again."""
    here, there = nodes
    here.add("Ada lives in Oslo.")

    def fail(*arguments: object) -> int:
        raise StorageError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(here._shared, "write", fail)
        with pytest.raises(StorageError):
            here.add("Ada lives in Rome.")
        with pytest.raises(StorageError):
            here.remove(1)
    assert _contents(here) == _contents(there) == {1: "Ada lives in Oslo."}
    assert here.add("Ada lives in Rome.")[1]
    assert set(_contents(there).values()) == {"Ada lives in Oslo.", "Ada lives in Rome."}


def test_a_lost_cache_is_filled_again_and_users_are_apart(tmp_path: Path, postgres_url: str) -> None:
    """The server has the facts; another user has none of them."""
    first = FactStore(tmp_path / "a", "ada", postgres_url)
    first.add("Ada lives in Oslo.")
    first.close()
    fresh = FactStore(tmp_path / "b", "ada", postgres_url)
    other = FactStore(tmp_path / "c", "ben", postgres_url)
    assert _contents(fresh) == {1: "Ada lives in Oslo."}
    assert _contents(other) == {}
    assert other.add("Ada lives in Oslo.")[0].fact_id == 1
    assert [SharedFacts(tmp_path, user, postgres_url).count() for user in ("ada", "ben")] == [1, 1]
    fresh.close()
    other.close()


def test_a_node_deletes_caches_of_facts_that_another_node_removed(tmp_path: Path, postgres_url: str) -> None:
    """Also if their users never come back to it; other caches stay."""
    paths = {user: cache_path(tmp_path, user) for user in ("ada", "ben", "eve")}
    for user in paths:
        store = FactStore(tmp_path, user, postgres_url)
        store.add(f"{user} has a secret boat.")
        store.close()
    elsewhere = FactStore(tmp_path / "node", "ada", postgres_url)
    elsewhere.refresh()
    elsewhere.remove(1)
    with elsewhere._shared._engine.acting_for("ben").writing() as connection:
        connection.execute("DELETE FROM fact_revisions")
    elsewhere.close()
    user_facts._swept.clear()
    sweep_caches(tmp_path, postgres_url)
    assert [user for user, path in paths.items() if path.exists()] == ["eve"]
