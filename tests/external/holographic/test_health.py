"""The doctor looks at the facts, and saves them when their file is damaged."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.external.holographic.health import check
from memoranda.external.holographic.retrieval import FactFilter, Retriever
from memoranda.support.health_issues import HealthIssue

from .conftest import opened

FACTS = [f"Ana Kovac keeps the notes of project number {number} in a paper folder" for number in range(200)]


def _fill(home: Path) -> None:
    with opened(home) as store:
        for text in FACTS:
            store.add(text)
        store.add("it never rains there", entities=["Atlantis"])


def _only(home: Path) -> HealthIssue:
    (finding,) = check(home)
    return finding


def _change(home: Path, *extract_statements: str) -> None:
    with closing(sqlite3.connect(home / "holographic.db")) as connection, connection:
        for statement in extract_statements:
            connection.execute(statement)


def _probed(home: Path, name: str) -> list[str]:
    with opened(home) as store:
        return [found.fact.content for found in Retriever(store).probe(name, FactFilter(limit=500))]


def _searched(home: Path, words: str) -> list[str]:
    with opened(home) as store:
        return [found.fact.content for found in Retriever(store).search(words, FactFilter(limit=5))]


@pytest.mark.slow
def test_facts_that_are_well_or_absent_have_no_findings(home: Path) -> None:
    """Also those of a user of a gateway."""
    assert list(check(home)) == []
    _fill(home)
    (home / "holographic-bob.db").write_bytes((home / "holographic.db").read_bytes())
    (home / "holographic-bob.db").chmod(0o600)
    assert list(check(home)) == []


@pytest.mark.slow
def test_words_and_vectors_that_are_lost_are_rebuilt(home: Path) -> None:
    """From the facts, which say everything that is needed."""
    _fill(home)
    _change(home, "DELETE FROM fact_words WHERE rowid < 100", "DELETE FROM vectors WHERE fact_id < 50")
    finding = _only(home)
    assert "99 facts" in finding.problem
    assert finding.repair is not None
    assert "201 facts can be found again" in str(finding.repair())
    assert list(check(home)) == []
    assert len(_probed(home, "Ana Kovac")) == 200
    assert _searched(home, "project number 7")[0] == FACTS[7]


@pytest.mark.slow
def test_a_damaged_word_index_is_rebuilt(home: Path) -> None:
    """SQLite itself does not see that it is damaged."""
    _fill(home)
    _change(home, "UPDATE fact_words_data SET block = x'00' WHERE id > 10")
    finding = _only(home)
    assert "damaged word index" in finding.problem
    assert finding.repair is not None
    finding.repair()
    assert list(check(home)) == []
    assert _searched(home, "project number 7")[0] == FACTS[7]


@pytest.mark.slow
def test_a_damaged_file_is_saved_fact_by_fact(home: Path) -> None:
    """Facts keep their entities, even if the text does not name them; the damaged file is kept."""
    _fill(home)
    path = home / "holographic.db"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'vectors'").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 8192 : page * 8192] = b"\xff" * 8192
    path.write_bytes(content)
    finding = _only(home)
    assert (finding.severity, finding.repair is not None) == ("error", True)
    assert finding.repair is not None
    assert "saved 201 facts" in str(finding.repair())
    assert list(check(home)) == []
    assert len(_probed(home, "Ana Kovac")) == 200
    assert _probed(home, "Atlantis") == ["it never rains there"]
    assert list(home.glob("holographic.db.damaged-*"))


@pytest.mark.slow
def test_facts_whose_links_are_lost_are_linked_by_their_text(home: Path) -> None:
    """As far as the text says what they are about."""
    _fill(home)
    path = home / "holographic.db"
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'fact_entities'").fetchall()
    content = bytearray(path.read_bytes())
    for (page,) in pages:
        content[(page - 1) * 8192 : page * 8192] = b"\xff" * 8192
    path.write_bytes(content)
    repair = _only(home).repair
    assert repair is not None
    repair()
    assert len(_probed(home, "Ana Kovac")) == 200
