"""Spending: what models cost by day, model and purpose, the share from caches, and today's budget."""

import json
from dataclasses import dataclass

from memoranda.models.spending.budget import Grouping
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.operation.usage import GROUPINGS, PERIODS, Spending, chart_data, read_spending
from memoranda.service.viewer.page import Download, Page, PageRequest, View

_DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True)
class SpendingView:
    """What the page shows, and the choices that its links offer."""

    spending: Spending
    groupings: tuple[Grouping, ...] = GROUPINGS
    periods: tuple[tuple[int, str], ...] = tuple(PERIODS.items())


def show(request: PageRequest) -> View:
    """The page."""
    spending = _read(request)
    names = [row.name for row in spending.rows] if spending.by == "session" else []
    return View("usage.html", "Spending", SpendingView(spending), recorded=find_recorded(request, names))


def show_data(request: PageRequest) -> Download:
    """The same as JSON, for the chart."""
    text = json.dumps(chart_data(_read(request)), ensure_ascii=False)
    return Download("spending.json", "application/json", iter([text.encode("utf-8", "replace")]))


def _read(request: PageRequest) -> Spending:
    by = next((name for name in GROUPINGS if name == request.query.get("by", "day")), None)
    days = request.number("days", _DEFAULT_DAYS)
    if by is None or days not in PERIODS:
        raise Problem(404, "not_found", "Spending is summed by day, model, purpose or session, over 7 to 365 days.")
    return read_spending(request.memory, by, days)


PAGE = Page("spending", "/spending", show, label="Spending")
DATA = Page("spending-data", "/spending/data.json", show_data, download=True)
