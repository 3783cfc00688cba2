"""The history of curated memory: `memoranda memory log`, `diff`, `undo` and `purge`, `stale` and `confirm`."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from operator import itemgetter
from typing import Any, NoReturn

import click

from memoranda.cli.confirmation import require_yes
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import parse_time_option
from memoranda.cli.memory.entries import number_to_handle, open_target, project_option, report
from memoranda.cli.open_home import open_curated_memory
from memoranda.cli.provider.output import stdout_to_stderr
from memoranda.cli.terminal_text import dim, format_change, terminal_line
from memoranda.home import config
from memoranda.memory.curated import change_history
from memoranda.memory.curated.change_history import confirm_entry
from memoranda.memory.curated.operations import MemoryRefusal, summarise_edits
from memoranda.memory.curated.settings import PROJECT, TARGETS, Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import describe
from memoranda.search.request import show_time
from memoranda.support.origin import PERSON
from memoranda.upkeep.forgetting.provider_copies import purge_memory
from memoranda.upkeep.forgetting.scope import ForgetScope

_HINT = "Still true? memoranda memory confirm HANDLE. If not, replace or remove it (--target user for USER.md)."


@click.command()
@click.argument("target", type=click.Choice([*TARGETS, PROJECT]), required=False)
@project_option
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many changes, newest first."
)
@memory_options
def log(invocation: Invocation, target: Target | None, project: str, limit: int) -> None:
    """Show the changes: number, time, actor, session, and each entry before and after."""
    store, own = open_target(invocation, target or "memory", project)
    found = change_history.log(store, own if target or project else None)
    changes = [change_history.change_data(store, change) for change in found[-limit:][::-1]]
    invocation.respond("\n".join(map(format_change_and_edits, changes)) or "No changes yet.", changes)


def format_change_and_edits(change: Mapping[str, Any]) -> str:
    """Formats one change with each entry before and after it; one of several entries says first what became of them."""
    lines, edits = [format_change(change, file_name(change["target"]))], change["edits"]
    if len(edits) > 1:
        summary = summarise_edits(((edit["before"], edit["after"]) for edit in edits), len(change.get("to_notes", ())))
        lines.append(f"      {summary}:")
    sides = [(sign, edit[side]) for edit in edits for sign, side in (("-", "before"), ("+", "after"))]
    lines += [f"      {sign} {_indent(text)}" for sign, text in sides if text is not None]
    return "\n".join(lines)


def _indent(text: str) -> str:
    return text.replace("\n", "\n        ")


@click.command()
@click.argument("number", type=click.IntRange(min=1), required=False)
@memory_options
def diff(invocation: Invocation, number: int | None) -> None:
    """Show the difference between the state before change NUMBER (default: the latest) and the files now.

    This includes a change of another program that is not in the journal yet.
    """
    store = open_curated_memory(invocation)
    data = change_history.difference_data(store, number)
    if data is None:
        _fail_unknown(invocation, store, number)
    respond_difference(invocation, data)


def _fail_unknown(invocation: Invocation, store: MemoryStore, number: int | None) -> NoReturn:
    """Ends the command with the number that was asked for and those that the log has."""
    numbers = [change.number for change in change_history.log(store)]
    if not numbers:
        invocation.fail(f"There is no change {number}: nothing was changed yet.")
    known = f"are {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"is {numbers[0]}"
    invocation.fail(f"There is no change {number}; there {known}. 'memoranda memory log' shows the changes.")


def respond_difference(invocation: Invocation, data: Mapping[str, Any]) -> None:
    lines: list[str] = []
    for target, changed in data.items():
        if changed["added"] or changed["removed"]:
            lines.append(file_name(target))
            lines += [f"  - {_indent(entry)}" for entry in changed["removed"]]
            lines += [f"  + {_indent(entry)}" for entry in changed["added"]]
    invocation.respond("\n".join(lines) or "No difference.", dict(data))


@click.command()
@click.argument("number", type=click.IntRange(min=1), required=False)
@click.option("--outside", type=click.Choice(TARGETS), help="Undo what something else did to this file.")
@memory_options
def undo(invocation: Invocation, number: int | None, outside: Target | None) -> None:
    """Undo change NUMBER (default: the latest that is not undone yet). An undo is a change too, and can be undone.
    A change whose text was forgotten cannot be undone.

    With --outside, a file that another program or a bad disk has changed gets back the entries that the journal has.
    """
    store = open_curated_memory(invocation)
    if outside is not None:
        if number is not None:
            invocation.fail("Name a change, or --outside, not both.")
        report(invocation, store, change_history.undo_outside_change(store, outside, PERSON))
        return
    if number is not None and all(change.number != number for change in change_history.log(store)):
        _fail_unknown(invocation, store, number)
    outcome = change_history.undo(store, number, PERSON)
    if isinstance(outcome, MemoryRefusal) and outcome.reason == "no_match":
        invocation.fail(outcome.message, describe(outcome, store))
    report(invocation, store, outcome)


@click.command()
@click.option("--through", type=click.IntRange(min=1), help="Delete changes up to this number only (default: all).")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@memory_options
def purge(invocation: Invocation, through: int | None, yes: bool) -> None:
    """Delete the journal's history, backups and rejected proposals for good. The entries themselves stay."""
    if not yes:
        require_yes(invocation, "Delete the history for good? This cannot be undone.")
    store = open_curated_memory(invocation)
    home = invocation.locate_home()
    with stdout_to_stderr():
        history = purge_memory(ForgetScope(home, invocation.user, config.server_url(home)), store, through)
    purged, services = history.purged, history.services
    lines = [f"Deleted {purged.changes} changes, {purged.backups} backups and {purged.proposals} rejected proposals."]
    if history.dropped_deliveries:
        lines.append(f"Dropped or changed {history.dropped_deliveries} deliveries that waited for an external memory.")
    lines += [f"At {line}." for line in services.deleted]
    lines += [f"Left at {place.where}: {place.note}" for place in services.left]
    data = {"success": True} | asdict(purged) | {"dropped_deliveries": history.dropped_deliveries}
    data |= {"at_services": services.deleted, "left": [asdict(place) for place in services.left]}
    invocation.respond("\n".join(map(terminal_line, lines)), data)


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
def stale(invocation: Invocation, older_than: float) -> None:
    """List the entries that were not written or confirmed for a while, the oldest first. Nothing is changed."""
    store = open_curated_memory(invocation)
    facts = [each for target in store.storage.targets() for each in store.facts(target)]
    every = [(each.checked_at, each.target, each.entry.handle, each.entry.visible_text) for each in facts]
    respond_stale(invocation, every, older_than)


