"""Limits on how many of our own files a call passes through, because a reader has to follow them."""

import pytest

from benchmarks.call_paths import count_apart


@pytest.mark.slow
def test_a_warm_search_passes_through_few_files() -> None:
    """The limit may only shrink."""
    counted = count_apart("search")
    assert counted["files"] <= 24, counted["paths"]


@pytest.mark.slow
def test_a_first_import_passes_through_few_files() -> None:
    """It loads neither the index nor the search; whether it waits for a lock changes the count by one or two."""
    counted = count_apart("import")
    assert counted["files"] <= 49, counted["paths"]
