"""`memoranda import openclaw`: move from OpenClaw, and put its directory aside afterwards."""

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
@click.option("--source", "where", type=_DIRECTORY, help="OpenClaw's directory (~/.openclaw, ~/.clawdbot, ~/.moltbot).")
@click.option("--agent", help="Another agent than the default one, by its id.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--preset", type=click.Choice(["user-data", "full"]), default="full", show_default=True,
    help="user-data leaves settings and secrets out; full archives the settings too.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace what is here with what is there, instead of skipping it.")
@click.option("--migrate-secrets", is_flag=True, help="Take along the API keys that can be used here, into .env.")
@click.option(
    "--workspace-target", type=click.Path(file_okay=False, path_type=Path),
    help="The directory that AGENTS.md is copied into.",
)  # fmt: skip
@click.option(
    "--skill-conflict", type=click.Choice(["skip", "overwrite", "rename"]), default="skip", show_default=True,
    help="What becomes of a skill whose name is taken here.",
)  # fmt: skip
@click.option("--no-backup", is_flag=True, help="Do not copy the home before.")
@click.option("--no-sessions", is_flag=True, help="Leave the conversations out.")
@memory_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Move from OpenClaw: its memories, skills, identity and conversations.

    What would happen is shown first, and nothing is written before you say yes. OpenClaw's files are only read. Entries
    that find no room, and settings that have no place here, are kept in migration/openclaw/ in the home. No credential
    moves unless you say --migrate-secrets.
    """
    if context.invoked_subcommand is not None:
        return
    given = context.parent.params if context.parent else {}
    wishes = MigrationOptions(
        options["preset"], options["overwrite"], options["migrate_secrets"], options["workspace_target"],
        options["skill_conflict"],
    )  # fmt: skip
    if wishes.migrate_secrets and wishes.preset == "user-data":
        raise click.UsageError("--preset user-data never moves secrets; say --preset full with --migrate-secrets.")
    OpenClawMigration(
        Invocation.current(),
        wishes,
        where=options["where"],
        agent=options["agent"],
        dry_run=options["dry_run"] or bool(given.get("dry_run")),
        yes=options["yes"] or bool(given.get("yes")),
        backup=not options["no_backup"],
        sessions=not options["no_sessions"],
    ).go()


@command.command()
@click.option("--source", "where", type=_DIRECTORY, help="The directory to put aside; by default every one there is.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; rename nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@memory_options
def cleanup(where: Path | None, dry_run: bool, yes: bool) -> None:
    """Put OpenClaw's directory aside: it is renamed to <directory>.pre-migration, and nothing in it is touched."""
    clean_up(Invocation.current(), where, dry_run=dry_run, yes=yes)