def respond_stale(invocation: Invocation, entries: Iterable[tuple[float, Target, str, str]], older_than: float) -> None:
    """Lists those of the entries (when checked, target, handle, text) that were not checked since, the oldest first."""
    found = sorted((each for each in entries if each[0] < older_than), key=itemgetter(0))
    lines = [_format(*each) for each in found] or [f"Every entry was written or confirmed since {_day(older_than)}."]
    data = [
        {"target": target, "text": text, "handle": handle, "checked_at": show_time(checked_at)}
        for checked_at, target, handle, text in found
    ]
    invocation.respond("\n".join([*lines, dim(_HINT)] if found else lines), {"entries": data})


def _format(checked_at: float, target: Target, handle: str, text: str) -> str:
    days = int((time.time() - checked_at) / 86_400)
    about = f"{_day(checked_at)}  {days:,} days  {file_name(target)}  {handle}"
    return "\n".join([about, *(f"     {line}" for line in text.split("\n"))])


def _day(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).date().isoformat()


@click.command()
@click.argument("old_text")
@click.option("-t", "--target", type=click.Choice(TARGETS), help="The file that has it. [default: any]")
@memory_options
def confirm(invocation: Invocation, old_text: str, target: Target | None) -> None:
    """Confirm that the entry that contains OLD_TEXT (or has it as its number or handle) is still true."""
    store = open_curated_memory(invocation)
    targets = (target,) if target else store.storage.targets()
    outcome = confirm_entry(store, targets, number_to_handle(invocation, store, targets, old_text), PERSON)
    if isinstance(outcome, MemoryRefusal):
        invocation.fail("\n  - ".join([outcome.message, *outcome.matches]), describe(outcome, store))
    respond_confirmed(invocation, outcome.handle, outcome.visible_text)


def respond_confirmed(invocation: Invocation, handle: str, text: str) -> None:
    invocation.respond(f"Confirmed: {text}", {"success": True, "handle": handle, "text": text})
