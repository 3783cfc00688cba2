"""What a merged text lacks of its originals is named, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.curator import missing_facts


def _merges(mark: str) -> Iterator[list[str]]:
    """What is missing in each merge of `merges.txt` with this mark: `-` loses something, `=` loses nothing."""
    for line in Path(__file__).with_name("merges.txt").read_text("utf-8").splitlines():
        if line.startswith(f"{mark} "):
            entries, _, merged = line[2:].rpartition(" => ")
            _, *originals = (part.strip() for part in entries.split(" | "))
            yield missing_facts(originals, merged)


def test_what_a_merged_text_loses_is_found() -> None:
    """In at least 95 of 100 development cases: names, numbers, units, dates, paths, conditions, exceptions, owners."""
    lossy = list(_merges("-"))
    assert len([missing for missing in lossy if missing]) >= 0.95 * len(lossy) > 0


@pytest.mark.slow
def test_another_wording_loses_nothing() -> None:
    """In at least 80 of 100 development cases a text that says the same is accepted."""
    lossless = list(_merges("="))
    assert len([missing for missing in lossless if not missing]) >= 0.8 * len(lossless) > 0


@pytest.mark.parametrize(
    ("merged", "missing"),
    [
        ("The API on port 8081 has a timeout of 30 s.", []),
        ("The API on port 8081 has a timeout.", ["number 30"]),
        ("The API on port 8081 has a timeout of 30 minutes.", ["unit 30 second"]),
        ("The API has a timeout of 30 seconds.", ["number 8081"]),
    ],
    ids=["nothing", "number", "unit", "port"],
)
def test_each_missing_fact_is_named(merged: str, missing: list[str]) -> None:
    """By its kind and its text."""
    entries = ["The API listens on port 8081.", "The API has a timeout of 30 seconds."]
    assert [each for each in missing_facts(entries, merged) if not each.startswith("word")] == missing


def test_a_value_belongs_to_its_subject() -> None:
    """A text with all names and numbers is refused if they changed partners."""
    entries = ["Anna has 16 GB.", "Ben has 32 GB."]
    assert missing_facts(entries, "Ben has 32 GB and Anna 16 GB.") == []
    assert missing_facts(entries, "Ben has 16 GB and Anna 32 GB.") != []


def test_nothing_is_missing_of_nothing() -> None:
    """No entries, an empty text, or the same text."""
    assert missing_facts([], "Anything.") == []
    assert missing_facts([""], "") == []
    assert missing_facts(["Use tabs, not spaces."], "Use tabs, not spaces.") == []


def test_a_time_that_was_a_bound_from_the_other_side_is_missing() -> None:
    """After six is not before six; May is a month where it begins no sentence."""
    assert missing_facts(["Deploy only after 18:00."], "Deploy only before 18:00.") == ["condition after 18:00"]
    releases = ["Version 4.2 ships in May.", "Version 4.3 ships in July."]
    assert missing_facts(releases, "4.2 ships in July, 4.3 in May.")
    assert missing_facts(releases, "4.2 ships in May, 4.3 in July.") == []


def test_an_entry_of_which_nothing_is_left_is_missing() -> None:
    """Also where one word is all that it has of its own, and where two names changed their relation."""
    allergies = ["The user is allergic to penicillin.", "The user is allergic to latex."]
    assert missing_facts(allergies, "The user is allergic to penicillin.") == ["word latex"]
    bosses = ["Paul reports to Ines.", "Ines reports to Walter."]
    assert missing_facts(bosses, "Paul and Ines both report to Walter.") == ["Paul before Ines"]
    assert missing_facts(["服务器在上海。", "端口是 8443。"], "服务器在北京，端口 8443。") == ["value 上海"]
    assert "number -20" in missing_facts(["The freezer is kept at -20 °C."], "The freezer is kept at 20 °C.")


def test_what_a_name_says_as_well_is_not_missing() -> None:
    """A host and its port are one address."""
    assert missing_facts(["Staging host is poplar.", "Staging on poplar uses port 9090."], "Staging: poplar:9090") == []


def test_a_dose_and_a_blood_group_are_values() -> None:
    """A milligram is no gram, and a single capital is no article."""
    dose = ["Anna takes 50 mg of sertraline.", "Anna takes it in the morning."]
    assert missing_facts(dose, "Anna takes 50 g of sertraline in the morning.") == ["unit 50 mg"]
    groups = ["Ida's blood group is A.", "Tom's blood group is 0."]
    assert missing_facts(groups, "Blood groups: Ida A, Tom 0.") == []
    assert missing_facts(groups, "Blood groups: Ida 0, Tom A.") != []
