"""`memoranda usage`: what models cost, and what is left of today's budget for background work."""

from dataclasses import asdict
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import since_option, until_option
from memoranda.cli.terminal_text import bold, dim, format_table, terminal_line
from memoranda.home import config
from memoranda.models.spending.budget import BackgroundSpending, Grouping, Total
from memoranda.models.spending.ledger import Ledger
from memoranda.models.spending.prices import AS_OF, FILE_NAME
from memoranda.models.spending.settings import BudgetSettings
from memoranda.support.home import Home

_EPILOG = """\b
Examples:
  memoranda usage
  memoranda usage --since 7d --by purpose
  memoranda usage --by session --json
"""
_NUMBERS = ("calls", "input", "cached", "output", "cost")
_MAX_NAME_CHARS = 44


@click.command(epilog=_EPILOG)
@click.option(
    "--by",
    type=click.Choice(["day", "model", "purpose", "session"]),
    default="day",
    show_default=True,
    help="What each line of the table sums up.",
)
@since_option
@until_option
@memory_options
def command(invocation: Invocation, by: Grouping, since: float | None, until: float | None) -> None:
    """See what models cost: calls, tokens and money, and what is left for background work today."""
    ledger = _open_ledger(invocation.locate_home())
    period: dict[str, Any] = {name: value for name, value in (("since", since), ("until", until)) if value is not None}
    try:
        rows = ledger.totals(by, **period, user=invocation.user)
        whole = ledger.total(**period, user=invocation.user)
        today = ledger.today()
    finally:
        ledger.close()
    data = {
        "by": by,
        "rows": [_as_json(row) for row in rows],
        "total": _as_json(whole),
        "background_today": _budget_as_json(today, ledger.settings),
        "prices_as_of": AS_OF,
    }
    invocation.respond("\n".join([*_format_table(by, rows, whole), *_format_budget(today, ledger.settings)]), data)


def _open_ledger(home: Home) -> Ledger:
    home.refuse_if_foreign()
    settings = config.load(home)
    return Ledger(home.root, settings.budget, server_url=config.server_url(home, settings))


def _as_json(total: Total) -> dict[str, Any]:
    return asdict(total) | {"cached_share": round(total.cached, 4)}


def _budget_as_json(today: BackgroundSpending, settings: BudgetSettings) -> dict[str, Any]:
    usd, tokens = settings.daily_usd, settings.daily_tokens
    return {
        "spent_usd": today.usd,
        "spent_tokens": today.tokens,
        "daily_usd": usd,
        "daily_tokens": tokens,
        "left_usd": None if usd is None else max(0.0, usd - today.usd),
        "left_tokens": None if tokens is None else max(0, tokens - today.tokens),
        "calls_under_way": today.running,
    }


def _format_table(by: str, rows: list[Total], whole: Total) -> list[str]:
    if not rows:
        return ["The ledger has no model calls for that time."]
    cells = [[terminal_line(row.name, _MAX_NAME_CHARS) or "(none)", *_format_numbers(row)] for row in rows]
    cells = [[by, *_NUMBERS], *cells, ["total", *_format_numbers(whole)]]
    lines = format_table(cells)
    notes = []
    if whole.failed:
        notes.append(f"{whole.failed:,} of the calls failed or were interrupted.")
    if whole.unpriced:
        notes.append(f"{whole.unpriced:,} of the calls have no known price and are not in the cost; see {FILE_NAME}.")
    return [dim(lines[0]), *lines[1:-1], bold(lines[-1]), *map(dim, notes)]


def _format_numbers(total: Total) -> list[str]:
    return [
        f"{total.calls:,}",
        f"{total.input_tokens:,}",
        f"{total.cached:.0%}",
        f"{total.output_tokens:,}",
        "?" if total.unpriced and not total.cost_usd else _format_dollars(total.cost_usd),
    ]


def _format_budget(today: BackgroundSpending, settings: BudgetSettings) -> list[str]:
    if settings.allows_nothing:
        return ["", "Background work is switched off: its daily budget is 0."]
    usd, tokens = settings.daily_usd, settings.daily_tokens
    money = _format_dollars(today.usd) + ("" if usd is None else f" of {_format_dollars(usd)}")
    count = f"{today.tokens:,}" + ("" if tokens is None else f" of {tokens:,}")
    state = " Nothing is left until tomorrow." if today.is_over(settings) else ""
    return ["", f"Background work today: {money}, {count} tokens.{state}"]


def _format_dollars(amount: float) -> str:
    exact = f"{amount:.4f}"
    return f"${amount:.2f}" if amount >= 1 or exact.endswith("00") else f"${exact}"
