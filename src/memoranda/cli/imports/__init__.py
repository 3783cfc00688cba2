"""`memoranda import`: bring along what was said in other programs."""

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.imports.found_sources import find_all_sources, find_source
from memoranda.cli.imports.workflow import ImportOptions, import_options, import_options_from, run_import
from memoranda.importers.sources import SOURCES

_EPILOG = """\b
Examples:
  memoranda import                        # what is there on this machine
  memoranda import claude-code --dry-run  # what would be imported, and nothing else
  memoranda import claude-code
  memoranda import --all --yes
  memoranda import jsonl --source messages.jsonl
  memoranda import claude-code --yes --follow
"""
# Programs with more to bring along than transcripts have commands of their own.
_OWN_COMMANDS: dict[str, str] = {
    "hermes": "memoranda.cli.imports.hermes",
    "openclaw": "memoranda.cli.imports.openclaw",
}


class _Sources(click.Group):
    """One command per program; all but a few are the same."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*SOURCES, *_OWN_COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _OWN_COMMANDS:
            own = import_module(_OWN_COMMANDS[cmd_name]).command
            assert isinstance(own, click.Command)
            return own
        return _command(cmd_name) if cmd_name in SOURCES else None


@click.group(cls=_Sources, epilog=_EPILOG, invoke_without_command=True)
@click.option("--all", "take_all", is_flag=True, help="Everything that is found on this machine; asks once.")
@import_options
@memory_options
@click.pass_context
def command(context: click.Context, /, take_all: bool, **options: Any) -> None:
    """Import the conversations that you had with other programs; without a name, see what is there.

    What would happen is shown first, and nothing is written before you say yes. A second import adds nothing but what
    is new. The other programs' files are only read.
    """
    if context.invoked_subcommand is not None:
        if take_all:
            raise click.UsageError("Name one program, or --all of them.")
        return
    invocation = Invocation.current()
    findings = find_all_sources()
    if take_all:
        run_import(invocation, findings, ImportOptions(**options))
    elif not findings:
        invocation.respond(
            "Nothing of the known programs was found here. Name a place: 'memoranda import NAME --source PATH'.",
            {"success": True, "found": []},
        )
    else:
        lines = [f"{each.source.program} ({each.source.name}): {each.summary}" for each in findings]
        lines += ["", "Import one of them with 'memoranda import NAME', or all with 'memoranda import --all'."]
        invocation.respond("\n".join(lines), {"success": True, "found": [each.as_json() for each in findings]})
    more = [each.source.name for each in findings if each.source.name in _OWN_COMMANDS]
    if more and not invocation.as_json:
        named = " and ".join(f"'memoranda import {name}'" for name in more)
        click.echo(f"Memories and skills come along with {named}; --all brings conversations.")


def _command(name: str) -> click.Command:
    """The command that imports from one program."""
    source = SOURCES[name]

    @click.command(name=name, help=source.help)
    @click.option(
        "--source", "where", type=click.Path(exists=True, path_type=Path),
        help="A file or directory, instead of the program's own place.", required=name == "jsonl",
    )  # fmt: skip
    @import_options
    @memory_options
    @click.pass_context
    def importing(context: click.Context, /, where: Path | None, **options: Any) -> None:
        run_import(Invocation.current(), [find_source(source, where)], import_options_from(context, options))

    return importing
