"""Spending: what models cost by day, model and purpose, the share from caches, and today's budget."""

import json
import time
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

from memoranda.api.memory import Memory
from memoranda.models.spending.budget import BackgroundSpending, Grouping, Total
from memoranda.models.spending.settings import BudgetSettings
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import find_recorded
from memoranda.service.viewer.page import Download, Page, PageRequest, View
from memoranda.support.lazy_dataclass import dataclass

GROUPINGS: tuple[Grouping, ...] = ("day", "model", "purpose", "session")
_PERIODS = {7: "7 days", 30: "30 days", 90: "90 days", 365: "a year"}
_DAY = 86_400
_MAX_ROWS = 400
_DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Spending:
    """The sums of a period, and what background work has used of today's budget; None for one of several users."""

    by: Grouping
    days: int
    rows: tuple[Total, ...]
    total: Total
    today: BackgroundSpending | None
    budget: BudgetSettings

    @property
    def budget_percent(self) -> int | None:
        """How much of the daily budget is used, by the limit that is nearer; None without a limit."""
        if self.today is None:
            return None
        pairs = ((self.today.usd, self.budget.daily_usd), (self.today.tokens, self.budget.daily_tokens))
        shares = [100 * used / limit for used, limit in pairs if limit]
        return min(100, round(max(shares))) if shares else None


def read_spending(memory: Memory, by: Grouping, days: int) -> Spending:
    """What a user's calls cost in the last days; for the home's owner those of all users, as `memoranda usage` shows.

    The budget is shared by all users, so only the owner sees it.
    """
    ledger = memory.services.ledger
    since = time.time() - days * _DAY
    rows = ledger.totals(by, since=since, user=memory.user)
    return Spending(
        by,
        days,
        tuple(rows[-_MAX_ROWS:] if by == "day" else rows[:_MAX_ROWS]),
        ledger.total(since=since, user=memory.user),
        ledger.today() if memory.user is None else None,
        ledger.settings,
    )


def chart_data(spending: Spending) -> dict[str, Any]:
    """The rows for a chart; days without a call are part of it."""
    rows = [asdict(row) | {"cached_share": round(row.cached, 4)} for row in spending.rows]
    if spending.by == "day":
        by_name = {row["name"]: row for row in rows}
        today = date.today()
        names = [(today - timedelta(days=back)).isoformat() for back in range(spending.days, -1, -1)]
        empty = asdict(Total("")) | {"cached_share": 0.0}
        rows = [by_name.get(name, empty | {"name": name}) for name in names]
    return {"by": spending.by, "days": spending.days, "rows": rows}


def show(request: PageRequest) -> View:
    spending = _read(request)
    names = [row.name for row in spending.rows] if spending.by == "session" else []
    view = {"spending": spending, "groupings": GROUPINGS, "periods": _PERIODS.items()}
    return View("usage.html", "Spending", view, recorded=find_recorded(request, names))


def show_data(request: PageRequest) -> Download:
    """The same as JSON, for the chart."""
    text = json.dumps(chart_data(_read(request)), ensure_ascii=False)
    return Download("spending.json", "application/json", iter([text.encode("utf-8", "replace")]))


def _read(request: PageRequest) -> Spending:
    by = next((name for name in GROUPINGS if name == request.query.get("by", "day")), None)
    days = request.number("days", _DEFAULT_DAYS)
    if by is None or days not in _PERIODS:
        raise Problem(404, "not_found", "Spending is summed by day, model, purpose or session, over 7 to 365 days.")
    return read_spending(request.memory, by, days)


PAGE = Page("spending", "/spending", show, label="Spending")
DATA = Page("spending-data", "/spending/data.json", show_data, download=True)
