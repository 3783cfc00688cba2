"""`memoranda import undo`: lists earlier imports, or removes what one of them added."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import EXIT_REFUSED, Invocation, memory_options
from memoranda.cli.imports.workflow import hold_import_lock
from memoranda.cli.open_home import open_home
from memoranda.cli.terminal_text import count_of, local_time
from memoranda.importers.sources import SOURCES
from memoranda.importers.state.log import LoggedImport
from memoranda.importers.summary import REPORT_DIRECTORY
from memoranda.importers.undo import ImportHistory, UndoReport

_REASONS = {
    "continued": "continued here since",
    "later_import": "a later import added to it; undo that one first",
    "branched": "another session continues it or branches from it",
    "renamed": "renamed here",
    "reopened": "reopened here",
    "edited": "rewound, redacted or partly forgotten here",
}
_EPILOG = """\b
Examples:
  memoranda import undo                              # the imports so far, with their ids
  memoranda import undo 20260301-101500-4711 --dry-run
  memoranda import undo 20260301-101500-4711 --yes
"""


@click.command(name="undo", epilog=_EPILOG)
@click.argument("import_id", metavar="[ID]", required=False)
@click.option("--dry-run", is_flag=True, help="Show what would be removed; write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@memory_options
def command(invocation: Invocation, import_id: str | None, dry_run: bool, yes: bool) -> None:
    """Undo a whole import: remove what it added; without an ID, list the imports.

    Of exported sessions ('memoranda sessions import') no import is kept: 'memoranda sessions delete' removes them.

    Sessions that you continued, renamed or changed since stay, and are listed. The files of the other program are not
    touched, so you can import them again.
    """
    if import_id is None:
        _list(invocation)
        return
    with open_home(invocation) as memory:
        history = ImportHistory(memory.home.root, memory.sessions, memory.curated)
        try:
            found = next((logged for logged in history.imports() if logged.id == import_id), None)
            if found is None:
                if (memory.home.root / REPORT_DIRECTORY / f"{import_id}.json").is_file():
                    text = f"The import {import_id} added nothing, so there is nothing to undo."
                    invocation.respond(text, {"success": True, "applied": False, **UndoReport(import_id, ()).as_json()})
                    return
                invocation.fail(
                    f"There is no import {import_id!r} in this home. 'memoranda import undo' lists them.",
                    code=EXIT_REFUSED,
                )
            report = history.preview(import_id)

            def run() -> None:
                with hold_import_lock(invocation, memory):
                    done = history.undo(import_id)
                memory.sessions.index.catch_up()
                invocation.respond(_report_text(done, done=True), {"success": True, "applied": True, **done.as_json()})

            planned = PlannedChange(
                _report_text(report, done=False),
                {"success": True, "applied": False, **report.as_json()},
                "Remove this?",
                "Nothing was removed. Add --yes to undo the import." if report.has_work else "Nothing was removed.",
                default=False,
                has_work=report.has_work,
            )
            confirm_and_run(invocation, planned, run, dry_run=dry_run, yes=yes)
        finally:
            history.close()


def _list(invocation: Invocation) -> None:
    with open_home(invocation) as memory, closing(ImportHistory(memory.home.root, memory.sessions)) as history:
        imports = history.imports()
    lines = [_import_line(logged) for logged in imports] or ["Nothing was imported from other programs yet."]
    if any(logged.undone is None for logged in imports):
        lines += ["", "Undo one of them with 'memoranda import undo ID'."]
    invocation.respond("\n".join(lines), {"success": True, "imports": [_as_json(logged) for logged in imports]})


def _import_line(logged: LoggedImport) -> str:
    programs = ", ".join(SOURCES[name].program if name in SOURCES else name for name in logged.sources)
    proposals = f", {count_of(logged.proposals, 'proposal')}" if logged.proposals else ""
    items = f", {count_of(logged.items, 'item')}" if logged.items else ""
    items += f", {count_of(logged.states, 'state')}" if logged.states else ""
    state = "undone" if logged.undone else count_of(logged.sessions, "session") + items + proposals
    return f"{logged.id}  {local_time(logged.began)}  {programs}: {state}"


def _as_json(logged: LoggedImport) -> dict[str, Any]:
    return {
        "import": logged.id,
        "began": datetime.fromtimestamp(logged.began, UTC).isoformat(timespec="seconds"),
        "sources": list(logged.sources),
        "sessions": logged.sessions,
        "items": logged.items,
        "states": logged.states,
        "proposals": logged.proposals,
        "undone": logged.undone is not None,
    }


def _report_text(report: UndoReport, *, done: bool) -> str:
    verb = "Removed" if done else "Would remove"
    lines = [f"{verb} {count_of(report.messages, 'message')}: {count_of(len(report.removed), 'session')} as a whole"]
    if report.shortened:
        lines[0] += f", and the newest part of {count_of(len(report.shortened), 'session')}"
    lines[0] += "."
    if report.items or report.items_kept:
        kept = f" {report.items_kept:,} changed here since and stay." if report.items_kept else ""
        lines.append(f"{verb} {count_of(len(report.items), 'item')}.{kept}")
    if report.states or report.states_kept:
        kept = f" {report.states_kept:,} of threads that continue here stay." if report.states_kept else ""
        lines.append(f"{verb} {count_of(report.states, 'state')} of threads.{kept}")
    if report.proposals.pending:
        lines.append(
            f"{'Withdrew' if done else 'Would withdraw'} {count_of(len(report.proposals.pending), 'proposal')}."
        )
    if report.proposals.decided:
        decided = count_of(report.proposals.decided, "proposal")
        lines.append(f"  {decided} decided here since: 'memoranda memory log' shows what was saved")
    return "\n".join([*lines, *_kept_lines(report.kept)])


def _kept_lines(kept: Sequence[Any]) -> list[str]:
    counts = Counter(session.reason for session in kept)
    lines = [f"  {count_of(number, 'session')} kept: {_REASONS[reason]}" for reason, number in sorted(counts.items())]
    return [*lines, *(f"    {session.session_id}" for session in kept[:20])]
