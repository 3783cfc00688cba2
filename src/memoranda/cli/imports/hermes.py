"""`memoranda import hermes`: the sessions, memories and skills of a Hermes home."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from memoranda.api.memory import open_memory
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.imports.workflow import ImportOptions, StepReport, find_source, import_options, run_import
from memoranda.cli.terminal_text import terminal_line
from memoranda.home.config import directory_from_variable
from memoranda.importers.hermes.migration import (
    HermesMigration,
    MigrationOutcome,
    apply_migration,
    home_of,
    plan_migration,
)
from memoranda.importers.sources import SOURCES

_PARTS = ("sessions", "memories", "skills")
_MAX_OUTCOMES = 10
_STATUS_TEXTS = {
    "there": "already here",
    "gone": "removed here since (--rescan restores them)",
    "conflict": "with a name that is taken here",
    "left": "omitted",
    "unreadable": "that cannot be read",
}
_NAMES = {"memory": "MEMORY.md", "user": "USER.md", "skill": "skills"}
_EPILOG = """\b
Examples:
  memoranda import hermes --dry-run
  memoranda import hermes
  memoranda import hermes --only sessions --yes
  memoranda import hermes --source ~/backup/.hermes
"""


@click.command(name="hermes", epilog=_EPILOG)
@click.option(
    "--source",
    "path",
    type=click.Path(exists=True, path_type=Path),
    help="A Hermes home or its state.db (HERMES_HOME, ~/.hermes).",
)
@click.option(
    "--only",
    "parts",
    multiple=True,
    type=click.Choice(_PARTS),
    help="Import only this part. Can be repeated.",
)
@import_options
@memory_options
@click.pass_context
def command(
    context: click.Context, invocation: Invocation, /, path: Path | None, parts: Sequence[str], **options: Any
) -> None:
    """Import the sessions, memories and skills of a Hermes home.

    Hermes may be running; its files are only read. Entries that do not fit into the memory here are listed and written
    to a file.
    """
    source, wanted = SOURCES["hermes"], set(parts or _PARTS)
    selected = ImportOptions.from_context(context, options)
    sources = [find_source(source, path)] if "sessions" in wanted else []
    home = home_of(path or directory_from_variable(source.variable) or Path.home() / ".hermes")
    companion = _MemoriesAndSkills(home, wanted, rescan=selected.rescan) if home.is_dir() else None
    run_import(invocation, sources, selected, companion)


class _MemoriesAndSkills:
    """Imports the memories and skills of a Hermes home, or only one of them."""

    def __init__(self, home: Path, wanted: set[str], *, rescan: bool) -> None:
        self._home = home
        self._wanted = wanted
        self._rescan = rescan

    def plan(self, invocation: Invocation) -> StepReport:
        return self._run(invocation, apply=False)

    def apply(self, invocation: Invocation) -> StepReport:
        return self._run(invocation, apply=True)

    def _run(self, invocation: Invocation, *, apply: bool) -> StepReport:
        with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
            entries = memory.curated if "memories" in self._wanted else None
            skills = memory.services.skills_for(memory.user) if "skills" in self._wanted else None
            migration = plan_migration(self._home, entries, skills, rescan=self._rescan)
            if apply:
                migration = apply_migration(memory.home.root, migration, entries, skills)
        new = len(migration.with_status("new"))
        return StepReport(_migration_lines(migration, done=apply), {"belongings": migration.as_json()}, new)


def _migration_lines(migration: HermesMigration, *, done: bool) -> list[str]:
    """Describe what is new, and why the rest is omitted."""
    verb = "added" if done else "to add"
    lines = []
    for kind, counts in migration.counts().items():
        if counts:
            others = ", ".join(f"{counts[status]:,} {text}" for status, text in _STATUS_TEXTS.items() if counts[status])
            lines.append(f"  {_NAMES[kind]}: {counts['new']:,} {verb}{f'; {others}' if others else ''}")
    if done and migration.with_status("new"):
        lines.append("  'memoranda memory list' and 'memoranda skills list' show them")
    omitted = migration.with_status("left", "conflict", "unreadable")
    lines += [f"    {_outcome_line(outcome)}" for outcome in omitted[:_MAX_OUTCOMES]]
    if len(omitted) > _MAX_OUTCOMES:
        lines.append(f"    and {len(omitted) - _MAX_OUTCOMES:,} more; --json shows them")
    if omitted_files := sum(len(skill.omitted_files) for skill in migration.skills):
        lines.append(f"    omitted files, because they are not text or not allowed here: {omitted_files:,}")
    return lines + [f"  Omitted entries were written to {terminal_line(str(file))}" for file in migration.written_files]


def _outcome_line(outcome: MigrationOutcome) -> str:
    return f"{terminal_line(' '.join(outcome.name.split()), 70)}: {terminal_line(outcome.reason)}"
