"""Runs an import: finds the sources, shows what it would do, asks, imports, reports, and follows them if asked to."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from memoranda.api.memory import Memory
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import EXIT_REFUSED, Invocation
from memoranda.cli.imports.summary_text import format_size, summary_lines, summary_on_one_line
from memoranda.cli.open_home import open_home
from memoranda.cli.terminal_text import ProgressLine
from memoranda.home.config import directory_from_variable
from memoranda.home.session_db import SessionDB
from memoranda.importers.importer import Importer, ImportProgress, ImportRunningError, import_lock, scan_source
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.sources import SOURCES, ImportSource
from memoranda.importers.summary import ImportSummary, build_report, report_path, write_report
from memoranda.support.lazy_dataclass import dataclass

_WIDTH = 30
_FOLLOW_INTERVAL = 2.0
# While no file changes, the next pass comes later and later, up to four times the interval.
_SLOWER, _MAX_SLOWER = 1.2, 4.0
_PASSES_UNTIL_COMPARED = 30
# An import that a hook started takes seconds; if another one takes longer, the user decides whether to wait.
_LOCK_TIMEOUT = 5.0
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A program and the items that its reader found."""

    source: ImportSource
    reader: ConversationReader
    path: Path | None
    items: Sequence[ImportItem]

    @property
    def description(self) -> str:
        count = len(self.items)
        return f"{count:,} file{'' if count == 1 else 's'}, {format_size(sum(item.size for item in self.items))}"

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source.name, "files": len(self.items), "bytes": sum(item.size for item in self.items)}

    def rescan(self) -> "FoundSource":
        """Return the same program with its current items."""
        return FoundSource(self.source, self.reader, self.path, scan_source(self.reader, self.path))


@dataclass(frozen=True, slots=True)
class ImportOptions:
    dry_run: bool = False
    yes: bool = False
    follow: bool = False
    rescan: bool = False

    @classmethod
    def from_context(cls, context: click.Context, values: Mapping[str, bool]) -> "ImportOptions":
        """Combine the options of a command with those before its name."""
        before_name = context.parent.params if context.parent else {}
        return cls(**{name: value or bool(before_name.get(name)) for name, value in values.items()})


