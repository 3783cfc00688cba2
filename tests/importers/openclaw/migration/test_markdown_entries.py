"""Markdown is split into entries by the kind of each passage, and no word is lost."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.openclaw.migration.memories import parse_entries

pytestmark = pytest.mark.slow


def entries(text: str, day: str = "") -> list[str]:
    return parse_entries(text, day).entries


def test_each_item_and_paragraph_is_an_entry_after_its_headings() -> None:
    """The way to it, with headings that only name the file left out."""
    text = (
        "# MEMORY.md\n\n## Boat\n\n- one\n2. two\n\nA paragraph\non two lines.\n\n### Sails\n* three\n\n## Home\nfour\n"
    )
    assert entries(text) == [
        "Boat: one", "Boat: two", "Boat: A paragraph on two lines.", "Boat > Sails: three", "Home: four",
    ]  # fmt: skip


def test_items_below_an_item_stay_with_it_while_it_is_short() -> None:
    """Apart, they would say nothing; in a long one each goes with the words above it."""
    assert entries("- Diesel:\n  - from Laboe\n    - pier 2\n- Water") == [
        "Diesel:\n  - from Laboe\n    - pier 2",
        "Water",
    ]
    long = "- Diesel:\n" + "".join(f"  - {number} {'x' * 90}\n" for number in range(5))
    assert entries(long)[0] == f"Diesel: 0 {'x' * 90}"
    assert len(entries(long)) == 5


def test_code_and_tables_stay_whole() -> None:
    """Each is a separate entry, on its own lines."""
    text = "## A\n```sh\n# no heading\n- no item\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert entries(text) == ["A:\n```sh\n# no heading\n- no item\n```", "A:\n| a | b |\n|---|---|\n| 1 | 2 |"]


def test_a_daily_note_says_its_day() -> None:
    """And not twice."""
    assert entries("# 2026-11-14\n\n- Ordered a genoa.\n\n## Later\n- Paid.", "2026-11-14") == [
        "2026-11-14: Ordered a genoa.", "2026-11-14 > Later: Paid.",
    ]  # fmt: skip


def test_superseded_entries_are_separated() -> None:
    """The status above a directive counts until the next one."""
    parsed = parse_entries(
        "<!-- observed: 2026-01-01 | status: superseded -->\n\n- Old.\n- Older.\n\n<!-- status: active -->\n- New.\n"
    )
    assert (parsed.entries, parsed.superseded) == (["New."], ["Old.", "Older."])


def test_skipped_blocks_are_counted() -> None:
    """Front matter, comments, rules, empty fields, repetitions, and headings without content."""
    parsed = parse_entries(
        "---\na: 1\n---\n<!-- x -->\n- same\n- same\n\n---\n\n- **Name:**\n  _(a hint)_\n- [ ] Do it\n\n# Later\n"
    )
    assert parsed.entries == ["same", "[ ] Do it"]
    assert parsed.skipped == {
        "front matter": 1,
        "comments": 1,
        "rules": 1,
        "empty fields": 1,
        "repetitions": 1,
        "headings without content": 1,
    }


def test_text_between_two_rules_is_not_front_matter() -> None:
    """Only settings are."""
    assert entries("---\nJens is the harbour master.\n\n---\n- more") == ["Jens is the harbour master.", "more"]


_word = st.from_regex(r"w[a-z]{2,6}\d{3}", fullmatch=True)
_line = st.builds(
    lambda mark, words: mark + " ".join(words),
    st.sampled_from(["", "- ", "  - ", "\t* ", "1. ", "> ", "| ", "    ", "```", "- [x] "]),
    st.lists(_word, min_size=1, max_size=4),
) | st.sampled_from(["", "---", "```", "~~~", "# h", "## g", "***", "<!-- c -->", "===", "|---|"])


@given(lines=st.lists(_line, max_size=25))
def test_no_word_is_lost(lines: list[str]) -> None:
    """Whatever the order of things: every word of the text is in an entry, unless it was a heading."""
    text = "\n".join(lines)
    parsed = parse_entries(text)
    kept = " ".join([*parsed.entries, *parsed.superseded])
    # A line above a row of '=' or '-' is a heading.
    headings = {word for above, below in pairwise(lines) if re.match(r"\s*(=+|-+)\s*$", below)
                for word in re.findall(r"w[a-z]+\d+", above)}  # fmt: skip
    assert set(re.findall(r"w[a-z]{2,6}\d{3}", text)) - headings <= set(re.findall(r"w[a-z]{2,6}\d{3}", kept))


@given(text=st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """No entry is empty or repeated, and reading again gives the same."""
    parsed = parse_entries(text)
    assert all(entry.strip() for entry in parsed.entries)
    assert len(set(parsed.entries)) == len(parsed.entries)
    assert parse_entries(text) == parsed
