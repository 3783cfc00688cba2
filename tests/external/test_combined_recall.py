"""What several providers recall becomes one text: labelled, without repetition, within one budget."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.external.combined_recall import RecalledPart, combine_recall, share_budget


def combined(max_chars: int = 1_000, **texts: str) -> str:
    return combine_recall([RecalledPart(name, text) for name, text in texts.items()], max_chars).text


def test_every_item_names_its_provider() -> None:
    """Unless the provider has put its name there itself."""
    text = combined(facts="- Ana likes green tea.", cloud="- Bo has a cat. (cloud, fact, 2026-01-02, score 0.81)")
    assert text.splitlines() == [
        "- Ana likes green tea. (facts)",
        "- Bo has a cat. (cloud, fact, 2026-01-02, score 0.81)",
    ]


def test_the_whole_names_all_that_contribute() -> None:
    """A single one is not changed, because the fence says where it is from."""
    both = combine_recall([RecalledPart("a", "One."), RecalledPart("b", " \n"), RecalledPart("c", "Two.")], 100)
    assert both.provider == "a and c"
    assert combine_recall([RecalledPart("a", "One.\n\n  Two."), RecalledPart("b", "")], 100) == RecalledPart(
        "a", "One.\n\n  Two."
    )
    assert combine_recall([], 100) == RecalledPart("", "")


def test_an_item_that_two_providers_recall_is_there_once() -> None:
    """Also with another bullet, label, article, case or full stop; it names both."""
    text = combined(
        facts="- The user likes green tea.", cloud="1. user likes green tea (cloud, score 0.9)\nBo has a cat."
    )
    assert text.splitlines() == ["- The user likes green tea. (facts, also cloud)", "Bo has a cat. (cloud)"]


def test_items_that_differ_in_one_word_both_stay() -> None:
    """A negation is a word; so are short lines, which say too little to be the same."""
    text = combined(facts="Ana is allergic to nuts.\nYes.", cloud="Ana is not allergic to nuts.\nYes.")
    assert len(text.splitlines()) == 4


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
        assert len(combine_recall(parts, max_chars).text) <= max_chars


def test_a_long_part_is_cut_at_a_line_and_a_long_line_is_shortened() -> None:
    """The first items of each provider stay."""
    text = combined(100, facts="\n".join(f"Fact number {number}." for number in range(20)), cloud="x" * 500)
    first, *_, last = text.splitlines()
    assert first == "Fact number 0. (facts)" and last.startswith("xxx") and last.endswith("…")
    assert len(text) <= 100


def test_a_label_with_the_name_of_the_product_names_the_provider() -> None:
    """Mem0 is mem0: an item is not labelled with both."""
    parts = [RecalledPart("mem0", "- The cat is called Minka. (Mem0, score 0.86)"), RecalledPart("b", "- A dog barks.")]
    assert combine_recall(parts, 500).text == "- The cat is called Minka. (Mem0, score 0.86)\n- A dog barks. (b)"
