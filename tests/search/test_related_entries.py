"""Which curated entries bear on a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.search.excerpts import entries_matching

pytestmark = pytest.mark.slow

ENTRIES = (
    "The staging database is called heron.",
    "CI runs on Debian 12.",
    "喜欢简洁的回答",
    "Prefers concise answers.",
)


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("which databases do we have for staging?", 0),
        ("Heron", 0),
        ("where does the CI run?", 1),
        ("debian", 1),
        ("简洁", 2),
        ("how should I answer, concisely?", 3),
    ],
)
def test_an_entry_that_shares_a_word_is_found(question: str, place: int) -> None:
    """In any of its forms, in any script."""
    assert entries_matching(question, ENTRIES)[:1] == [ENTRIES[place]]


@pytest.mark.parametrize("question", ["", "the", "what is it?", "zebra", "可以", "?!"])
def test_small_words_and_other_subjects_find_nothing(question: str) -> None:
    """Silence is better than noise."""
    found = entries_matching(question, ["Zoo: no stripes.", "Lunch at noon."])
    assert found == []


def test_those_that_share_most_come_first() -> None:
    """Equal ones in their own order."""
    entries = ["heron", "staging heron", "staging"]
    assert entries_matching("heron on staging", entries) == ["staging heron", "heron", "staging"]


@given(question=st.text(), entries=st.lists(st.text(), max_size=5))
def test_what_is_found_was_there(question: str, entries: list[str]) -> None:
    """Nothing is made up or said twice, whatever is asked."""
    found = entries_matching(question, entries)
    assert all(found.count(entry) <= entries.count(entry) for entry in found)
