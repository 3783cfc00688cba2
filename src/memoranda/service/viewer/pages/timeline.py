"""Timeline: the conversations of all agents by day, and how many there were on each day."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby

from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_rows import ConversationRow
from memoranda.service.viewer.filter_chips import ChipGroup, chip_group
from memoranda.service.viewer.page import Page, PageRequest, View, page_url

PATH = "/timeline"
_CHART_DAYS = 91
_PAGE_SIZE = 60
_MAX_AGENTS = 6
_OTHERS = "others"
_FIRST_DAY = date(1971, 1, 1)


@dataclass(frozen=True, slots=True)
class ChartDay:
    """One day of the chart: conversations per agent, in the order of `TimelineView.agents`, and their messages."""

    day: date
    timestamp: float
    counts: tuple[int, ...]
    messages: int
    url: str


@dataclass(frozen=True, slots=True)
class DayView:
    """The conversations whose last message is of one day."""

    timestamp: float | None
    conversations: tuple[ConversationRow, ...]


@dataclass(frozen=True, slots=True)
class TimelineView:
    """What the page shows."""

    agents: tuple[str, ...]
    chart: tuple[ChartDay, ...]
    filters: ChipGroup | None
    days: tuple[DayView, ...]
    until: str
    earlier_url: str
    later_url: str


def show(request: PageRequest) -> View:
    """The page; raises Problem 404 for a day that is none."""
    agent, until = request.query.get("agent", ""), _read_day(request.query.get("until", ""))
    skip = request.number("skip", 0)
    if not request.has_record:
        return View("timeline.html", "Timeline", TimelineView((), (), None, (), "", "", ""))
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
    data = TimelineView(
        agents,
        chart,
        chip_group("Agent", "agent", names, path=PATH, query=asked),
        _by_day(map(ConversationRow.of, rows[:_PAGE_SIZE])),
        until.isoformat() if until else "",
        page_url(PATH, **asked, skip=skip + _PAGE_SIZE) if len(rows) > _PAGE_SIZE else "",
        page_url(PATH, **asked, skip=max(0, skip - _PAGE_SIZE) or None) if skip else "",
    )
    return View("timeline.html", "Timeline", data)


def _chart(request: PageRequest, last: date, agent: str) -> tuple[tuple[str, ...], tuple[ChartDay, ...]]:
    """The agents of the period, the most active first, and its days with their counts."""
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
    return shown, tuple(
        ChartDay(
            day,
            _start_of(day),
            tuple(counts.get(day, Counter())[name] for name in shown),
            messages[day],
            page_url(PATH, until=day.isoformat(), agent=agent),
        )
        for day in days
    )


def _by_day(rows: Iterable[ConversationRow]) -> tuple[DayView, ...]:
    def day_of(row: ConversationRow) -> date | None:
        return None if row.last_active is None else datetime.fromtimestamp(row.last_active).date()

    grouped: Sequence[tuple[ConversationRow, ...]] = [tuple(group) for _, group in groupby(rows, day_of)]
    return tuple(DayView(group[0].last_active, group) for group in grouped)


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
