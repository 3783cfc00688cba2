"""A search says in one word how sure it is: of every result, and of the whole answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.relevance.fit import MAX_EVERYDAY, MAX_FOREIGN, Example, choose_cutoff, fit, rate_by_set, show_constants
from benchmarks.relevance.prompts import EVERYDAY, FOREIGN, HAS_ANSWER, written_prompts
from benchmarks.relevance.samples import MeasuredHit, Sample
from memoranda.home.session_db import SessionDB
from tests.cli.terminal import Terminal
from tests.search.conftest import Call
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow

_WORDS = ("unsure", "likely", "sure")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        yield opened


@pytest.fixture
def past(db: SessionDB) -> None:
    tell(db, "heron", ["The staging database is the heron cluster, on port 5433."], at=BEGIN)
    tell(db, "garden", ["The port wine is for the garden party on Sunday, in the shade."], at=BEGIN + 100)
    for number in range(40):
        tell(db, f"note{number}", [f"Ordinary note {number} about the list and the page."], at=BEGIN + 200 + number)


@pytest.mark.usefixtures("past")
def test_a_result_with_every_word_is_surer_than_one_with_a_single_word(call: Call) -> None:
    """And the answer is as sure as its surest result."""
    answer = call(query="which port did the heron cluster of staging have?", limit=3)
    first, *others = answer["results"]
    assert first["session_id"] == "heron" and first["confidence"] == "sure" == answer["confidence"]
    assert others and {result["confidence"] for result in others} == {"unsure"}


@pytest.mark.usefixtures("past")
def test_keywords_are_rated_as_well_as_questions(call: Call) -> None:
    """What is typed is meant, without a question word and without "I"."""
    assert call(query="heron cluster port")["confidence"] == "sure"


@pytest.mark.usefixtures("past")
def test_an_answer_with_a_few_of_the_words_is_unsure(call: Call) -> None:
    """Most of the question occurs nowhere."""
    answer = call(query="Which vintage port did Konstantin order for the wedding in Ljubljana?")
    assert answer["results"] and answer["confidence"] == "unsure"


@pytest.mark.usefixtures("past")
def test_an_order_by_time_keeps_the_word_of_the_surest_result(call: Call) -> None:
    """It need not be the first."""
    answer = call(query="port of the heron cluster in the garden", sort="newest", limit=5)
    found = [result["confidence"] for result in answer["results"]]
    assert answer["confidence"] == max(found, key=_WORDS.index)


def test_a_title_says_little(db: SessionDB, call: Call) -> None:
    """Nothing in the conversation matches."""
    tell(db, "titled", ["hello"], at=BEGIN, title="Weasel count")
    assert call(query="weasel")["results"][0]["confidence"] == "unsure"


@pytest.mark.usefixtures("past")
def test_an_answer_without_results_has_no_word(call: Call) -> None:
    """There is nothing to be sure of."""
    assert "confidence" not in call(query="quizzaciously")
    assert "confidence" not in call(query="heron", cursor="50")


def test_the_command_shows_the_word(tmp_path: Path) -> None:
    """In the line above the results, and with each result."""
    with SessionDB(tmp_path / "state.db") as db:
        tell(db, "heron", ["The staging database is the heron cluster, on port 5433."], at=BEGIN)
        for number in range(40):
            tell(db, f"note{number}", [f"Ordinary note {number} about the list."], at=BEGIN + 200 + number)
    head, _, _, facts, *_ = Terminal(tmp_path).run("search", "heron cluster port").stdout.splitlines()
    assert head.endswith(" · sure") and facts.endswith(" · sure")


def test_the_fit_finds_what_separates_and_always_the_same() -> None:
    """The constants in the package are the printed ones of a fit, so the same examples must give the same line."""
    examples = [Example({"words": number % 5, "noise": number % 7 / 7}, number % 5 > 2, 1.0) for number in range(70)]
    shown = {show_constants("FLOOR", fit(examples, ("words", "noise"))) for _ in range(2)}
    chosen = fit(examples, ("words", "noise"))
    assert len(shown) == 1 and chosen.weights["words"] > 1 and abs(chosen.weights["noise"]) < 0.3


def test_the_cutoff_keeps_unwanted_evidence_within_the_limits() -> None:
    """It is the lowest that does."""
    scored = [
        (Sample("set", "store", kind, f"{kind} {number}", (), (), (), 0, False, 0.0), number / 50 + lift)
        for kind, lift in ((HAS_ANSWER, 1.0), (FOREIGN, -1.0), (EVERYDAY, -1.0))
        for number in range(50)
    ]
    cutoff = choose_cutoff(scored)
    assert rate_by_set(scored, cutoff, FOREIGN) <= MAX_FOREIGN and rate_by_set(scored, cutoff, EVERYDAY) <= MAX_EVERYDAY
    assert rate_by_set(scored, cutoff - 0.1, EVERYDAY) > MAX_EVERYDAY


def test_no_written_prompt_is_in_both_parts() -> None:
    """The locked part would not be unseen."""
    for name in ("everyday", "work"):
        development, locked = (written_prompts(name, part) for part in ("development", "locked"))
        assert not set(development) & set(locked)
    assert len(written_prompts("everyday", "development")) + len(written_prompts("everyday", "locked")) > 500


def test_a_measured_hit_survives_the_file_of_samples(tmp_path: Path) -> None:
    """A fit can be repeated from the file."""
    from benchmarks.relevance.samples import read_samples, write_samples

    hit = MeasuredHit({"words": 1.1}, 2, True)
    sample = Sample("set", "store", HAS_ANSWER, "größer?", (hit,), (), (hit,), 10, True, 0.1)
    write_samples(tmp_path / "samples.jsonl", [sample])
    assert read_samples(tmp_path / "samples.jsonl") == [sample]
