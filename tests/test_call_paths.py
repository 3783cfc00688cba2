"""Limits on how many of our own files a call passes through, because a reader has to follow them."""

import pytest

from benchmarks.call_paths import count_apart


@pytest.mark.slow
def test_a_warm_search_passes_through_few_files() -> None:
    """The limit may only shrink."""
    counted = count_apart("search")
    assert counted["files"] <= 24, counted["paths"]
