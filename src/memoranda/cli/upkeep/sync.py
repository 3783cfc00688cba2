"""`memoranda sync`: keeps the homes of several machines the same through a folder that they share."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click

from memoranda.api.memory import Memory
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.memory.entries import report as report_write
from memoranda.cli.open_home import open_home
from memoranda.cli.server_refusals import SYNC, refuse_on_server
from memoranda.cli.terminal_text import ProgressLine, bold, terminal_line
from memoranda.cli.upkeep.backup import passphrase_file_option, read_passphrase
from memoranda.memory.curated.settings import file_name
from memoranda.upkeep.backup.encryption import load_library
from memoranda.upkeep.sync.bundle_files import SUFFIX
from memoranda.upkeep.sync.conflicts import Choice, Conflict, list_conflicts, read_log, resolve_conflict
from memoranda.upkeep.sync.run import SyncReport
from memoranda.upkeep.sync.synchroniser import synchronise

_EPILOG = """\b
Examples:
  memoranda sync --encrypt ~/Dropbox/memoranda
  memoranda sync --passphrase-file ~/.sync-passphrase ~/Dropbox/memoranda
  memoranda sync --plain /media/usb/memoranda
  memoranda sync --log
  memoranda sync conflicts
  memoranda sync resolve 1 --keep theirs
