"""`memoranda import hermes`: the sessions, memories and skills of a Hermes home."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from memoranda.app import open_memory
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.imports.found_sources import find_source
from memoranda.cli.imports.workflow import StepReport, import_options, import_options_from, run_import
from memoranda.cli.terminal_text import terminal_line
from memoranda.config import directory_from_variable
from memoranda.importers.hermes.migration import HermesMigration, apply_migration, home_of, plan_migration
from memoranda.importers.hermes.outcomes import MigrationOutcome
from memoranda.importers.sources import SOURCES

_PARTS = ("sessions", "memories", "skills")
_SHOWN = 10
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
    "--source", "where", type=click.Path(exists=True, path_type=Path),
    help="A Hermes home or its state.db (HERMES_HOME, ~/.hermes).",
)  # fmt: skip
@click.option(
    "--only", "parts", multiple=True, type=click.Choice(_PARTS),
    help="Bring only this along; may be given several times.",
)  # fmt: skip
@import_options
@memory_options
@click.pass_context
def command(context: click.Context, /, where: Path | None, parts: Sequence[str], **options: Any) -> None:
    """Import the sessions, memories and skills of a Hermes home.

    Hermes may be running; its files are only read. What does not fit into the memory here is listed and written down.
    """
    source, wanted, wish = SOURCES["hermes"], set(parts or _PARTS), import_options_from(context, options)
    findings = [find_source(source, where)] if "sessions" in wanted else []
    home = home_of(where or directory_from_variable(source.variable) or Path.home() / ".hermes")
    beside = _Beside(home, wanted, wish.again) if home.is_dir() else None
    run_import(Invocation.current(), findings, wish, beside)


class _Beside:
    """The memories and skills of a Hermes home, as far as they are asked for."""

    def __init__(self, home: Path, wanted: set[str], again: bool) -> None:
        self._home = home
        self._wanted = wanted
        self._again = again

    def plan(self, invocation: Invocation) -> StepReport:
        return self._told(invocation, done=False)

    def take(self, invocation: Invocation) -> StepReport:
        return self._told(invocation, done=True)

    def _told(self, invocation: Invocation, *, done: bool) -> StepReport:
        with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
            entries = memory.curated if "memories" in self._wanted else None
            skills = memory.services.skills_for(memory.user) if "skills" in self._wanted else None
            found = plan_migration(self._home, entries, skills, again=self._again)
            if done:
                found = apply_migration(memory.home.root, found, entries, skills)
        return StepReport(_lines(found, done=done), {"belongings": found.as_json()}, len(found.of("new")))


def _lines(found: HermesMigration, *, done: bool) -> list[str]:
    """The same in words: what is new, and of everything that stays behind, why."""
    verb = "added" if done else "to add"
    lines = []
    for kind, counted in found.counts().items():
        if counted:
            others = ", ".join(f"{counted[status]:,} {words}" for status, words in _OTHERS.items() if counted[status])
            lines.append(f"  {_NAMES[kind]}: {counted['new']:,} {verb}{f'; {others}' if others else ''}")
    told = found.of("left", "conflict", "unreadable")
    lines += [f"    {_shown(fate)}" for fate in told[:_SHOWN]]
    if len(told) > _SHOWN:
        lines.append(f"    and {len(told) - _SHOWN:,} more; --json shows them")
    behind = [f"{plan.fate.name}/{file}" for plan in found.skills for file in plan.behind]
    if behind:
        lines.append(f"    files that stay behind, because they are no text or not allowed here: {len(behind):,}")
    return lines + [f"  What was left is written down in {terminal_line(str(file))}" for file in found.written_down]


_OTHERS = {
    "there": "here already",
    "gone": "removed here since (--again brings them back)",
    "conflict": "of which there is another one here",
    "left": "left",
    "unreadable": "that cannot be read",
}


def _shown(fate: MigrationOutcome) -> str:
    line = " ".join(fate.name.split())
    return f"{terminal_line(line, 70)}: {terminal_line(fate.reason)}"
