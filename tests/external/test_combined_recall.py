"""What several providers recall becomes one text: labelled, without repetition, within one budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.external.combined_recall import RecalledPart, combine_recall, share_budget

pytestmark = pytest.mark.slow


def combined(max_chars: int = 1_000, **texts: str) -> list[tuple[str, str]]:
    parts = combine_recall([RecalledPart(name, text) for name, text in texts.items()], max_chars)
    return [(part.provider, part.text) for part in parts]


def test_every_item_names_its_provider() -> None:
    """Whatever names the text of the item contains."""
    parts = combined(facts="- Ana likes green tea. (cloud)", cloud="- Bo has a cat. (cloud, fact, score 0.81)")
    assert parts == [
        ("facts", "- Ana likes green tea. (cloud)"),
        ("cloud", "- Bo has a cat. (cloud, fact, score 0.81)"),
    ]


def test_a_single_part_is_not_changed() -> None:
    """With all its lines; parts without text are left out."""
    assert combined(a="One.\n\n  Two.", b=" \n") == [("a", "One.\n\n  Two.")]
    assert combined(a="One.", b=" \n", c="Two.") == [("a", "One."), ("c", "Two.")]
    assert combined() == []


def test_an_item_that_two_providers_recall_is_there_once() -> None:
    """Also with another bullet, label, article, case or full stop; it names both."""
    parts = combined(
        facts="- The user likes green tea.", cloud="1. user likes green tea (cloud, score 0.9)\nBo has a cat."
    )
    assert parts == [("facts and cloud", "- The user likes green tea."), ("cloud", "Bo has a cat.")]


def test_items_that_differ_in_one_word_both_stay() -> None:
    """A negation is a word; so are short lines, which say too little to be the same."""
    parts = combined(facts="Ana is allergic to nuts.\nYes.", cloud="Ana is not allergic to nuts.\nYes.")
    assert len(parts) == 4


def test_what_one_provider_does_not_need_is_passed_on() -> None:
    """In both directions, and in either order."""
    assert share_budget([10, 500], 100) == [10, 90]
    assert share_budget([500, 10], 100) == [90, 10]
    assert share_budget([500, 500], 100) == [50, 50]
    assert share_budget([30, 500, 40], 100) == [30, 35, 35]
    assert share_budget([5, 5], 0) == [0, 0]


@given(st.lists(st.integers(0, 1_000), max_size=6), st.integers(0, 2_000))
def test_the_budget_is_never_exceeded_and_never_wasted(sizes: list[int], budget: int) -> None:
    """Each gets at most what it needs; if anything is left over, all have what they need, but for the rounding."""
    shares = share_budget(sizes, budget)
    assert sum(shares) <= budget and all(share <= size for share, size in zip(shares, sizes, strict=True))
    assert budget - sum(shares) < max(len(sizes), 1) or shares == sizes


@given(
    st.lists(st.lists(st.text("abc xyz\n(.-)", max_size=60)).map("\n".join), min_size=2, max_size=4),
    st.integers(10, 300),
)
def test_the_combined_text_keeps_within_the_limit(texts: list[str], max_chars: int) -> None:
    """Whatever the texts are."""
    parts = [RecalledPart(f"p{number}", text) for number, text in enumerate(texts)]
    if sum(bool(text.strip()) for text in texts) > 1:
        assert sum(len(f"{part.provider}> {part.text}\n") for part in combine_recall(parts, max_chars)) <= max_chars


def test_a_long_part_is_cut_at_a_line_and_a_long_line_is_shortened() -> None:
    """The first items of each provider stay."""
    parts = combined(100, facts="\n".join(f"Fact number {number}." for number in range(20)), cloud="x" * 500)
    assert parts[0] == ("facts", "Fact number 0.")
    provider, text = parts[-1]
    assert provider == "cloud" and text.startswith("xxx") and text.endswith("…")
