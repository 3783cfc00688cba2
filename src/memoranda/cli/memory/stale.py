"""`memoranda memory stale` and `confirm`: look through old entries."""

import time
from datetime import datetime

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import parse_time_option
from memoranda.cli.memory.entry_numbers import number_to_handle
from memoranda.cli.open_home import open_curated_memory
from memoranda.cli.terminal_text import dim
from memoranda.memory.curated.change_history import DatedEntry, confirm_entry, date_entries
from memoranda.memory.curated.operations import MemoryRefusal
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.memory.curated.tool import describe
from memoranda.search.evidence import show_time
from memoranda.support.origin import PERSON

_HINT = "Still true? memoranda memory confirm HANDLE. If not, replace or remove it (--target user for USER.md)."


@click.command()
@click.option(
    "--older-than",
    metavar="TIME",
    default="90d",
    show_default=True,
    callback=parse_time_option(),
    help="Last written or confirmed before this time: 90d, 2026-11-01.",
)
@memory_options
def stale(older_than: float) -> None:
    """List the entries that were not written or confirmed for a while, the oldest first. Nothing is changed."""
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    found = [item for target in TARGETS for item in date_entries(store, target) if item.checked_at < older_than]
    found.sort(key=lambda item: item.checked_at)
    lines = [_format(item) for item in found] or [f"Every entry was written or confirmed since {_day(older_than)}."]
    data = [
        {
            "target": item.target,
            "text": item.entry.visible_text,
            "handle": item.entry.handle,
            "checked_at": show_time(item.checked_at),
        }
        for item in found
    ]
    invocation.respond("\n".join([*lines, dim(_HINT)] if found else lines), {"entries": data})


def _format(item: DatedEntry) -> str:
    days = int((time.time() - item.checked_at) / 86_400)
    first, *rest = item.entry.visible_text.split("\n")
    about = f"{_day(item.checked_at)}  {days:,} days  {FILE_NAMES[item.target]}  {item.entry.handle}"
    return "\n".join([about, f"     {first}", *(f"     {line}" for line in rest)])


def _day(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).date().isoformat()


@click.command()
@click.argument("old_text")
@click.option("--target", type=click.Choice(TARGETS), help="The file that has it. [default: either]")
@memory_options
def confirm(old_text: str, target: Target | None) -> None:
    """Confirm that the entry that contains OLD_TEXT (or has it as its number or handle) is still true."""
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    targets = (target,) if target else TARGETS
    outcome = confirm_entry(store, targets, number_to_handle(invocation, store, targets, old_text), PERSON)
    if isinstance(outcome, MemoryRefusal):
        invocation.fail("\n  - ".join([outcome.message, *outcome.matches]), describe(outcome, store))
    text = f"Confirmed: {outcome.visible_text}"
    invocation.respond(text, {"success": True, "handle": outcome.handle, "text": outcome.visible_text})


COMMANDS = (stale, confirm)