"""


# What arrives changes memory and skills without approval, so its author must be known.
_NO_PASSPHRASE = (
    "Add --encrypt: what arrives in the folder changes your memory and skills, and a passphrase proves that it is from "
    "your machines. If you trust everyone who can write to the folder like yourself, add --plain instead."
)


class _SyncGroup(click.Group):
    """A group whose first argument is a subcommand, --log, or else the folder of `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["--log"]:
            args = ["log", *args[1:]]
        elif args and not {*self.commands, *ctx.help_option_names} & set(args):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_SyncGroup, epilog=_EPILOG, subcommand_metavar="DIR | COMMAND [ARGS]...")
@common_options
def command() -> None:
    """Keep several machines the same through a folder: 'memoranda sync --encrypt DIR' on each of them.

    DIR is a folder that your machines share: Dropbox, Syncthing, a network drive, a USB stick, a git repository.
    Conversations, items, curated memory, proposals, skills, facts, deletions and what was forgotten travel in both
    directions; settings and keys do not.
    """


@command.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--encrypt", is_flag=True, help="Ask for a passphrase, without which the folder cannot be read.")
@passphrase_file_option
@click.option("--plain", is_flag=True, help="Use no passphrase: everyone who can write to DIR is trusted like you.")
@click.option("--dry-run", is_flag=True, help="Count what would be sent and received; change nothing.")
@click.option("--rewrite", is_flag=True, help="Send everything again, also what came from other machines.")
@common_options
def run(
    invocation: Invocation,
    directory: Path,
    encrypt: bool,
    passphrase_file: Path | None,
    plain: bool,
    dry_run: bool,
    rewrite: bool,
) -> None:
    """Send what changed here to DIR, and merge what other machines have sent; 'run' can be omitted."""
    refuse_on_server(invocation, SYNC)
    if not (encrypt or passphrase_file or plain):
        invocation.fail(_NO_PASSPHRASE)
    passphrase = None
    if encrypt or passphrase_file:
        load_library()
        # A wrong one is refused where there is a key already; where there is none, a mistake would go unnoticed.
        is_first = not any(directory.expanduser().glob(f"*{SUFFIX}"))
        passphrase = read_passphrase(invocation, passphrase_file, confirm=is_first)
    with (
        # A home that does not exist yet is not created by looking.
        _opened(invocation, create=not dry_run or invocation.locate_home().root.exists()) as memory,
        ProgressLine(visible=not invocation.as_json) as line,
    ):
        done = synchronise(
            memory.home.root,
            memory.sessions,
            memory.curated,
            directory.expanduser().absolute(),
            passphrase=passphrase,
            dry_run=dry_run,
            rewrite=rewrite,
            progress=lambda text: line.update(terminal_line(text)),
        )
    _respond(invocation, done)


@command.command()
@common_options
def log(invocation: Invocation) -> None:
    """Show what was changed on two machines and replaced by the later change; 'memoranda sync --log' is the same."""
    refuse_on_server(invocation, SYNC)
    with _opened(invocation) as memory:
        data = read_log(memory.home.root)
    lines = [
        terminal_line(f"{row['at'][:16]}  {row['kind']} {row['name']}: {_lost(row['lost'])}  ({row['machine']})")
        for row in data
    ]
    invocation.respond("\n".join(lines) or "No synchronisation has replaced anything.", data)


@command.command()
@common_options
def conflicts(invocation: Invocation) -> None:
    """List the entries that two machines have changed differently; the later text stays unless you decide otherwise."""
    refuse_on_server(invocation, SYNC)
    with _opened(invocation) as memory:
        found = list_conflicts(memory.home.root, memory.sessions, memory.curated)
        data = [_as_data(memory, conflict) for conflict in found]
    lines = [line for conflict in data for line in _format(conflict)]
    if lines:
        lines.append("Decide with 'memoranda sync resolve NUMBER --keep mine|theirs|both'.")
    invocation.respond("\n".join(lines) or "There are no conflicts.", data)


@command.command()
@click.argument("number", type=click.IntRange(min=1))
@click.option("--keep", type=click.Choice(get_args(Choice)), required=True, help="Whose text to keep, or both.")
@common_options
def resolve(invocation: Invocation, number: int, keep: Choice) -> None:
    """Decide a conflict. It is a change like any other: 'memoranda memory undo' undoes it.

    The other machines get the decision when they and this one synchronise again.
    """
    refuse_on_server(invocation, SYNC)
    with _opened(invocation) as memory:
        outcome = resolve_conflict(memory.home.root, memory.sessions, memory.curated, number, keep)
        if outcome is not None:
            report_write(invocation, memory.curated, outcome)
            return
    text = f"Conflict {number} is decided: the entry here stays as it is."
    invocation.respond(text, {"success": True, "number": number})


@contextmanager
def _opened(invocation: Invocation, *, create: bool = False) -> Iterator[Memory]:
    if invocation.user is not None:
        invocation.fail("Only the memory of the home's owner is synchronised, not that of --user.")
    with open_home(invocation, create=create) as memory:
        yield memory


def _respond(invocation: Invocation, done: SyncReport) -> None:
    would = "Would send" if done.dry_run else "Sent"
    lines = [f"{would} {_counts(done.sent)}. {'Would read' if done.dry_run else 'Received'} {_counts(done.received)}."]
    lines += [f"Waiting: {text}." for text in done.waiting]
    lines += [f"Overdue: {text}" for text in done.overdue]
    lines += [f"Not used: {text}" for text in done.refused]
    lines += done.notes
    if done.replaced:
        lines.append(f"{done.replaced} {_times(done.replaced)} changed on two machines: see 'memoranda sync --log'.")
    if done.conflicts:
        word = "entry was" if done.conflicts == 1 else "entries were"
        lines.append(f"{done.conflicts} {word} changed differently on two machines: see 'memoranda sync conflicts'.")
    text = "\n".join(map(terminal_line, lines))
    data = asdict(done)
    if done.refused or done.overdue:
        invocation.fail(text, data)
    invocation.respond(text, {"success": True} | data)


def _times(number: int) -> str:
    return "thing was" if number == 1 else "things were"


def _lost(lost: Any) -> str:
    """Return what was replaced in one line: the texts of people, and of other things each field."""
    if not isinstance(lost, dict):
        return "it had been removed" if lost is None else str(lost)
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in lost.items())


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {_singular(name) if number == 1 else name}" for name, number in counts.items()) or (
        "nothing"
    )


def _singular(name: str) -> str:
    return name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")


def _as_data(memory: Memory, conflict: Conflict) -> dict[str, Any]:
    def show(text: str | None) -> str | None:
        return None if text is None else memory.curated.visible_text(conflict.target, text)

    return asdict(conflict) | {"mine": show(conflict.mine), "theirs": show(conflict.theirs)}


def _format(conflict: dict[str, Any]) -> list[str]:
    missing = "(removed, or not there)"
    return [
        bold(f"{conflict['number']}  {file_name(conflict['target'])}"),
        f"    mine:   {terminal_line(conflict['mine'] or missing)}",
        f"    theirs: {terminal_line(conflict['theirs'] or missing)}  ({terminal_line(conflict['machine'])})",
    ]
