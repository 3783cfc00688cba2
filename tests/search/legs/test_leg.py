"""A second leg is one file: fusion merges its candidates with those of the word leg."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.search.index.postings import Filters
from memoranda.search.legs.leg import Candidate, Candidates, SearchContext
from memoranda.search.legs.words import WordLeg
from memoranda.search.query import Query, parse
from memoranda.search.search import Search, fold, fuse
from tests.search.library import NOW, Library

pytestmark = pytest.mark.slow


class SubstringLeg:
    """Finds sessions by letters anywhere in a word, which the word leg cannot."""

    def __init__(self, store: SessionStore, context: SearchContext) -> None:
        self._store = store
        self._context = context

    def candidates(self, query: Query, filters: Filters, limit: int) -> Candidates:
        found = []
        for session in self._store.scoped(filters.scope).listing.list_sessions_rich(limit=1_000):
            for message in self._store.messages.get_messages(session["id"]):
                if query.text in message["content"]:
                    found.append(
                        Candidate(
                            session_id=session["id"],
                            conversation_id=session["conversation_id"],
                            source=session["source"],
                            message_id=message["id"],
                            role=message["role"],
                            time=message["timestamp"],
                            score=1.0,
                            signals={"substring": 1.0},
                            matches=1,
                        )
                    )
                    break
        return Candidates(found, "as letters", sessions=len(found))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """Three sessions: "cache" is a word in one, has both forms in another, and is only part of a word in the third."""
    library = Library(tmp_path)
    library.add("word", "Every Cache is cold.")
    library.add("inside", "The dashboard says recached.")
    library.add("both", "Empty the cache.")
    library.search = Search(library.index, (WordLeg, partial(SubstringLeg, library.store)))
    yield library
    library.close()


def test_a_second_leg_adds_what_only_it_finds(library: Library) -> None:
    """A session that both legs find comes first, and no session is lost."""
    found = library.find("cache")
    assert found.hits[0].session_id == "both"
    assert {hit.session_id for hit in found.hits} == {"both", "word", "inside"}
    assert found.matched_sessions == 3


def test_a_hit_says_which_signals_every_leg_gave_it(library: Library) -> None:
    """The best message is the one of the first leg."""
    both = library.find("cache").hits[0]
    assert {"substring", "message"} <= set(both.signals)
    assert both.message_id == library.ids["both"][0]


def test_what_no_word_matches_is_answered_by_the_other_leg(library: Library) -> None:
    """The answer says in that leg's words how it matches."""
    found = library.find("ecach")
    assert [hit.session_id for hit in found.hits] == ["inside"]
    assert found.how == "as letters"


def test_every_leg_gets_the_filters(library: Library) -> None:
    """Fusion cannot take back what a leg should not have shown."""
    library.store.sessions.create_session("hers", "cli", user_id="ann")
    library.store.messages.append_message("hers", "user", "Her cache is warm.")
    mine = library.find("cache", filters=Filters(Scope.of(None)))
    assert "hers" not in {hit.session_id for hit in mine.hits}
    assert [hit.session_id for hit in library.find("cache", filters=Filters(Scope.of("ann"))).hits] == ["hers"]


def test_by_time_the_legs_share_one_order(tmp_path: Path) -> None:
    """The newest session comes first, whichever leg found it."""
    library = Library(tmp_path)
    library.add("old", "Empty the cache.", time=NOW - 300)
    library.add("middle", "It was recached.", time=NOW - 200)
    library.add("new", "The cache is cold.", time=NOW - 100)
    library.search = Search(library.index, (WordLeg, partial(SubstringLeg, library.store)))
    assert library.names("cache", sort="newest") == ["new", "middle", "old"]
    assert library.names("cache", sort="oldest") == ["old", "middle", "new"]
    library.close()


def test_a_leg_that_finds_nothing_changes_nothing(library: Library) -> None:
    """Scores stay those of the word leg, on which the confidence of a hit builds."""
    with library.index.reading() as reader:
        candidates = WordLeg(SearchContext(reader, NOW)).candidates(parse("cache"), library.everyone, 10)
    assert fuse([candidates, Candidates(())]) is candidates


def test_fusion_does_not_change_the_candidates_of_a_single_leg(library: Library) -> None:
    """With only the word leg, order and scores are its own."""
    with library.index.reading() as reader:
        candidates = WordLeg(SearchContext(reader, NOW)).candidates(parse("cache"), library.everyone, 10)
    assert fuse([candidates]) is candidates
    hits = Search(library.index, (WordLeg,)).find("cache", library.everyone, limit=10, now=NOW).hits
    assert hits == tuple(fold(candidates, 10))
    assert [hit.score for hit in hits] == [candidate.score for candidate in candidates.found]
