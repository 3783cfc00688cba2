"""`memoranda import openclaw`: migrates from OpenClaw, and renames its directory afterwards.

A migration shows what would happen, asks, backs the home up, migrates, and reports.
"""

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from memoranda.api.memory import Memory, open_memory
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import EXIT_UNUSABLE, Invocation, memory_options
from memoranda.cli.imports.summary_text import format_size, summary_lines
from memoranda.cli.imports.workflow import ProgressBar, hold_import_lock
from memoranda.cli.open_home import open_home
from memoranda.cli.terminal_text import terminal_line
from memoranda.home.config import directory_from_variable, read_secrets, set_secret
from memoranda.importers.importer import Importer
from memoranda.importers.openclaw.installation import (
    Installation,
    find_directories,
    find_openclaw_processes,
    inspect_installation,
    plan_rename,
    rename_directory,
)
from memoranda.importers.openclaw.migration.runner import (
    MigrationPlan,
    migration_lock,
    new_directory,
    next_steps,
    plan_migration,
    run_migration,
    step_lines,
    write_report,
)
from memoranda.importers.openclaw.migration.steps import MigrationHistory, MigrationOptions, MigrationTarget
from memoranda.importers.openclaw.migration.workspace import is_openclaw, model_of
from memoranda.importers.openclaw.reader import OpenClaw
from memoranda.importers.reader_protocol import ImportItem
from memoranda.importers.summary import ImportSummary, report_path
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.backup.archive import back_up

