"""Matching and planning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.operations import (
    Add,
    Ambiguous,
    EntryEdit,
    EntryPlan,
    NoMatch,
    Operation,
    Remove,
    Replace,
    apply_edit,
    locate,
    plan,
    rewrite_edits,
    summarise_edits,
)

_ENTRIES = st.lists(st.sampled_from(["a", "b", "ab", "abc", "c d", "é", "x\ny"]), max_size=6)
_TEXT = st.sampled_from(["a", "b", "ab", "abc", "zz", "é", "e\u0301", "new"])
_OPERATION = st.one_of(st.builds(Add, _TEXT), st.builds(Replace, _TEXT, _TEXT), st.builds(Remove, _TEXT))


def test_a_unique_part_finds_its_entry() -> None:
    """One entry holds the text: that one is meant."""
    assert locate(["uses pytest", "likes tea"], "tea") == 1


def test_an_exact_match_wins_over_longer_entries() -> None:
    """`cat` means the entry `cat`, not the one about cats and dogs."""
    assert locate(["cats and dogs", "cat"], "cat") == 1


def test_several_different_entries_are_ambiguous() -> None:
    """All candidates come back for the caller to choose."""
    assert locate(["task: one", "task: two"], "task") == ("task: one", "task: two")


def test_several_equal_entries_mean_the_first() -> None:
    """Equal entries are as good as one another."""
    assert locate(["other", "dup entry", "dup entry"], "dup") == 1


def test_composed_and_decomposed_letters_match() -> None:
    """A file written elsewhere may hold decomposed letters."""
    assert locate(["cafe\u0301 au lait"], "café") == 0


def test_matching_tells_capitals_apart_but_hints_at_them() -> None:
    """No silent guess; the near miss is named."""
    outcome = plan(["Uses Pytest"], [Remove("pytest")])
    assert outcome == NoMatch(1, ("Uses Pytest",))


def test_a_handle_finds_an_entry_whose_text_nobody_can_see() -> None:
    """The digest names it."""
    assert locate(["a", "hidden"], handle("hidden")) == 1


def test_a_batch_sees_its_own_earlier_operations() -> None:
    """An entry added first can be replaced next."""
    outcome = plan([], [Add("one"), Replace("one", "two"), Add("three")])
    assert isinstance(outcome, EntryPlan)
    assert outcome.entries == ("two", "three")


def test_a_batch_stops_at_its_first_operation_that_fits_nothing() -> None:
    """The result has the number of that operation."""
    assert plan(["a"], [Add("b"), Remove("zz")]) == NoMatch(2, ())
    assert plan(["ax", "ay"], [Remove("a")]) == Ambiguous(1, ("ax", "ay"))


def test_becoming_a_copy_of_another_entry_merges_the_two() -> None:
    """A second copy would only waste the budget."""
    outcome = plan(["old", "new"], [Replace("old", "new")])
    assert isinstance(outcome, EntryPlan)
    assert outcome.entries == ("new",)


@pytest.mark.parametrize("operation", [Add("a"), Replace("a", "a"), Add("e\u0301")])
def test_what_is_there_already_changes_nothing(operation: Operation) -> None:
    """A duplicate, in whatever composition, leads to no edit."""
    outcome = plan(["a", "é"], [operation])
    assert isinstance(outcome, EntryPlan)
    assert outcome.edits == ()


@given(_ENTRIES, st.lists(_OPERATION, max_size=5))
def test_the_edits_of_a_plan_lead_from_the_old_entries_to_the_new(
    entries: list[str], operations: list[Operation]
) -> None:
    """Replaying the edits gives what was planned; the input is left alone."""
    before = list(entries)
    outcome = plan(entries, operations)
    assert entries == before
    if isinstance(outcome, EntryPlan):
        for edit in outcome.edits:
            apply_edit(before, edit)
        assert tuple(before) == outcome.entries


@given(_ENTRIES, _ENTRIES)
def test_rewriting_leads_from_any_list_to_any_other(before: list[str], after: list[str]) -> None:
    """The edits of a rewrite give exactly the other list, and none when nothing differs."""
    edits = rewrite_edits(before, tuple(after))
    result = list(before)
    for edit in edits:
        apply_edit(result, edit)
    assert result == after
    assert bool(edits) == (before != after)


def test_a_rewrite_says_what_left_and_what_came() -> None:
    """Entries that leave the front while others are added are no edits of all that stay."""
    assert rewrite_edits(["a", "b", "c"], ["b", "c", "d"]) == (EntryEdit(0, "a", None), EntryEdit(2, None, "d"))
    assert rewrite_edits(["a", "b", "c"], ["a", "b2", "c"]) == (EntryEdit(1, "b", "b2"),)


def test_a_summary_counts_what_edits_did() -> None:
    """What went to notes is not counted as removed."""
    assert summarise_edits([(None, "a"), ("b", None), ("c", None), ("d", "e")], 1) == (
        "1 added, 1 edited, 1 removed, 1 moved to notes"
    )
