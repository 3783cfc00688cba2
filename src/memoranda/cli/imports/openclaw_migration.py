"""How a move from OpenClaw goes: look, warn, show what would happen, ask, copy the home, do it, say what was done."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from memoranda.app import Memory, open_memory
from memoranda.cli.context import EXIT_UNUSABLE, Invocation
from memoranda.cli.imports.progress import ProgressBar
from memoranda.cli.imports.summary_text import size, told
from memoranda.cli.imports.workflow import hold_import_lock
from memoranda.cli.open_home import open_home
from memoranda.cli.terminal_text import terminal_line
from memoranda.config import directory_from_variable, read_secrets, set_secret
from memoranda.importers.importer import Importer
from memoranda.importers.openclaw import OpenClaw
from memoranda.importers.openclaw.installation import Installation, find_directories, inspect_installation
from memoranda.importers.openclaw.migration.backup import back_up
from memoranda.importers.openclaw.migration.cleanup import plan_rename, rename_directory
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.processes import find_openclaw_processes
from memoranda.importers.openclaw.migration.report import keep_report, step_lines
from memoranda.importers.openclaw.migration.runner import (
    MigrationPlan,
    migration_lock,
    new_directory,
    next_steps,
    plan_migration,
    run_migration,
)
from memoranda.importers.openclaw.migration.settings import is_openclaw, model_of
from memoranda.importers.openclaw.migration.steps import MigrationOptions, MigrationTarget
from memoranda.importers.reader_protocol import ImportItem
from memoranda.importers.summary import ImportSummary

_PROGRAM = "OpenClaw"
_VARIABLE = "OPENCLAW_STATE_DIR"
_RUNNING = (
    "OpenClaw is running (process {numbers}). What it writes from now on is not in this import, and a bot that is "
    "signed in twice may be refused: stop it first, or import again later."
)


@dataclass(frozen=True, slots=True)
class OpenClawMigration:
    """A move that a person asked for."""

    invocation: Invocation
    wishes: MigrationOptions
    where: Path | None = None
    agent: str | None = None
    dry_run: bool = False
    yes: bool = False
    backup: bool = True
    sessions: bool = True

    def go(self) -> None:
        """Show what would happen and, when that is wanted, do it."""
        found = self._found()
        running = find_openclaw_processes()
        items = self._items(found)
        planned, tally = self._plan(found, items)
        wanted = planned.has_work or (tally is not None and tally.adds_something)
        self._warn(running)
        if wanted and self.yes and not self.dry_run:
            self._apply(found, items, running)
            return
        lines = _lines(planned, tally, done=False)
        if wanted and not self.dry_run and not self.invocation.as_json and sys.stdin.isatty():
            click.echo("\n".join(lines))
            if click.confirm("Import this?", default=not running):
                self._apply(found, items, running)
            return
        ending = "Nothing was written. Add --yes to import this." if wanted else "Nothing is new."
        data = {"success": True, "applied": False, "running": running, **_data(planned, tally)}
        self.invocation.respond("\n".join([*lines, ending]), data)

    def _found(self) -> Installation:
        named = self.where or directory_from_variable(_VARIABLE)
        roots = [named] if named else find_directories()
        if not roots or not is_openclaw(roots[0]):
            place = f"{roots[0]} does not look like OpenClaw's directory" if roots else "OpenClaw was not found"
            self.invocation.fail(
                f"{place}. Its directory is ~/.openclaw (~/.clawdbot or ~/.moltbot before); name it with --source. "
                "Nothing was written.",
                code=EXIT_UNUSABLE,
            )
        found = inspect_installation(roots[0], self.agent, moved=named is not None)
        if self.agent and not found.workspaces:
            self.invocation.fail(
                f"There is no agent {self.agent} with a workspace in {found.root}. Nothing was written."
            )
        return found

    def _items(self, found: Installation) -> list[ImportItem]:
        if not self.sessions:
            return []
        place = found.root / "agents" / self.agent if self.agent else found.root
        return list(OpenClaw().scan(place))

    def _plan(self, found: Installation, items: list[ImportItem]) -> tuple[MigrationPlan, ImportSummary | None]:
        with self._opened() as memory:
            planned = plan_migration(found, _household(memory), self.wishes)
        if not items:
            return planned, None
        bar = ProgressBar("Reading", shown=not self.invocation.as_json)
        with open_home(self.invocation) as memory:
            engine = Importer(self.invocation.locate_home().root, memory.sessions, progress=bar)
            try:
                return planned, engine.plan(OpenClaw(), items)
            finally:
                engine.close()
                bar.clear()

    def _apply(self, found: Installation, items: list[ImportItem], running: list[int]) -> None:
        with self._opened() as memory, hold_import_lock(self.invocation, memory.home.root):
            root = memory.home.root
            copy = back_up(root) if self.backup else None
            with migration_lock(root):
                # Planned anew: between the question and the answer anything may have changed.
                household = _household(memory)
                planned = plan_migration(found, household, self.wishes)
                directory = new_directory(root)
                keep_report(directory, planned, finished=False)
                done = run_migration(planned, household, directory)
                tally = self._take_sessions(memory, items)
                more: dict[str, Any] = {
                    "backup": str(copy) if copy else None,
                    "running": running,
                    "sessions": tally.as_json() if tally else None,
                    "next_steps": next_steps(done.steps, model_of(found)),
                }
                report = keep_report(directory, done, finished=True, preset=self.wishes.preset, **more)
        lines = [*_lines(done, tally, done=True), *(["", f"The home as it was before: {copy}"] if copy else [])]
        lines += [f"Report: {report}", "", *more["next_steps"]]
        data = {"success": not done.failed, "applied": True, **_data(done, tally), **more, "report": str(report)}
        self.invocation.respond("\n".join(lines), data)
        if done.failed:
            sys.exit(1)

    def _take_sessions(self, memory: Memory, items: list[ImportItem]) -> ImportSummary | None:
        if not items:
            return None
        bar = ProgressBar("Importing", shown=not self.invocation.as_json)
        engine = Importer(memory.home.root, memory.sessions, progress=bar)
        try:
            tally = engine.apply(OpenClaw(), items)
            if tally.messages:
                memory.sessions.index.catch_up(progress=bar.indexing)
            return tally
        finally:
            engine.close()
            bar.clear()

    def _opened(self) -> Memory:
        return open_memory(self.invocation.home, profile=self.invocation.profile, user=self.invocation.user)

    def _warn(self, running: list[int]) -> None:
        if running and not self.invocation.as_json:
            click.echo(_RUNNING.format(numbers=", ".join(map(str, running[:5]))), err=True)


def clean_up(invocation: Invocation, where: Path | None, *, dry_run: bool, yes: bool) -> None:
    """Put OpenClaw's directories aside, if a person says so."""
    directories = [where] if where else find_directories()
    strange = [each for each in directories if not is_openclaw(each)]
    if strange:
        invocation.fail(
            f"{strange[0]} does not look like OpenClaw's directory. Nothing was renamed.", code=EXIT_UNUSABLE
        )
    if not directories:
        invocation.respond("There is no directory of OpenClaw to put aside.", {"success": True, "renamed": []})
        return
    running = find_openclaw_processes()
    planned = [plan_rename(each) for each in directories]
    lines = [f"{each.directory} ({each.files:,} files, {size(each.bytes)}) -> {each.becomes}" for each in planned]
    if not MigrationHistory(invocation.locate_home().root).directory.is_dir():
        lines.append("Nothing of it has been imported into this home yet.")
    if running:
        lines.append(_RUNNING.format(numbers=", ".join(map(str, running[:5]))))
    listed = [{"directory": str(each.directory), "becomes": str(each.becomes)} for each in planned]
    asks = not yes and not dry_run and not invocation.as_json and sys.stdin.isatty()
    if asks:
        click.echo("\n".join(lines))
    if dry_run or not (yes or (asks and click.confirm("Rename?", default=False))):
        ending = [] if asks else ["Nothing was renamed." + ("" if dry_run else " Add --yes to do it.")]
        data = {"success": True, "renamed": [], "would_rename": listed, "running": running}
        invocation.respond("\n".join([*([] if asks else lines), *ending]), data)
        return
    renamed = [{"directory": str(each.directory), "becomes": str(rename_directory(each))} for each in planned]
    text = "\n".join(f"{each['directory']} is now {each['becomes']}." for each in renamed)
    invocation.respond(text, {"success": True, "renamed": renamed, "running": running})


def _household(memory: Memory) -> MigrationTarget:
    return MigrationTarget(
        memory.home.root,
        memory.curated,
        memory.services.skills_for(memory.user),
        read_secrets(memory.home),
        lambda name, value: set_secret(memory.home, name, value),
    )


def _lines(migration: MigrationPlan, tally: ImportSummary | None, *, done: bool) -> list[str]:
    lines = [terminal_line(line) for line in step_lines(migration)]
    return [*lines, *(told("Conversations", tally, done=done) if tally is not None else [])]


def _data(migration: MigrationPlan, tally: ImportSummary | None) -> dict[str, Any]:
    return {"migration": migration.as_json(), "sessions": tally.as_json() if tally is not None else None}