def import_options(command: _Command) -> _Command:
    """Give a command the options that every import has."""
    options = (
        click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option("--follow", is_flag=True, help="Continue to import what is new, until Ctrl-C."),
        click.option("--rescan", is_flag=True, help="Read everything again, including sessions deleted here."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def find_source(source: ImportSource, path: Path | None = None) -> FoundSource:
    """Find the items of a program under a path, or else in the program's own directories."""
    directory = path or directory_from_variable(source.variable)
    reader = source.load(directory_from_variable(source.settings_variable))
    return FoundSource(source, reader, directory, scan_source(reader, directory))


def find_all_sources() -> list[FoundSource]:
    """Return the programs that have items."""
    return [source for source in map(find_source, SOURCES.values()) if source.items]


class ProgressBar(ProgressLine):
    """A progress bar on stderr; invisible when stderr is not a terminal."""

    def __init__(self, verb: str, *, visible: bool) -> None:
        super().__init__(visible=visible)
        self._verb = verb

    def __call__(self, progress: ImportProgress) -> None:
        part = progress.bytes / progress.all_bytes if progress.all_bytes else 1.0
        filled = round(part * _WIDTH)
        self.update(
            f"{self._verb} {progress.source} [{'#' * filled}{'-' * (_WIDTH - filled)}] {part:4.0%}  "
            f"{format_size(progress.bytes)} of {format_size(progress.all_bytes)}, {progress.messages:,} messages"
        )

    def indexing(self, done: int, total: int) -> None:
        """Show how many of the imported messages are in the index."""
        self.update(f"Indexing {done:,} of {total:,} messages")


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step would do or has done: as text, as fields of the JSON answer, and how many things are new."""

    lines: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    new: int = 0


class Companion(Protocol):
    """Something that is imported together with conversations, such as the memories and skills of the program."""

    def plan(self, invocation: Invocation) -> StepReport:
        """Return what would happen; writes nothing."""
        ...

    def apply(self, invocation: Invocation) -> StepReport:
        """Import it, and return what was done."""
        ...


def run_import(
    invocation: Invocation, sources: Sequence[FoundSource], options: ImportOptions, companion: Companion | None = None
) -> None:
    """Import the conversations of the sources, and their companion, as the options say."""
    if not any(source.items for source in sources) and companion is None:
        names = ", ".join(source.source.program for source in sources) or "any known program"
        if not options.follow or options.dry_run:
            text = f"Found nothing to import from {names}. --source names another directory."
            invocation.respond(text, {"success": True, "applied": False, "sources": []})
            return

    apply = partial(_apply, invocation, sources, options, companion)
    if options.yes and not options.dry_run:
        apply()
    else:
        planned = _plan(invocation, sources, options, companion)
        confirm_and_run(invocation, planned, apply, dry_run=options.dry_run, yes=False)
        if not planned.data["success"]:
            sys.exit(EXIT_REFUSED)


def _plan(
    invocation: Invocation, sources: Sequence[FoundSource], options: ImportOptions, companion: Companion | None
) -> PlannedChange:
    root = invocation.locate_home().root
    with (
        open_home(invocation) as memory,
        ProgressBar("Reading", visible=not invocation.as_json) as bar,
        closing(
            Importer(root, memory.sessions, progress=bar, rescan=options.rescan, curated=memory.curated)
        ) as importer,
    ):
        summaries = [importer.plan(source.reader, source.items) for source in sources]
    step = companion.plan(invocation) if companion else StepReport()
    new = sum(summary.new for summary in summaries) + step.new
    return PlannedChange(
        _report_text(sources, summaries, step, done=False),
        {
            "success": not _is_unreadable(summaries),
            "applied": False,
            "sources": [summary.as_json() for summary in summaries],
            **step.data,
        },
        "Import this?" if new else "Nothing is new. Keep watching?",
        "Nothing was written. Add --yes to import this." if new else "Nothing is new.",
        has_work=bool(new) or options.follow,
    )


def _apply(
    invocation: Invocation, sources: Sequence[FoundSource], options: ImportOptions, companion: Companion | None
) -> None:
    started_at = time.time()
    with _opened_importer(invocation, started_at, rescan=options.rescan) as (memory, importer, bar, path):
        with hold_import_lock(invocation, memory):
            summaries = _import_once(importer, memory.sessions, sources, bar)
            step = companion.apply(invocation) if companion else StepReport()
            data = {"import": path.stem, **build_report(summaries, started_at, time.time()), **step.data}
            write_report(path, data)
        answer = {"success": not _is_unreadable(summaries), "applied": True, **data, "report": str(path)}
        _respond(invocation, _report_text(sources, summaries, step, done=True), answer, options)
        if not options.follow and _is_unreadable(summaries):
            sys.exit(EXIT_REFUSED)
        if options.follow:
            _follow(invocation, importer, memory, sources, summaries, bar)
            write_report(path, data | build_report(summaries, started_at, time.time()))


def import_without_asking(
    invocation: Invocation, sources: Sequence[FoundSource]
) -> tuple[list[ImportSummary], dict[str, Any]]:
    """Import the conversations of the sources; returns what was done, and the answer with the path of its report."""
    started_at = time.time()
    with (
        _opened_importer(invocation, started_at) as (memory, importer, bar, path),
        hold_import_lock(invocation, memory),
    ):
        summaries = _import_once(importer, memory.sessions, sources, bar)
        data = {"import": path.stem, **build_report(summaries, started_at, time.time())}
        write_report(path, data)
    return summaries, {**data, "report": str(path)}


@contextmanager
def _opened_importer(
    invocation: Invocation, started_at: float, *, rescan: bool = False
) -> Iterator[tuple[Memory, Importer, ProgressBar, Path]]:
    """Opens the home for an import, whose id is the name of its report; returns the path of that, too."""
    with open_home(invocation, create=True) as memory, ProgressBar("Importing", visible=not invocation.as_json) as bar:
        root, db, curated = memory.home.root, memory.sessions, memory.curated
        path = report_path(root, started_at, shared=bool(memory.services.server_url))
        with closing(Importer(root, db, progress=bar, rescan=rescan, import_id=path.stem, curated=curated)) as importer:
            yield memory, importer, bar, path


def _import_once(
    importer: Importer, db: SessionDB, sources: Sequence[FoundSource], bar: ProgressBar
) -> list[ImportSummary]:
    """Import once, and index what is new."""
    try:
        summaries = [importer.apply(source.reader, source.items) for source in sources]
        if any(summary.new for summary in summaries):
            db.index.catch_up(progress=bar.indexing)
    finally:
        bar.clear()
    return summaries


def _follow(
    invocation: Invocation,
    importer: Importer,
    memory: Memory,
    sources: Sequence[FoundSource],
    summaries: list[ImportSummary],
    bar: ProgressBar,
) -> None:
    """Import every few seconds until Ctrl-C; other imports may run in between."""
    if not invocation.as_json:
        click.echo("Watching for new messages; Ctrl-C stops.", err=True)
    imported, passes, interval = [source.items for source in sources], 0, _FOLLOW_INTERVAL
    try:
        while True:
            time.sleep(interval)
            passes, interval = passes + 1, min(interval * _SLOWER, _MAX_SLOWER * _FOLLOW_INTERVAL)
            found = [source.rescan() for source in sources]
            # Usually no file has changed; now and then all are compared with the record, whatever their times say.
            if [source.items for source in found] == imported and passes % _PASSES_UNTIL_COMPARED:
                continue
            try:
                with import_lock(memory.home.root, 0.0, store=memory.sessions):
                    new = _import_once(importer, memory.sessions, found, bar)
            except ImportRunningError:
                continue
            imported, interval = [source.items for source in found], _FOLLOW_INTERVAL
            for summary, later in zip(summaries, new, strict=True):
                summary.add(later)
            if any(summary.new for summary in new):
                line = json.dumps({"sources": [summary.as_json() for summary in new]}, ensure_ascii=False)
                click.echo(line if invocation.as_json else summary_on_one_line(new))
    except KeyboardInterrupt:
        bar.clear()


def _respond(invocation: Invocation, text: str, data: dict[str, Any], options: ImportOptions) -> None:
    if invocation.as_json and options.follow:
        # One line per pass, so that a program can read each one at once.
        click.echo(json.dumps(data, ensure_ascii=False))
    else:
        is_undoable = any(
            source["messages"] or source["items"] or source["states"] or source["proposals"]
            for source in data["sources"]
        )
        undo = f"\nUndo: memoranda import undo {data['import']}" if is_undoable else ""
        invocation.respond(f"{text}\nReport: {data['report']}{undo}", data)


def _is_unreadable(summaries: Sequence[ImportSummary]) -> bool:
    """Whether nothing at all could be read, so that the command fails."""
    read = any(each.sessions or each.kept_items_known or each.states_known or each.new for each in summaries)
    return not read and any(summary.problem_count for summary in summaries)


def _report_text(
    sources: Sequence[FoundSource], summaries: Sequence[ImportSummary], step: StepReport, *, done: bool
) -> str:
    pairs = zip(sources, summaries, strict=True)
    lines = [line for source, summary in pairs for line in summary_lines(source.source.program, summary, done=done)]
    return "\n".join([*lines, *step.lines])


@contextmanager
def hold_import_lock(invocation: Invocation, memory: Memory) -> Iterator[None]:
    """Hold the import lock of a home; fails with the holder's name when another import holds it."""
    # Asking for the record of a home creates it, and a migration may import no conversation.
    store = memory.sessions if memory.services.server_url else None
    try:
        with import_lock(memory.home.root, _LOCK_TIMEOUT, _say_waiting, store=store):
            yield
    except ImportRunningError as error:
        invocation.fail(str(error), {"holder": error.holder})


def _say_waiting(holder: str) -> None:
    click.echo(f"Waiting up to {_LOCK_TIMEOUT:g} s for another import into this home: {holder}.", err=True)