_VARIABLE = "OPENCLAW_STATE_DIR"
_RUNNING = (
    "OpenClaw is running (process {numbers}). This import misses what it writes from now on, and a bot that "
    "is signed in twice may be refused: stop it first, or import again later."
)
_EPILOG = """\b
Examples:
  memoranda import openclaw --dry-run
  memoranda import openclaw
  memoranda import openclaw --source ~/old/.clawdbot --preset user-data --yes
  memoranda import openclaw --migrate-secrets --skill-conflict rename
  memoranda import openclaw cleanup
"""
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class OpenClawMigration:
    """A migration with the options of the user."""

    invocation: Invocation
    options: MigrationOptions
    path: Path | None = None
    agent: str | None = None
    dry_run: bool = False
    yes: bool = False
    backup: bool = True
    sessions: bool = True

    def run(self) -> None:
        """Show what would happen and, with consent, do it."""
        installation = self._installation()
        running = find_openclaw_processes()
        items = self._items(installation)
        plan, summary = self._plan(installation, items)
        has_work = plan.has_work or (summary is not None and summary.new > 0)
        if running and not self.invocation.as_json:
            click.echo(_running_warning(running), err=True)
        change = PlannedChange(
            "\n".join(_plan_lines(plan, summary, done=False)),
            {"success": True, "applied": False, "running": running, **_plan_data(plan, summary)},
            "Import this?",
            "Nothing was written. Add --yes to import this." if has_work else "Nothing is new.",
            default=not running,
            has_work=has_work,
        )
        confirm_and_run(
            self.invocation,
            change,
            lambda: self._apply(installation, items, running),
            dry_run=self.dry_run,
            yes=self.yes,
        )

    def _installation(self) -> Installation:
        named_root = self.path or directory_from_variable(_VARIABLE)
        roots = [named_root] if named_root else find_directories()
        if not roots or not is_openclaw(roots[0]):
            problem = f"{roots[0]} does not look like OpenClaw's directory" if roots else "OpenClaw was not found"
            self.invocation.fail(
                f"{problem}. Its directory is ~/.openclaw (formerly ~/.clawdbot or ~/.moltbot); name it with --source. "
                "Nothing was written.",
                code=EXIT_UNUSABLE,
            )
        installation = inspect_installation(roots[0], self.agent, moved=named_root is not None)
        if self.agent and not installation.workspaces:
            self.invocation.fail(
                f"There is no agent {self.agent} with a workspace in {installation.root}. Nothing was written."
            )
        return installation

    def _items(self, installation: Installation) -> list[ImportItem]:
        if not self.sessions:
            return []
        directory = installation.root / "agents" / self.agent if self.agent else installation.root
        return list(OpenClaw().scan(directory))

    def _plan(self, installation: Installation, items: list[ImportItem]) -> tuple[MigrationPlan, ImportSummary | None]:
        with self._open_memory() as memory:
            plan = plan_migration(installation, _migration_target(memory), self.options)
        if not items:
            return plan, None
        root = self.invocation.locate_home().root
        with (
            open_home(self.invocation) as memory,
            ProgressBar("Reading", visible=not self.invocation.as_json) as bar,
            closing(Importer(root, memory.sessions, progress=bar)) as importer,
        ):
            return plan, importer.plan(OpenClaw(), items)

    def _apply(self, installation: Installation, items: list[ImportItem], running: list[int]) -> None:
        with self._open_memory() as memory, hold_import_lock(self.invocation, memory):
            root = memory.home.root
            backup = back_up(root) if self.backup else None
            with migration_lock(root):
                # Plan again: anything may have changed between the question and the answer.
                target = _migration_target(memory)
                plan = plan_migration(installation, target, self.options)
                directory = new_directory(root)
                write_report(directory, plan, finished=False)
                done = run_migration(plan, target, directory)
                summary = self._import_sessions(memory, items)
                more: dict[str, Any] = {
                    "backup": str(backup) if backup else None,
                    "running": running,
                    "sessions": summary.as_json() if summary else None,
                    "next_steps": next_steps(done.steps, model_of(installation)),
                }
                report = write_report(directory, done, finished=True, preset=self.options.preset, **more)
        lines = [*_plan_lines(done, summary, done=True), *(["", f"Backup of the home: {backup}"] if backup else [])]
        lines += [f"Report: {report}", "", *more["next_steps"]]
        data = {"success": not done.failed, "applied": True, **_plan_data(done, summary), **more, "report": str(report)}
        self.invocation.respond("\n".join(lines), data)
        if done.failed:
            sys.exit(1)

    def _import_sessions(self, memory: Memory, items: list[ImportItem]) -> ImportSummary | None:
        if not items:
            return None
        import_id = report_path(memory.home.root, time.time(), shared=bool(memory.services.server_url)).stem
        with (
            ProgressBar("Importing", visible=not self.invocation.as_json) as bar,
            closing(Importer(memory.home.root, memory.sessions, progress=bar, import_id=import_id)) as importer,
        ):
            summary = importer.apply(OpenClaw(), items)
            if summary.messages:
                memory.sessions.index.catch_up(progress=bar.indexing)
            return summary

    def _open_memory(self) -> Memory:
        return open_memory(self.invocation.home, profile=self.invocation.profile, user=self.invocation.user)


def clean_up(invocation: Invocation, path: Path | None, *, dry_run: bool, yes: bool) -> None:
    """Rename OpenClaw's directories, with consent."""
    directories = [path] if path else find_directories()
    if unknown := [directory for directory in directories if not is_openclaw(directory)]:
        invocation.fail(
            f"{unknown[0]} does not look like OpenClaw's directory. Nothing was renamed.", code=EXIT_UNUSABLE
        )
    if not directories:
        invocation.respond("There is no directory of OpenClaw to rename.", {"success": True, "renamed": []})
        return
    running = find_openclaw_processes()
    renames = [plan_rename(directory) for directory in directories]
    lines = [
        f"{rename.directory} ({rename.files:,} files, {format_size(rename.bytes)}) -> {rename.new_path}"
        for rename in renames
    ]
    if not MigrationHistory(invocation.locate_home().root).directory.is_dir():
        lines.append("It has not been imported into this home yet.")
    if running:
        lines.append(_running_warning(running))

    def rename_all() -> None:
        renamed = [{"directory": str(rename.directory), "becomes": str(rename_directory(rename))} for rename in renames]
        text = "\n".join(f"{rename['directory']} is now {rename['becomes']}." for rename in renamed)
        invocation.respond(text, {"success": True, "renamed": renamed, "running": running})

    would_rename = [{"directory": str(rename.directory), "becomes": str(rename.new_path)} for rename in renames]
    change = PlannedChange(
        "\n".join(lines),
        {"success": True, "renamed": [], "would_rename": would_rename, "running": running},
        "Rename?",
        "Nothing was renamed." + ("" if dry_run else " Add --yes to do it."),
        default=False,
    )
    confirm_and_run(invocation, change, rename_all, dry_run=dry_run, yes=yes)


