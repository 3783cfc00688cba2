"""`memoranda import`: imports conversations of other programs."""

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.imports.workflow import ImportOptions, find_all_sources, find_source, import_options, run_import
from memoranda.cli.sessions.transfer import import_exported, read_sessions
from memoranda.importers.sources import SOURCES

_EPILOG = """\b
Examples:
  memoranda import                        # what was found on this machine
  memoranda import claude-code --dry-run  # what would be imported, and nothing else
  memoranda import claude-code
  memoranda import --all --yes
  memoranda import jsonl --source messages.jsonl
  memoranda import claude-code --yes --follow
  memoranda import undo                   # earlier imports, and how to undo one
"""
# Programs with more to import than conversations have their own commands, and so has the way back.
_OWN_COMMANDS: dict[str, str] = {
    "hermes": "memoranda.cli.imports.hermes",
    "openclaw": "memoranda.cli.imports.openclaw",
    "undo": "memoranda.cli.imports.undo",
}


class _SourceCommands(click.Group):
    """One command per program; most of them are the same."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*SOURCES, *_OWN_COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _OWN_COMMANDS:
            own = import_module(_OWN_COMMANDS[cmd_name]).command
            assert isinstance(own, click.Command)
            return own
        return _command(cmd_name) if cmd_name in SOURCES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a program; the error for an unknown name lists what can be imported."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            known = ", ".join(sorted(SOURCES))
            message = f"{error.message} These programs can be imported: {known}."
            raise click.UsageError(message, error.ctx) from error


@click.group(cls=_SourceCommands, epilog=_EPILOG, invoke_without_command=True)
@click.option("--all", "import_all", is_flag=True, help="Everything that is found on this machine; asks once.")
@import_options
@memory_options
@click.pass_context
def command(context: click.Context, /, import_all: bool, **options: Any) -> None:
    """Import the conversations that you had with other programs; without a name, list what was found.

    The command first shows what would happen, and writes nothing before you agree. A second import adds only what is
    new. The files of the other programs are only read.
    """
    if context.invoked_subcommand is not None:
        if import_all:
            raise click.UsageError("Name one program or use --all, not both.")
        return
    invocation = Invocation.current()
    sources = find_all_sources()
    if import_all:
        run_import(invocation, sources, ImportOptions.from_context(context, options))
    elif not sources:
        invocation.respond(
            "No conversations of a known program were found. Name a path: 'memoranda import NAME --source PATH'.",
            {"success": True, "found": []},
        )
    else:
        lines = [f"{found.source.program} ({found.source.name}): {found.description}" for found in sources]
        lines += ["", "Import one of them with 'memoranda import NAME', or all with 'memoranda import --all'."]
        invocation.respond("\n".join(lines), {"success": True, "found": [found.as_json() for found in sources]})
    with_more = [found.source.name for found in sources if found.source.name in _OWN_COMMANDS]
    if with_more and not invocation.as_json:
        commands = " and ".join(f"'memoranda import {name}'" for name in with_more)
        click.echo(f"{commands} also import memories and skills; --all imports only conversations.")


def _command(name: str) -> click.Command:
    """Build the command that imports from one program."""
    source = SOURCES[name]

    @click.command(name=name, help=source.help)
    @click.option(
        "--source",
        "path",
        type=click.Path(exists=True, path_type=Path),
        help="A file or directory, instead of the program's own.",
        required=source.needs_path,
    )
    @import_options
    @memory_options
    @click.pass_context
    def import_command(context: click.Context, invocation: Invocation, /, path: Path | None, **options: Any) -> None:
        selected = ImportOptions.from_context(context, options)
        if name == "jsonl" and path is not None and not selected.follow and _is_export(path):
            _import_exported(invocation, path, selected)
        else:
            run_import(invocation, [find_source(source, path)], selected)

    return import_command


def _is_export(path: Path) -> bool:
    """Whether the first value in a file is a session with its messages."""
    first = next(read_sessions(path, []), None) if path.is_file() else None
    return isinstance(first, dict) and "id" in first and isinstance(first.get("messages"), list)


def _import_exported(invocation: Invocation, path: Path, options: ImportOptions) -> None:
    """Imports exported sessions after showing how many there are, like every other import."""
    sessions = messages = 0
    for session in read_sessions(path, []):
        if isinstance(session, dict):
            sessions += 1
            messages += len(session.get("messages") or ())
    text = f"{path} was exported from Memoranda: {sessions:,} sessions with {messages:,} messages."
    data = {"success": True, "applied": False, "sessions": sessions, "messages": messages}
    planned = PlannedChange(text, data, "Import this?", "Nothing was written. Add --yes to import this.")
    confirm_and_run(
        invocation, planned, lambda: import_exported(invocation, path), dry_run=options.dry_run, yes=options.yes
    )
