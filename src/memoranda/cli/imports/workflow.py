"""How an import goes: look, show what would happen, ask, do it, say what was done, and perhaps keep up."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from memoranda.app import Memory
from memoranda.cli.context import Invocation
from memoranda.cli.imports.found_sources import FoundSource
from memoranda.cli.imports.progress import ProgressBar
from memoranda.cli.imports.summary_text import in_one_line, told
from memoranda.cli.open_home import open_home
from memoranda.importers.importer import Importer, import_lock
from memoranda.importers.summary import ImportSummary, keep_report, report, report_path
from memoranda.recall.session_db import SessionDB


@dataclass(frozen=True, slots=True)
class StepReport:
    """What would happen or has happened: in words, as fields of the answer, and how many things are new."""

    lines: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    new: int = 0


class Companion(Protocol):
    """Something that is imported together with transcripts."""

    def plan(self, invocation: Invocation) -> StepReport:
        """Say what would happen; nothing is written."""
        ...

    def take(self, invocation: Invocation) -> StepReport:
        """Take it over, and say what was done."""
        ...


_ROUND_SECONDS = 2.0
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a person asked for."""

    dry_run: bool = False
    yes: bool = False
    follow: bool = False
    again: bool = False


def import_options_from(context: click.Context, options: dict[str, bool]) -> ImportOptions:
    """The wish; options may stand before the name of the program as well as behind it."""
    given = context.parent.params if context.parent else {}
    return ImportOptions(**{name: value or bool(given.get(name)) for name, value in options.items()})


def import_options(command: _Command) -> _Command:
    """Give a command the options that every import has."""
    options = (
        click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--follow", is_flag=True, help="Keep on importing what is new, until Ctrl-C."),
        click.option("--again", is_flag=True, help="Read everything anew, sessions included that were deleted here."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def run_import(
    invocation: Invocation, findings: Sequence[FoundSource], wish: ImportOptions, beside: Companion | None = None
) -> None:
    """Import what was found, as it was asked for, and what the program has beside it."""
    if not any(finding.items for finding in findings) and beside is None:
        names = ", ".join(finding.source.program for finding in findings) or "any known program"
        if not wish.follow or wish.dry_run:
            text = f"There is nothing of {names} to import here. --source names another place."
            invocation.respond(text, {"success": True, "applied": False, "sources": []})
            return
    if wish.dry_run or not wish.yes:
        agreed = _preview(invocation, findings, wish, beside)
        if not agreed:
            return
    _apply(invocation, findings, wish, beside)


def _preview(
    invocation: Invocation, findings: Sequence[FoundSource], wish: ImportOptions, beside: Companion | None
) -> bool:
    """Show what would happen; whether to go on."""
    bar = ProgressBar("Reading", shown=not invocation.as_json)
    with open_home(invocation) as memory:
        engine = Importer(invocation.locate_home().root, memory.sessions, progress=bar, again=wish.again)
        try:
            tallies = [engine.plan(finding.reader, finding.items) for finding in findings]
        finally:
            engine.close()
            bar.clear()
    more = beside.plan(invocation) if beside else StepReport()
    new = sum(tally.messages for tally in tallies) + more.new
    asks = not wish.dry_run and not invocation.as_json and sys.stdin.isatty() and (new or wish.follow)
    text = _text(findings, tallies, more, done=False)
    if asks:
        click.echo(text)
        return click.confirm("Import this?" if new else "Nothing is new. Keep watching?", default=True)
    ending = "Nothing is new." if not new else "Nothing was written. Add --yes to import this."
    data = {"success": True, "applied": False, "sources": [tally.as_json() for tally in tallies], **more.data}
    invocation.respond(f"{text}\n{ending}", data)
    return False


def _apply(
    invocation: Invocation, findings: Sequence[FoundSource], wish: ImportOptions, beside: Companion | None
) -> None:
    bar = ProgressBar("Importing", shown=not invocation.as_json)
    began = time.time()
    with open_home(invocation, create=True) as memory:
        engine = Importer(memory.home.root, memory.sessions, progress=bar, again=wish.again)
        path = report_path(memory.home.root, began)
        try:
            with hold_import_lock(invocation, memory.home.root):
                tallies = _round(engine, memory.sessions, findings, bar)
                more = beside.take(invocation) if beside else StepReport()
                data = {**report(tallies, began, time.time()), **more.data}
                keep_report(path, data)
            answer = {"success": True, "applied": True, **data, "report": str(path)}
            _say(invocation, _text(findings, tallies, more, done=True), answer, wish)
            if wish.follow:
                _follow(invocation, engine, memory, findings, tallies, bar)
                keep_report(path, {**report(tallies, began, time.time()), **more.data})
        finally:
            engine.close()


def _round(engine: Importer, db: SessionDB, findings: Sequence[FoundSource], bar: ProgressBar) -> list[ImportSummary]:
    """Import once, and let what is new be found."""
    try:
        tallies = [engine.apply(finding.reader, finding.items) for finding in findings]
        if any(tally.messages for tally in tallies):
            db.index.catch_up(progress=bar.indexing)
    finally:
        bar.clear()
    return tallies


def _follow(
    invocation: Invocation,
    engine: Importer,
    memory: Memory,
    findings: Sequence[FoundSource],
    tallies: list[ImportSummary],
    bar: ProgressBar,
) -> None:
    """Look again every now and then, until somebody interrupts; others may import in between."""
    if not invocation.as_json:
        click.echo("Following; Ctrl-C ends it.", err=True)
    try:
        while True:
            time.sleep(_ROUND_SECONDS)
            with import_lock(memory.home.root, 0.0) as other:
                if other:
                    continue
                fresh = _round(engine, memory.sessions, [finding.again() for finding in findings], bar)
            for tally, more in zip(tallies, fresh, strict=True):
                tally.add(more)
            if any(tally.messages for tally in fresh):
                line = json.dumps({"sources": [each.as_json() for each in fresh]}, ensure_ascii=False)
                click.echo(line if invocation.as_json else in_one_line(fresh))
    except KeyboardInterrupt:
        bar.clear()


def _say(invocation: Invocation, text: str, data: dict[str, Any], wish: ImportOptions) -> None:
    if invocation.as_json and wish.follow:
        # One line per round, so that a program can read along.
        click.echo(json.dumps(data, ensure_ascii=False))
    else:
        invocation.respond(f"{text}\nReport: {data['report']}", data)


def _text(findings: Sequence[FoundSource], tallies: Sequence[ImportSummary], more: StepReport, *, done: bool) -> str:
    pairs = zip(findings, tallies, strict=True)
    lines = [line for finding, tally in pairs for line in told(finding.source.program, tally, done=done)]
    return "\n".join([*lines, *more.lines])


# What a hook takes in takes a moment; everything longer is for a person to wait for.
_PATIENCE = 5.0


@contextmanager
def hold_import_lock(invocation: Invocation, root: Path) -> Iterator[None]:
    """Import while nobody else does, or say who does and leave."""
    with import_lock(root, _PATIENCE, _say_waiting) as other:
        if other:
            invocation.fail(
                f"Another import into this home is at work: {other}. Nothing was imported; try again when it is done, "
                "or stop it.",
                {"holder": other},
            )
        yield


def _say_waiting(other: str) -> None:
    click.echo(f"Waiting up to {_PATIENCE:g} s for another import into this home: {other}.", err=True)
