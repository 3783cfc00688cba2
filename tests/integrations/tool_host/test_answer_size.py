"""Answers have a size that hosts accept."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.integrations.tool_host import MAX_BYTES, fit_answer

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)


@pytest.mark.slow
@given(answer=st.dictionaries(st.text(max_size=8), _values, max_size=6), max_bytes=st.integers(200, 2_000))
def test_an_answer_is_whole_or_says_that_it_is_not(answer: dict[str, Any], max_bytes: int) -> None:
    """It is JSON of at max_bytes so many bytes either way."""
    text = fit_answer({"success": True} | answer, max_bytes)
    shown = json.loads(text)
    assert len(text.encode("utf-8", "replace")) <= max_bytes
    assert shown == json.loads(json.dumps({"success": True} | answer)) or shown["truncated"] is True


def test_the_longest_parts_are_shortened_first() -> None:
    """The short fields about the answer stay."""
    answer = {"success": True, "message": "Saved.", "current_entries": ["字" * 100] * 1_000, "text": "short"}
    shown = json.loads(fit_answer(answer))
    assert (shown["message"], shown["text"]) == ("Saved.", "short")
    assert 0 < len(shown["current_entries"]) < 1_000
    assert len(fit_answer(answer).encode()) <= MAX_BYTES
