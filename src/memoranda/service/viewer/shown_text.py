"""How times, numbers and stored texts are shown on pages; templates use these functions as filters."""

import re
import time
from datetime import datetime

from markupsafe import Markup, escape

from memoranda.search.excerpts import CLOSE, OPEN

_CONTROL = dict.fromkeys((*range(9), *range(11, 13), *range(14, 32), *range(127, 160)), "\ufffd") | {13: None}
_MATCH = re.compile(f"{re.escape(OPEN)}(.{{1,200}}?){re.escape(CLOSE)}", re.DOTALL)


def iso_time(timestamp: float | None) -> str:
    """A time for programs, in the time zone of the machine."""
    found = _local(timestamp)
    return "" if found is None else found.isoformat(timespec="seconds")


def moment(timestamp: float | None) -> Markup:
    """Day and time, short, as an element that has the exact time."""
    found = _local(timestamp)
    if found is None:
        return Markup('<span class="muted">unknown</span>')
    now = datetime.fromtimestamp(time.time()).astimezone()
    if found.date() == now.date():
        text = f"today {found:%H:%M}"
    elif 0 < (now.date() - found.date()).days == 1:
        text = f"yesterday {found:%H:%M}"
    else:
        text = f"{found.day} {found:%b %H:%M}" if found.year == now.year else f"{found.day} {found:%b %Y}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        found.isoformat(timespec="seconds"), f"{found:%Y-%m-%d %H:%M:%S %Z}", text
    )


def written_moment(text: str) -> Markup:
    """Day and time of a time that is stored as text; a text that is no time is shown as it is."""
    try:
        return moment(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())
    except (ValueError, OverflowError):
        return visible(text)


def file_size(size: int) -> str:
    """A number of bytes, short."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size:,} bytes"


def percent(share: float) -> str:
    """A share of one, in percent."""
    return f"{share:.0%}"


def clock_time(timestamp: float | None) -> str:
    """Hour and minute."""
    found = _local(timestamp)
    return "" if found is None else f"{found:%H:%M}"


def day(timestamp: float | None) -> str:
    """A day in words."""
    found = _local(timestamp)
    return "unknown day" if found is None else f"{found:%A}, {found.day} {found:%B %Y}"


def count(number: int) -> str:
    """A number with separators."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def dollars(amount: float) -> str:
    """An amount of money; small amounts keep four digits."""
    exact = f"{amount:,.4f}"
    return f"${amount:,.2f}" if amount >= 1 or exact.endswith("00") else f"${exact}"


def visible(text: object) -> Markup:
    """A stored text for a page: escaped, with a sign for control characters that a browser would not show."""
    return escape(str(text).translate(_CONTROL))


def highlighted(text: str) -> Markup:
    """A snippet of a search, with the marks around its matches as elements."""
    parts = _MATCH.split(text)
    # Every second part is a match.
    return Markup("").join(
        Markup("<mark>{}</mark>").format(visible(part)) if place % 2 else visible(part)
        for place, part in enumerate(parts)
    )


def _local(timestamp: float | None) -> datetime | None:
    if timestamp is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp).astimezone()
    except (ValueError, OverflowError, OSError):
        return None
