"""Long texts are divided into parts that lose nothing."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.external.vendors.texts import split_text


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
