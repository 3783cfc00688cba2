"""The day on which a conversation began, without the time, so that prompts of one day are equal byte for byte."""

from datetime import date, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# Not from the locale, which differs between processes.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def date_line(day: date) -> str:
    return f"This conversation began on {_WEEKDAYS[day.weekday()]}, {day.isoformat()}."


def today(timezone: str = "") -> date:
    """Today in a time zone by its IANA name; in the machine's when the name is empty or not known."""
    try:
        zone = ZoneInfo(timezone) if timezone else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone = None
    return datetime.now(zone).date()
