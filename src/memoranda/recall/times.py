"""Moments as people write them, and as answers show them."""

import re
import time
from datetime import UTC, date, datetime, timedelta
from math import floor

_UNITS = {
    "m min mins minute minutes": 60,
    "h hour hours": 3_600,
    "d day days": 86_400,
    "w week weeks": 604_800,
    "mo month months": 2_629_800,
    "y year years": 31_557_600,
}
_SECONDS = {name: seconds for names, seconds in _UNITS.items() for name in names.split()}
_AGO = re.compile(r"(\d{1,6})\s*([a-z]+)(?:\s+ago)?")
_DAYS = {"today": 0, "yesterday": 1}
_LATEST = 253_402_300_800
_LONGEST_NUMBER = 1e20
_FORMS = "30d, 12h, 2w, 6mo, 2026-11-01, 2026-11-01T14:30, today or yesterday"


def parse_time(text: object, *, now: float | None = None, end: bool = False) -> float:
    """Seconds since 1970 for a moment; a day means its beginning, or its end when `end`.

    Raises ValueError, naming the forms there are, for anything else.
    """
    now = time.time() if now is None else now
    if isinstance(text, int | float) and not isinstance(text, bool) and abs(text) < _LATEST:
        return float(text)
    if not isinstance(text, str):
        raise ValueError(f"This {type(text).__name__} is not a time; write {_FORMS}.")
    word = text.strip()
    if (ago := _AGO.fullmatch(word)) and ago[2] in _SECONDS:
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        if word.lower() in _DAYS:
            day = date.fromtimestamp(now) - timedelta(days=_DAYS[word.lower()])
        elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", word):
            day = date.fromisoformat(word)
        else:
            return datetime.fromisoformat(word).timestamp()
        if end and day == date.max:
            return float(_LATEST)
        begin = datetime.combine(day, datetime.min.time())
        return (begin + timedelta(days=1)).timestamp() - 0.001 if end else begin.timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{word[:60]!r} is not a time; write {_FORMS}.") from None


def show_time(seconds: float | None) -> str | None:
    """A moment as every answer writes it: UTC, to the second."""
    if seconds is None:
        return None
    try:
        return f"{datetime.fromtimestamp(floor(seconds), UTC).isoformat()[:19]}Z"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s since 1970" if abs(seconds) < _LONGEST_NUMBER else f"{seconds:g} s since 1970"
