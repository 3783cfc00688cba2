"""Timestamps as other programs write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.chat_messages import parse_timestamp

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2026-03-01T10:00:00.500Z", 1772359200.5), ("2026-03-01T12:00:00+02:00", 1772359200.0),
        ("2026-03-01T10:00:00", 1772359200.0), (1772359200, 1772359200.0), (1772359200.25, 1772359200.25),
        (1772359200500, 1772359200.5), (1772359200500000, 1772359200.5), ("1772359200", 1772359200.0),
        (0, None), (-5, None), (True, None), ("yesterday", None), ("", None), (None, None), ([], None),
        (float("nan"), None), (float("inf"), None), ("1e400", None), (10**40, None),
    ],
)  # fmt: skip
def test_a_timestamp_is_seconds_since_1970_or_none(written: Any, seconds: float | None) -> None:
    """ISO 8601 with and without a time zone, seconds, milliseconds, microseconds, and text of these."""
    assert parse_timestamp(written) == seconds


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary())
def test_any_value_is_a_timestamp_or_none(written: Any) -> None:
    """It never raises, and what it gives can be stored."""
    found = parse_timestamp(written)
    assert found is None or abs(found) < 1e12
