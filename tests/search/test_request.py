"""Times as people write them, and as answers show them."""

from datetime import datetime

import pytest

from memoranda.search.request import parse_time, show_time

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 15, 12, 0).timestamp()


def test_a_time_is_understood() -> None:
    """Spans back from now, dates, dates with times, words."""
    for text, seconds in [
        ("30d", NOW - 30 * 86_400),
        ("12h", NOW - 12 * 3_600),
        ("2w", NOW - 14 * 86_400),
        ("90 minutes ago", NOW - 5_400),
        ("3 months", NOW - 3 * 2_629_800),
        ("6mo", NOW - 6 * 2_629_800),
        ("2026-11-01", datetime(2026, 11, 1).timestamp()),
        ("2026-11-01T14:30", datetime(2026, 11, 1, 14, 30).timestamp()),
        ("2026-11-01T14:30:00+00:00", 1793543400.0),
        ("today", datetime(2026, 11, 15).timestamp()),
        ("Yesterday", datetime(2026, 11, 14).timestamp()),
        (1_750_000_000, 1_750_000_000.0),
    ]:
        assert parse_time(text, now=NOW) == seconds


def test_a_day_as_an_end_means_its_last_moment() -> None:
    """`until 2026-11-01` includes what was said on that day."""
    assert parse_time("2026-11-01", now=NOW, end=True) == pytest.approx(datetime(2026, 11, 2).timestamp(), abs=0.01)


def test_anything_else_is_refused_with_the_forms_there_are() -> None:
    """The message says what to write instead."""
    for text in [
        "",
        "soon",
        "3M",
        "5 moons",
        float("nan"),
        10**400,
        "2026-13-01",
        "9999999d9",
        None,
        True,
        [],
        "99999-01-01",
    ]:
        with pytest.raises(ValueError, match="30d"):
            parse_time(text, now=NOW)


def test_every_answer_writes_times_in_one_form() -> None:
    """It is UTC, to the second; a time outside the calendar is shown as a number."""
    assert show_time(1_750_000_000.5) == "2025-06-15T15:06:40Z"
    assert show_time(None) is None
    assert show_time(1e18) == "1000000000000000000 s since 1970"


def test_the_last_day_of_the_calendar_can_be_an_open_end() -> None:
    """People use it for no end; and the error for a time that is not text is short."""
    assert parse_time("9999-12-31", end=True) >= parse_time("9999-12-30", end=True)
    with pytest.raises(ValueError, match="This list is not a time; write 30d"):
        parse_time(["x" * 100_000])
    assert show_time(1e300) == "1e+300 s since 1970"
