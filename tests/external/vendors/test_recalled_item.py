"""Recalled items as text."""

from memoranda.external.vendors.texts import RecalledItem, format_items
from tests.cases import cases


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


@cases("limit", [0, 10, 40, 300, 5_000])
def test_the_text_never_exceeds_its_limit(limit: int) -> None:
    """Whole items are left out; a single long one is shortened."""
    text = format_items([RecalledItem("x" * 9_000), *(RecalledItem(f"item {n}") for n in range(50))], "Acme", limit)
    assert len(text) <= limit
    assert all(line.endswith("(Acme)") for line in text.splitlines())
