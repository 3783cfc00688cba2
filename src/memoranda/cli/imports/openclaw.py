"""`memoranda import openclaw`: migrates from OpenClaw, and renames its directory afterwards."""

from pathlib import Path
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.imports.openclaw_migration import OpenClawMigration, clean_up
from memoranda.importers.openclaw.migration.steps import MigrationOptions

_EPILOG = """\b
Examples:
  memoranda import openclaw --dry-run
  memoranda import openclaw
  memoranda import openclaw --source ~/old/.clawdbot --preset user-data --yes
  memoranda import openclaw --migrate-secrets --skill-conflict rename
  memoranda import openclaw cleanup
"""
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


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
def cleanup(path: Path | None, dry_run: bool, yes: bool) -> None:
    """Rename OpenClaw's directory to <directory>.pre-migration; its content is not changed."""
    clean_up(Invocation.current(), path, dry_run=dry_run, yes=yes)
