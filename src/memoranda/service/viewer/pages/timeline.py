"""Timeline: the conversations of all agents by day, and how many there were on each day."""

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any

from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import ConversationRow, chip_group
from memoranda.service.viewer.page import Page, PageRequest, View, page_url

PATH = "/timeline"
_CHART_DAYS = 91
_PAGE_SIZE = 60
_MAX_AGENTS = 6
_OTHERS = "others"
_FIRST_DAY = date(1971, 1, 1)
_NOTHING = {"agents": (), "chart": (), "filters": None, "days": (), "until": "", "earlier_url": "", "later_url": ""}


def show(request: PageRequest) -> View:
    """The page; raises Problem 404 for a day that is none."""
    agent, until = request.query.get("agent", ""), _read_day(request.query.get("until", ""))
    skip = request.number("skip", 0)
    if not request.has_record:
        return View("timeline.html", "Timeline", dict(_NOTHING))
    memory = request.memory
    hidden = () if agent else tuple(memory.config.recall.hidden_sources)
    rows = memory.sessions.list_sessions_rich(
        source=agent or None,
        exclude_sources=hidden,
        limit=_PAGE_SIZE + 1,
        offset=skip,
        order_by_last_active=True,
        until=None if until is None else _end_of(until),
    )
    agents, chart = _chart(request, until or date.today(), agent)
    asked = {name: request.query[name] for name in ("agent", "until") if request.query.get(name)}
    names = [(name, name) for name in agents if name != _OTHERS]
    data = {
        "agents": agents,
        "chart": chart,
        "filters": chip_group("Agent", "agent", names, path=PATH, query=asked),
        "days": _by_day(map(ConversationRow.of, rows[:_PAGE_SIZE])),
        "until": until.isoformat() if until else "",
        "earlier_url": page_url(PATH, **asked, skip=skip + _PAGE_SIZE) if len(rows) > _PAGE_SIZE else "",
        "later_url": page_url(PATH, **asked, skip=max(0, skip - _PAGE_SIZE) or None) if skip else "",
    }
    return View("timeline.html", "Timeline", data)


def _chart(request: PageRequest, last: date, agent: str) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The agents of the period, the most active first, and its days: conversations per agent, and their messages."""
    first = last - timedelta(days=_CHART_DAYS - 1)
    memory = request.memory
    found = memory.sessions.listing.last_activity(
        _start_of(first), _end_of(last), () if agent else tuple(memory.config.recall.hidden_sources)
    )
    found = [row for row in found if agent in ("", row[1])]
    ranked = [name for name, _ in Counter(source for _, source, _ in found).most_common()]
    shown = (*ranked[:_MAX_AGENTS], *([_OTHERS] if len(ranked) > _MAX_AGENTS else []))
    counts: dict[date, Counter[str]] = {}
    messages: Counter[date] = Counter()
    for last_active, source, size in found:
        day = datetime.fromtimestamp(last_active).date()
        counts.setdefault(day, Counter())[source if source in shown else _OTHERS] += 1
        messages[day] += size or 0
    days = [first + timedelta(days=number) for number in range(_CHART_DAYS)]
    return shown, [
        {
            "day": day,
            "timestamp": _start_of(day),
            "counts": [counts.get(day, Counter())[name] for name in shown],
            "messages": messages[day],
            "url": page_url(PATH, until=day.isoformat(), agent=agent),
        }
        for day in days
    ]


def _by_day(rows: Iterable[ConversationRow]) -> list[dict[str, Any]]:
    """The conversations by the day of their last message."""

    def day_of(row: ConversationRow) -> date | None:
        return None if row.last_active is None else datetime.fromtimestamp(row.last_active).date()

    grouped = [list(group) for _, group in groupby(rows, day_of)]
    return [{"timestamp": group[0].last_active, "conversations": group} for group in grouped]


def _read_day(text: str) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if not _FIRST_DAY <= day <= date.today() + timedelta(days=366):
        raise Problem(404, "not_found", "There is no such day; write it as 2026-11-01.")
    return day


def _start_of(day: date) -> float:
    return datetime(day.year, day.month, day.day).timestamp()


def _end_of(day: date) -> float:
    return _start_of(day + timedelta(days=1)) - 0.001


PAGE = Page("timeline", PATH, show, label="Timeline")
