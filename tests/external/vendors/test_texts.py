"""Recalled items as text.

Long texts are divided into parts that lose nothing.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.external.vendors.texts import RecalledItem, format_items, missing_parts, split_text, split_turn

pytestmark = pytest.mark.slow


def test_items_have_the_labels_that_are_known() -> None:
    """Vendor, kind, day and score, as far as the vendor gives them."""
    items = [
        RecalledItem("Likes tea.", "2026-11-03T10:00:00Z", 0.814, kind="fact"),
        RecalledItem("Lives in\n Lyon.", 1_700_000_000.0),
        RecalledItem("Has a cat.", "yesterday", float("nan")),
    ]
    assert format_items(items, "Acme", 1_000).splitlines() == [
        "- Likes tea. (Acme, fact, 2026-11-03, score 0.81)",
        "- Lives in Lyon. (Acme, 2023-11-14)",
        "- Has a cat. (Acme)",
    ]


def test_repeated_and_empty_items_are_left_out() -> None:
    """The first of equal texts stays."""
    items = [RecalledItem("Likes tea.", score=0.9), RecalledItem(" likes  TEA."), RecalledItem(" \n")]
    assert format_items(items, "Acme", 1_000) == "- Likes tea. (Acme, score 0.90)"


@pytest.mark.parametrize("limit", [0, 10, 40, 300, 5_000])
def test_the_text_never_exceeds_its_limit(limit: int) -> None:
    """Whole items are left out; a single long one is shortened."""
    text = format_items([RecalledItem("x" * 9_000), *(RecalledItem(f"item {n}") for n in range(50))], "Acme", limit)
    assert len(text) <= limit
    assert all(line.endswith("(Acme)") for line in text.splitlines())


@given(st.text(max_size=400), st.integers(30, 80))
def test_parts_are_within_the_limit_and_lose_no_word(text: str, limit: int) -> None:
    """However long the words are; only white space between parts disappears."""
    parts = list(split_text(text, limit))
    assert all(0 < len(part) <= limit for part in parts)
    joined = "".join(part.removeprefix("[continued] ") if number else part for number, part in enumerate(parts))
    clean = text.replace("\x00", "").encode("utf-8", "replace").decode()
    assert "".join(joined.split()) == "".join(clean.split())


def test_a_text_is_divided_where_a_paragraph_ends() -> None:
    """Else where a sentence or a word does."""
    parts = list(split_text("One. Two. Six.\n\nThree four five", 24))
    assert parts == ["One. Two. Six.", "[continued] Three four", "[continued] five"]


def test_half_a_character_and_nul_are_replaced() -> None:
    """The server answers them with an error 500, which would be repeated for ever."""
    assert list(split_text("a\x00b\ud800c", 100)) == ["ab?c"]


def test_a_short_text_is_one_part() -> None:
    """With its author, the key of the delivery and its number; an empty text is none."""
    parts = split_turn([("ana", "Hello"), ("ai", " ")], "k1", 100)
    assert parts == [("ana", "Hello", {"source": "memoranda", "key": "k1", "part": 0, "parts": 1})]


def test_only_missing_parts_are_sent_again() -> None:
    """The key and the number of a part say which one is stored."""
    messages = [{"metadata": about} for _, _, about in split_turn([("ana", "x" * 200), ("ai", "Yes.")], "k1", 100)]
    assert len(messages) == 4
    assert missing_parts(messages, messages[:2]) == messages[2:]
    assert missing_parts(messages, [{"metadata": {"key": "k2", "part": 0}}, {}]) == messages