def _running_warning(processes: list[int]) -> str:
    return _RUNNING.format(numbers=", ".join(map(str, processes[:5])))


def _migration_target(memory: Memory) -> MigrationTarget:
    return MigrationTarget(
        memory.home.root,
        memory.curated,
        memory.services.skills_for(memory.user),
        read_secrets(memory.home),
        lambda name, value: set_secret(memory.home, name, value),
    )


def _plan_lines(plan: MigrationPlan, summary: ImportSummary | None, *, done: bool) -> list[str]:
    lines = [terminal_line(line) for line in step_lines(plan)]
    return [*lines, *(summary_lines("Conversations", summary, done=done) if summary is not None else [])]


def _plan_data(plan: MigrationPlan, summary: ImportSummary | None) -> dict[str, Any]:
    return {"migration": plan.as_json(), "sessions": summary.as_json() if summary is not None else None}


@click.group(name="openclaw", epilog=_EPILOG, invoke_without_command=True)
@click.option("--source", "path", type=_DIRECTORY, help="OpenClaw's directory (~/.openclaw, ~/.clawdbot, ~/.moltbot).")
@click.option("--agent", help="The id of an agent other than the default one.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--preset",
    type=click.Choice(["user-data", "full"]),
    default="full",
    show_default=True,
    help="user-data omits settings and secrets; full archives the settings too.",
)
@click.option("--overwrite", is_flag=True, help="Replace files and keys that differ here, instead of skipping them.")
@click.option("--migrate-secrets", is_flag=True, help="Copy the API keys that can be used here into .env.")
@click.option(
    "--workspace-target",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory that AGENTS.md is copied into.",
)
@click.option(
    "--skill-conflict",
    type=click.Choice(["skip", "overwrite", "rename"]),
    default="skip",
    show_default=True,
    help="What to do with a skill whose name is taken here.",
)
@click.option("--no-backup", is_flag=True, help="Do not back up the home first.")
@click.option("--no-sessions", is_flag=True, help="Do not import the conversations.")
@memory_options
@click.pass_context
def command(context: click.Context, /, **values: Any) -> None:
    """Migrate from OpenClaw: its memories, skills, identity and conversations.

    The command first shows what would happen, and writes nothing before you agree. OpenClaw's files are only read.
    Entries that do not fit, and settings that have no equivalent here, are kept in migration/openclaw/ in the home. No
    credential is copied without --migrate-secrets.
    """
    if context.invoked_subcommand is not None:
        return
    before_name = context.parent.params if context.parent else {}
    options = MigrationOptions(
        values["preset"],
        values["overwrite"],
        values["migrate_secrets"],
        values["workspace_target"],
        values["skill_conflict"],
    )
    if options.migrate_secrets and options.preset == "user-data":
        raise click.UsageError("--preset user-data never copies secrets; use --preset full with --migrate-secrets.")
    OpenClawMigration(
        Invocation.current(),
        options,
        path=values["path"],
        agent=values["agent"],
        dry_run=values["dry_run"] or bool(before_name.get("dry_run")),
        yes=values["yes"] or bool(before_name.get("yes")),
        backup=not values["no_backup"],
        sessions=not values["no_sessions"],
    ).run()


@command.command()
@click.option("--source", "path", type=_DIRECTORY, help="The directory to rename; by default all that exist.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; rename nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@memory_options
def cleanup(invocation: Invocation, path: Path | None, dry_run: bool, yes: bool) -> None:
    """Rename OpenClaw's directory to <directory>.pre-migration; its content is not changed."""
    clean_up(invocation, path, dry_run=dry_run, yes=yes)
