"""The doctor looks at the caches of facts; one with a problem is deleted, and filled again from the facts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.external.holographic.health import check_caches
from memoranda.external.holographic.retrieval import FactFilter, Retriever
from memoranda.external.holographic.schema import SCHEMA
from memoranda.external.holographic.shared_facts import cache_path
from memoranda.external.holographic.user_facts import sweep_caches
from memoranda.storage.sqlite.database import PAGE_SIZE
from memoranda.support.health_issues import HealthIssue
from memoranda.upkeep.home_tables import check_parts

from .conftest import opened

pytestmark = pytest.mark.slow

FACTS = [f"Ana Kovac keeps the notes of project number {number} in a paper folder" for number in range(200)]


def _fill(home: Path) -> None:
    with opened(home) as store:
        for text in FACTS:
            store.add(text)
        store.add("it never rains there", entities=["Atlantis"])


def _only(home: Path) -> HealthIssue:
    (finding,) = check_caches(home)
    return finding


def _change(home: Path, *extract_statements: str) -> None:
    with closing(sqlite3.connect(cache_path(home, ""))) as connection, connection:
        for statement in extract_statements:
            connection.execute(statement)


def _probed(home: Path, name: str) -> list[str]:
    with opened(home) as store:
        return [found.fact.content for found in Retriever(store).probe(name, FactFilter(limit=500))]


def _searched(home: Path, words: str) -> list[str]:
    with opened(home) as store:
        return [found.fact.content for found in Retriever(store).search(words, FactFilter(limit=5))]


def test_facts_that_are_well_or_absent_have_no_findings(home: Path) -> None:
    """Also those of a user of a gateway."""
    assert list(check_caches(home)) == []
    _fill(home)
    cache_path(home, "bob").write_bytes(cache_path(home, "").read_bytes())
    cache_path(home, "bob").chmod(0o600)
    assert list(check_caches(home)) == []


def test_words_and_vectors_that_are_lost_are_rebuilt(home: Path) -> None:
    """From the facts, which say everything that is needed."""
    _fill(home)
    _change(home, "DELETE FROM fact_words WHERE rowid < 100", "DELETE FROM vectors WHERE fact_id < 50")
    finding = _only(home)
    assert "99 facts" in finding.problem
    assert finding.repair is not None
    finding.repair()
    assert list(check_caches(home)) == []
    assert len(_probed(home, "Ana Kovac")) == 200
    assert _searched(home, "project number 7")[0] == FACTS[7]


def test_a_damaged_word_index_is_rebuilt(home: Path) -> None:
    """SQLite itself does not see that it is damaged."""
    _fill(home)
    _change(home, "UPDATE fact_words_data SET block = x'00' WHERE id > 10")
    finding = _only(home)
    assert "damaged word index" in finding.problem
    assert finding.repair is not None
    finding.repair()
    assert list(check_caches(home)) == []
    assert _searched(home, "project number 7")[0] == FACTS[7]


def test_a_damaged_cache_is_reported_and_filled_again(home: Path) -> None:
    """Facts keep their entities, even if the text does not name them."""
    _fill(home)
    path = cache_path(home, "")
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'vectors'").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * PAGE_SIZE : page * PAGE_SIZE] = b"\xff" * PAGE_SIZE
    path.write_bytes(content)
    finding = _only(home)
    assert finding.repair is not None
    finding.repair()
    assert list(check_caches(home)) == []
    assert len(_probed(home, "Ana Kovac")) == 200
    assert _probed(home, "Atlantis") == ["it never rains there"]


def test_facts_that_a_cache_overlooks_are_reported(home: Path) -> None:
    """Their number is higher than that of the last change; the repair raises it, and the cache has them."""
    with opened(home) as store:
        store.add("Ana lives in Berlin")
    with closing(sqlite3.connect(home / "home.db")) as connection, connection:
        connection.execute("UPDATE shared_facts SET revision = 7, content = 'Ana lives in Rome'")
    (finding,) = check_parts(home, [SCHEMA], (), home / "home.db")
    assert "1 facts of 1 users that nodes overlook" in finding.problem and finding.repair is not None
    finding.repair()
    assert list(check_parts(home, [SCHEMA], (), home / "home.db")) == []
    with opened(home) as store:
        assert [fact.content for fact in store.list_facts()] == ["Ana lives in Rome"]


def _lose(home: Path) -> None:
    for file in home.glob("home.db*"):
        file.unlink()


def test_a_lost_home_database_is_reported_and_its_facts_are_put_back(home: Path) -> None:
    """The doctor says what is gone; the facts are in their cache, with the entities that their writer named."""
    with opened(home) as store:
        store.add("it never rains there", entities=["Atlantis"])
        store.add("The build runs on Fridays.")
        store.remove(store.add("Removed before.")[0].fact_id)
        before = store.list_facts()
    _lose(home)
    finding = _only(home)
    assert (finding.severity, finding.path.name) == ("error", "home.db")
    assert "spend ledger, API keys and log of imports are gone" in finding.problem
    assert finding.repair is not None
    assert finding.repair() == "2 facts are in home.db again"
    assert list(check_caches(home)) == []
    assert _probed(home, "Atlantis") == ["it never rains there"]
    with opened(home) as store:
        assert store.list_facts() == before


@pytest.mark.parametrize("user", ["", "bob"])
def test_the_next_use_of_facts_puts_them_back(home: Path, user: str) -> None:
    """Also if the owner is the first to use facts, and adds one: the caches of others are not swept away."""
    with opened(home, user) as store:
        store.add("The build runs on Fridays.")
    _lose(home)
    with opened(home) as store:
        store.add("A new one.")
    sweep_caches(home)
    with opened(home, user) as store:
        assert {"The build runs on Fridays."} <= {fact.content for fact in store.list_facts()}


def test_a_fact_that_was_removed_stays_removed(home: Path) -> None:
    """A cache that is behind the rows of the same file puts nothing back."""
    with opened(home) as store:
        fact, _ = store.add("The build runs on Fridays.")
    cached = cache_path(home, "").read_bytes()
    with opened(home) as store:
        store.remove(fact.fact_id)
    cache_path(home, "").write_bytes(cached)
    with opened(home) as store:
        assert store.list_facts() == []
