"""A table of cases in one test runs all of its rows and names the rows that fail."""

from pathlib import Path

import pytest

from tests.cases import cases


def _is_even(number: int) -> None:
    assert number % 2 == 0


def test_one_failing_case_is_raised_with_its_row() -> None:
    """The note names the row, and the error is the one of the case."""
    with pytest.raises(AssertionError) as failure:
        cases("number", [2, 3, 4])(_is_even)()
    assert failure.value.__notes__ == ["case: 3"]


def test_all_failing_cases_are_raised_together() -> None:
    """A failure does not hide the rows after it."""
    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed") as failure:
        cases("number", [1, 2, 3, 4], ids=["one", "two", "three", "four"])(_is_even)()
    assert [error.__notes__ for error in failure.value.exceptions] == [["case: one"], ["case: three"]]


def test_tables_are_combined_and_fixtures_are_given(tmp_path: Path) -> None:
    """Two tables give all pairs; what is not in a table comes from pytest."""
    seen = []

    @cases("left", [1, 2])
    @cases(("right", "last"), [pytest.param("a", "b", id="x"), ("c", "d")])
    def collect(left: int, right: str, last: str, tmp_path: Path) -> None:
        seen.append((left, right, last, tmp_path))

    collect(tmp_path=tmp_path)
    assert seen == [(left, *pair, tmp_path) for left in (1, 2) for pair in (("a", "b"), ("c", "d"))]


def test_a_table_that_checks_nothing_is_refused() -> None:
    """No rows, rows of another length, a name that the test does not take, and marks that would be ignored."""
    with pytest.raises(ValueError, match="No cases"):
        cases("number", [])
    with pytest.raises(ValueError, match="zip"):
        cases(("number", "other"), [(1,)])
    with pytest.raises(TypeError, match="does not take"):
        cases("other", [1])(_is_even)
    with pytest.raises(ValueError, match="marks"):
        cases("number", [pytest.param(1, marks=pytest.mark.slow)])
