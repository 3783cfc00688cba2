"""The simulated year is the same for a seed, and its facts change and end as it says."""

from pathlib import Path

import pytest

from benchmarks.year import make_year, read_wordings

pytestmark = pytest.mark.slow


def test_a_seed_makes_the_same_year() -> None:
    """So that behaviours are compared on the same facts."""
    assert make_year(3, 0.1) == make_year(3, 0.1)
    assert make_year(3, 0.1) != make_year(4, 0.1)


def test_the_year_has_what_it_promises() -> None:
    """400 facts in 1,500 sessions: 120 change, half of them with cue words, and 60 end."""
    year = make_year(1, 1.0)
    assert (len(year.facts), year.sessions, len(year.remarks)) == (400, 1_500, 80)
    changed = [fact for fact in year.facts if fact.changed is not None]
    assert (len(changed), sum(fact.with_cue for fact in changed)) == (120, 60)
    assert sum(fact.ends is not None for fact in year.facts) == 60


def test_a_changed_fact_has_one_value_at_a_time() -> None:
    """The other one is stale."""
    fact = next(fact for fact in make_year(1, 1.0).facts if fact.changed is not None)
    assert fact.changed is not None
    assert (fact.value_at(fact.changed - 1), fact.value_at(fact.changed)) == tuple(fact.values)
    assert fact.stale_at(fact.changed) == [fact.values[0]]


def test_sentences_of_a_file_replace_the_built_in_ones(tmp_path: Path) -> None:
    """A section that the file does not have keeps its own sentences."""
    path = tmp_path / "wordings.txt"
    path.write_text("# mine\n[Statements]\nOver at {project} we call {value} our {attribute}.\n\n[remarks]\nHm.\n")
    wordings = read_wordings(path)
    assert wordings.remarks == ("Hm.",)
    assert "What is the {attribute} of {project}?" in wordings.questions
    fact = make_year(1, 0.1, wordings).facts[0]
    assert fact.statement(0) == f"Over at {fact.project} we call {fact.values[0]} our {fact.attribute}."
    assert fact.ending() == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[statements]\nThe {attribute} is {value}.", ":2: a sentence of [statements] needs {project}"),
        ("[questions]\nWhat is the {attribute} of {project} in {year}?", ":2: nothing fills in {year} in [questions]"),
        ("[greetings]\nHello.", ":1: no section [greetings]"),
        ("Hello.", ":1: a sentence before the first section"),
        ("[work]\nFix {project.", ":2: expected '}'"),
    ],
)
def test_a_sentence_that_cannot_be_used_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """Nothing is skipped in silence: the count would be one of other sentences."""
    path = tmp_path / "wordings.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"wordings\.txt:\d") as caught:
        read_wordings(path)
    assert said in str(caught.value)
