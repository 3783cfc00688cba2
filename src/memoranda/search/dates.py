"""Dates in a question: "on 9 November 2022", "in June", "last Saturday", "two weeks ago"."""

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from memoranda.support.lazy_pattern import compile_later

_DAY = 86_400.0
_SLACK_DAYS = 7
_YEARS_BACK = 6
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NUMBER_OF = {name: number for number, name in enumerate(_MONTHS, 1)}
_NUMBER_OF |= {name[:3]: number for name, number in _NUMBER_OF.items()} | {"sept": 9}
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6}
_COUNTS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10}

_MONTH = "(" + "|".join(sorted(_NUMBER_OF, key=len, reverse=True)) + ")"
_NTH = r"(\d{1,2})(?:st|nd|rd|th)?"
_ISO = compile_later(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_EAST_ASIAN = compile_later(r"(\d{4})年(\d{1,2})月(?:(\d{1,2})日)?")
_DAY_MONTH = compile_later(rf"\b{_NTH}(?: of)? {_MONTH}\b\.?,?(?: (\d{{4}})\b)?", re.IGNORECASE)
_MONTH_DAY = compile_later(rf"\b{_MONTH}\.? {_NTH}\b(?:,? (\d{{4}})\b)?", re.IGNORECASE)
_MONTH_YEAR = compile_later(rf"\b{_MONTH}\.?,? (?:of )?(\d{{4}})\b", re.IGNORECASE)
_IN_MONTH = compile_later(rf"\b(?:in|of|during|since|early|late|mid|last|this) {_MONTH}\b", re.IGNORECASE)
_AGO = compile_later(rf"\b(\d{{1,3}}|{'|'.join(_COUNTS)})(?: of)? (day|week|month|year)s? ago\b", re.IGNORECASE)
_SPAN_OR_WEEKDAY = rf"(week|month|year|{'|'.join(_WEEKDAYS)})\b"
_LAST = compile_later(rf"\blast {_SPAN_OR_WEEKDAY}", re.IGNORECASE)
_LAST_OR_ON = compile_later(rf"\b(?:last|on(?! (?:week|month|year))) {_SPAN_OR_WEEKDAY}", re.IGNORECASE)
# French "hier" is a German "here"; "antes de ayer" is a day before yesterday.
_YESTERDAY_WORDS = r"(?<!antes de )(?<!altro )\b(?:yesterday|gestern|ayer|ontem|ieri|вчера)\b|昨天|昨日|어제"
_YESTERDAY = compile_later(_YESTERDAY_WORDS, re.IGNORECASE)
# Most queries name no date; this finds out quickly.
may_name_date = compile_later(rf"\d|\b(?:ago|last)\b|{_YESTERDAY_WORDS}|{_IN_MONTH.pattern}", re.IGNORECASE)
_LENGTHS = {"day": 1, "week": 7, "month": 30, "year": 365}


class TimeRange(NamedTuple):
    """A start and an end, in seconds since the epoch."""

    start: float
    end: float


def time_ranges(text: str, now: float, *, on_weekdays: bool = False) -> list[TimeRange]:
    """The days and months that a text names; without a year, those of each of the last years.

    `on_weekdays` is for a text about the past: there, and only there, "on Monday" is the last one.
    """
    today = date.fromtimestamp(now)
    found = _relative(text, today, _LAST_OR_ON if on_weekdays else _LAST)
    for year, month, day in _calendar(text):
        years = [year] if year else range(today.year - _YEARS_BACK, today.year + 1)
        found += [
            time_range
            for candidate_year in years
            if (time_range := _time_range(candidate_year, month, day)) is not None
        ]
    return found


def date_closeness(ranges: Sequence[TimeRange], time: float) -> float:
    """1 within one of the ranges, falling to 0 a week away from it."""
    gap = min((max(start - time, time - end, 0.0) for start, end in ranges), default=_SLACK_DAYS * _DAY)
    return max(0.0, 1.0 - gap / (_SLACK_DAYS * _DAY))


def _calendar(text: str) -> list[tuple[int | None, int, int | None]]:
    """Year, month and day of every date that is written out; no part of the text is read twice."""
    found: list[tuple[int | None, int, int | None]] = []
    for pattern in (_ISO, _EAST_ASIAN):
        found += [(int(m[1]), int(m[2]), int(m[3]) if m[3] else None) for m in pattern.finditer(text)]
        text = pattern.sub(" ", text)
    for pattern, day, month in ((_DAY_MONTH, 1, 2), (_MONTH_DAY, 2, 1)):
        for m in pattern.finditer(text):
            found.append((int(m[3]) if m[3] else None, _NUMBER_OF[m[month].lower()], int(m[day])))
        text = pattern.sub(" ", text)
    found += [(int(m[2]), _NUMBER_OF[m[1].lower()], None) for m in _MONTH_YEAR.finditer(text)]
    text = _MONTH_YEAR.sub(" ", text)
    return found + [(None, _NUMBER_OF[m[1].lower()], None) for m in _IN_MONTH.finditer(text)]


def _time_range(year: int, month: int, day: int | None) -> TimeRange | None:
    """A day or a month by the local calendar; None if the date does not exist."""
    try:
        first = datetime(year, month, day or 1)
        length = 1 if day else monthrange(year, month)[1]
        return TimeRange(first.timestamp(), (first + timedelta(days=length)).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def _relative(text: str, today: date, named: re.Pattern[str]) -> list[TimeRange]:
    """The ranges that are counted back from today: "ago" is the wider, the further back; "last" is by the calendar."""
    days: list[tuple[int, int]] = []
    for match in _AGO.finditer(text):
        count = int(match[1]) if match[1].isdigit() else _COUNTS[match[1].lower()]
        length = _LENGTHS[match[2].lower()]
        days.append((count * length + length // 4, count * length - length // 4))
    for match in named.finditer(text):
        word = match[1].lower()
        if word in _LENGTHS:
            last_day = _first_day(today, word) - timedelta(days=1)
            days.append(((today - _first_day(last_day, word)).days, (today - last_day).days))
        else:
            back = (today.weekday() - _WEEKDAYS.index(word) - 1) % 7 + 1
            days.append((back, back))
    if _YESTERDAY.search(text):
        days.append((1, 1))
    found = []
    for first, last in days:
        start, end = _day_range(today, first), _day_range(today, last)
        if start is not None and end is not None:
            found.append(TimeRange(start.start, end.end))
    return found


def _first_day(day: date, unit: str) -> date:
    """The Monday of the week of a day, or the first of its month or year."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _day_range(today: date, days_back: int) -> TimeRange | None:
    try:
        day = today - timedelta(days=days_back)
    except OverflowError:
        return None
    return _time_range(day.year, day.month, day.day)
