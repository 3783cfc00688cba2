"""Words that are related to those of a query."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.search.index.postings import Phrase, Word
from memoranda.search.legs.term_fetcher import related_terms
from memoranda.search.query import Term, parse
from tests.search.conftest import Call
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow

DAY = 86_400.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        yield opened


def test_related_words_that_occur_are_added() -> None:
    """A typed word gets the closest related words that occur, each with the token that it stands for."""
    found = related_terms(parse("How was the car fixed?").terms, lambda pattern: pattern == Word("vehicl"))
    assert [(related.term.token, related.typed) for related in found] == [("vehicl", "car")]
    assert 0 < found[0].closeness < 1


def test_framing_words_phrases_and_typed_words_get_none() -> None:
    """Framing words and phrases have no related words, and a typed word is not added again."""
    terms = [Term("car", Word("car"), "car", framing=True), Term("car", Phrase(("car", "port")), "car")]
    assert not related_terms(terms, lambda pattern: True)
    added = related_terms(parse("Is the car a vehicle that I should repair?").terms, lambda pattern: True)
    assert not {"car", "vehicl"} & {related.term.token for related in added}


def test_a_session_with_a_related_word_is_better_than_one_without(db: SessionDB, call: Call) -> None:
    """Of two sessions with the same typed word, the one with a related word comes first, and says so."""
    tell(db, "vehicle", ["The vehicle got new brakes in the workshop on Elm Street.", "Good."])
    tell(db, "door", ["The door got new hinges in the workshop on Elm Street.", "Good."], at=BEGIN + 5 * DAY)
    tell(db, "car", ["A car stood there.", "Yes."])
    found = call(query="What did the workshop do with my car?", limit=3, why=True)
    order = [result["session_id"] for result in found["results"]]
    assert order.index("vehicle") < order.index("door")
    why = {result["session_id"]: result["why"] for result in found["results"]}
    assert why["vehicle"]["related"] > 0
    assert "related" not in why["door"]


def test_the_typed_word_is_better_than_a_related_one(db: SessionDB, call: Call) -> None:
    """A related word counts less than the typed word itself."""
    tell(db, "typed", ["The car got new brakes in the workshop on Elm Street.", "Good."])
    tell(db, "related", ["The vehicle got new brakes in the workshop on Elm Street.", "Good."], at=BEGIN + 5 * DAY)
    tell(db, "other", ["It rained in the evening.", "Yes."])
    found = call(query="What did the workshop do with my car?", limit=3)
    assert found["results"][0]["session_id"] == "typed"
