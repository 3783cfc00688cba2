"""Moments as other programs write them: ISO 8601, seconds or milliseconds since 1970."""

from datetime import UTC, datetime
from typing import Any

# Seconds of the year 5138; larger numbers are milliseconds, and larger ones still are micro- or nanoseconds.
_LARGEST_SECONDS = 1e11
_LARGEST = 1e21


def parse_timestamp(value: Any) -> float | None:
    """Seconds since 1970, or None when it is no moment; text without a time zone is UTC."""
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST:
        return None
    while value >= _LARGEST_SECONDS:
        value /= 1000
    return float(value)


def _from_text(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        try:
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (OverflowError, OSError, ValueError):
            return None
    try:
        return parse_timestamp(float(text))
    except ValueError:
        return None
