"""Statements and values survive the way to PostgreSQL and back."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.storage.postgres.connection import escape, restore, stored_values, translate

_ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("\0\x1a01d89af\ud800\udfff"))


@given(_ANY_TEXT)
def test_every_text_comes_back(text: str) -> None:
    """Also one with NULs, halves of surrogate pairs, and the character that marks them."""
    stored = escape(text)
    assert "\0" not in stored
    stored.encode()
    assert restore(stored) == text


@given(_ANY_TEXT, _ANY_TEXT)
def test_a_prefix_stays_a_prefix(start: str, end: str) -> None:
    """A search for a prefix compares the stored forms."""
    assert escape(start + end).startswith(escape(start))


def test_placeholders_are_numbered_outside_of_literals() -> None:
    """A question mark in a text literal stays what it is."""
    assert translate("SELECT '?', ? WHERE a = ? AND b = 'it''s ?'") == "SELECT '?', $1 WHERE a = $2 AND b = 'it''s ?'"


def test_whole_numbers_have_64_bits() -> None:
    """INTEGER means four bytes to PostgreSQL, and ids may be larger."""
    assert translate("SELECT CAST(value AS INTEGER)") == "SELECT CAST(value AS BIGINT)"


def test_flags_are_numbers() -> None:
    """Columns for flags are whole numbers on both engines."""
    assert stored_values([True, False, None, 7]) == [1, 0, None, 7]
