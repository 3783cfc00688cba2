"""Looking back and going back: log, diff, undo, purge."""

from dataclasses import asdict

import click

from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.memory.entries import report
from memoranda.cli.opening import open_store
from memoranda.curated import history
from memoranda.curated.journal import Change
from memoranda.curated.outcome import PERSON
from memoranda.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.curated.store import MemoryStore


@click.command()
@click.argument("target", type=click.Choice(TARGETS), required=False)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest first.")
@memory_options
def log(target: Target | None, limit: int) -> None:
    """Show what changed: number, time, who, which session, and each entry before and after."""
    invocation = Invocation.current()
    store = open_store(invocation)
    changes = history.log(store, target)[-limit:][::-1]
    text = "\n".join(_show(store, change) for change in changes) or "No changes yet."
    invocation.say(text, [_as_data(store, change) for change in changes])


def _show(store: MemoryStore, change: Change) -> str:
    session = f", session {printable(change.session)}" if change.session else ""
    about = f" of {change.refers_to}" if change.refers_to else ""
    note = f"  ({printable(change.note)})" if change.note else ""
    when = printable(change.at[:19].replace("T", " "))
    what = f"{change.action}{about} by {printable(change.actor)}{session}{note}"
    lines = [f"{change.number:>4}  {when}  {FILE_NAMES[change.target]}  {what}"]
    for edit in change.edits:
        lines += [f"      - {_indent(store.shown(change.target, edit.before))}"] if edit.before is not None else []
        lines += [f"      + {_indent(store.shown(change.target, edit.after))}"] if edit.after is not None else []
    return "\n".join(lines)


def _indent(text: str) -> str:
    return text.replace("\n", "\n        ")


def _as_data(store: MemoryStore, change: Change) -> dict[str, object]:
    edits = [
        {
            "before": None if edit.before is None else store.shown(change.target, edit.before),
            "after": None if edit.after is None else store.shown(change.target, edit.after),
        }
        for edit in change.edits
    ]
    return {key: value for key, value in asdict(change).items() if key != "heads"} | {"edits": edits}


@click.command()
@click.argument("number", type=click.IntRange(min=1), required=False)
@memory_options
def diff(number: int | None) -> None:
    """Show what differs between the state before change NUMBER (default: the latest) and the files now.

    A change that another program made and that nobody has written over yet shows up here too.
    """
    invocation = Invocation.current()
    store = open_store(invocation)
    last = store.journal.last()
    since = number or (last.number if last else 1)
    found = [history.difference_since(store, target, since) for target in TARGETS]
    lines: list[str] = []
    for difference in found:
        if difference.added or difference.removed:
            lines.append(FILE_NAMES[difference.target])
            lines += [f"  - {_indent(store.shown(difference.target, entry))}" for entry in difference.removed]
            lines += [f"  + {_indent(store.shown(difference.target, entry))}" for entry in difference.added]
    data = {
        item.target: {
            "added": [store.shown(item.target, entry) for entry in item.added],
            "removed": [store.shown(item.target, entry) for entry in item.removed],
        }
        for item in found
    }
    invocation.say("\n".join(lines) or "No difference.", data)


@click.command()
@click.argument("number", type=click.IntRange(min=1), required=False)
@memory_options
def undo(number: int | None) -> None:
    """Take change NUMBER back (default: the latest that was not). The undo is a change too, and can be undone."""
    invocation = Invocation.current()
    store = open_store(invocation)
    report(invocation, store, history.undo(store, number, PERSON))


@click.command()
@click.option("--through", type=click.IntRange(min=1), help="Forget changes up to this number only (default: all).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@memory_options
def purge(through: int | None, yes: bool) -> None:
    """Forget for good: the journal's history, backups and rejected proposals. The entries themselves stay."""
    invocation = Invocation.current()
    if not yes:
        click.confirm("Forget the history for good? It cannot be undone.", abort=True, err=True)
    purged = history.purge(open_store(invocation), through)
    text = f"Forgot {purged.changes} changes, {purged.backups} backups and {purged.proposals} rejected proposals."
    invocation.say(text, {"success": True} | asdict(purged))


COMMANDS = (log, diff, undo, purge)
