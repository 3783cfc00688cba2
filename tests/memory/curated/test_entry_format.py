"""The file format, byte for byte as other programs write and read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.memory.curated.memory_file import handle, parse, serialise, size
from memoranda.support.canonical_text import canonical, unstorable_character


def test_a_file_is_parsed_as_the_format_says() -> None:
    """Only a line that holds nothing but the sign separates entries."""
    for text, entries in [
        ("a\n§\nb", ["a", "b"]),
        ("a\n§\nb\n", ["a", "b"]),
        ("\na\n§\nb", ["a", "b"]),
        ("a\r\n§\r\nb", ["a", "b"]),
        ("a\r§\rb", ["a", "b"]),
        ("\ufeffa\n§\nb", ["a", "b"]),
        ("a\n§\n b", ["a", "b"]),
        ("a\n§\n\n§\nb", ["a", "b"]),
        ("§", []),
        ("§\na", ["a"]),
        ("a\n§", ["a"]),
        ("a\n§ ", ["a\n§"]),
        ("a § b", ["a § b"]),
        ("a\n§\n§\n§\nb", ["a", "b"]),
        ("a\u2028§\u2028b", ["a\u2028§\u2028b"]),
        ("line one\nline two\n§\nb", ["line one\nline two", "b"]),
        ("dup\n§\nother\n§\ndup", ["dup", "other", "dup"]),
        ("", []),
        (" \n\t", []),
        ("\n§\n", []),
    ]:
        assert parse(text) == entries


@pytest.mark.slow
@given(st.lists(st.text()))
def test_what_was_parsed_survives_another_round(pieces: list[str]) -> None:
    """A file parses to the same entries after it was written again."""
    entries = parse("\n§\n".join(pieces))
    assert parse(serialise(entries)) == entries


@given(st.lists(st.text(min_size=1)))
def test_the_size_is_the_length_of_the_whole_text(entries: list[str]) -> None:
    """Delimiters count, code points count once, whatever their width in bytes."""
    assert size(entries) == len(serialise(entries))


def test_two_entries_of_three_letters_cost_nine() -> None:
    """The delimiter costs three characters."""
    assert size(["aaa", "bbb"]) == 9


def test_blanks_and_empty_entries_next_to_a_delimiter_do_not_count() -> None:
    """Editors and people leave them."""
    for text in [
        "a\n§\n b",
        "a \n§\nb",
        "a\n\n§\n\nb",
        "a\n§\n\n§\nb",
        "a\n§\n§\nb",
        "§\na\n§\nb",
        "a\n§\nb\n§",
        "a\n§\n\u00a0b",
    ]:
        assert parse(text) == ["a", "b"]


def test_content_is_stored_composed_with_plain_line_ends_and_no_blank_edges() -> None:
    """NFC, LF, trimmed."""
    assert canonical("  cafe\u0301\r\nnext\r ") == "café\nnext"


@pytest.mark.parametrize(("text", "what"), [("a\0b", "NUL"), ("a\ud800", "surrogate"), ("a", None), ("👩‍👩‍👧", None)])
def test_what_cannot_be_stored_is_named(text: str, what: str | None) -> None:
    """NUL and half characters are recognised, whole characters pass."""
    found = unstorable_character(text)
    assert (found is None) if what is None else (found is not None and what in found)


def test_a_handle_shows_nothing_of_the_text() -> None:
    """It is a short digest."""
    assert handle("secret plan").startswith("entry:")
    assert "plan" not in handle("secret plan")
