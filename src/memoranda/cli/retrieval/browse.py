"""`memoranda browse`: find a past conversation in the terminal, read it, and resume it in its agent."""

import os
import subprocess
import sys
from dataclasses import asdict
from typing import Any, NoReturn

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import project_option, resolve_projects, since_option
from memoranda.cli.open_home import open_home
from memoranda.cli.retrieval.found_conversations import FoundConversations
from memoranda.cli.terminal_text import terminal_line, uses_colour


def run_in_place(command: str) -> NoReturn:
    """Run a command of `resume_command`, whose parts are quoted for a shell, in place of this process."""
    if sys.platform == "win32":
        sys.exit(subprocess.call(command, shell=True))
    sys.stdout.flush()
    os.execl("/bin/sh", "sh", "-c", command)


_EMPTY = (
    "There are no conversations yet. 'memoranda setup' imports those of the agents on this machine, and "
    "'memoranda demo' shows what Memoranda does with them."
)
_EPILOG = """\b
Examples:
  memoranda browse
  memoranda browse deadlock --agent claude-code
  memoranda browse --project this --json
"""


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1)
@click.option("--agent", help="Only conversations of this agent: claude-code, codex, cli …")
@click.option("-n", "--limit", type=click.IntRange(1, 50), default=50, show_default=True, help="How many to list.")
@project_option
@since_option
@memory_options
def command(invocation: Invocation, words: tuple[str, ...], limit: int, project: str | None, **filters: Any) -> None:
    """Find a conversation: type to search, arrow keys to choose, Enter to read, Ctrl-O to resume it in its agent."""
    if not invocation.as_json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        invocation.fail(
            "'memoranda browse' needs a terminal. Use 'memoranda search WORDS' or 'memoranda sessions list', "
            "or add --json."
        )
    with open_home(invocation) as memory:
        projects = None if project is None else resolve_projects(invocation, memory.sessions, project)
        found = FoundConversations(memory, limit, project=project, projects=projects, **filters)
        query = " ".join(words)
        if invocation.as_json:
            rows: list[dict[str, Any]] = [asdict(row) for row in found.find(query)]
            invocation.respond("", {"query": query, "conversations": rows})
            return
        if not memory.sessions.session_count():
            click.echo(_EMPTY)
            return
        # Not loaded for the list as JSON.
        from memoranda.cli.retrieval.picker import Picker  # noqa: PLC0415

        chosen = Picker(found, query, coloured=uses_colour()).run()
    if chosen is not None:
        click.echo(f"resume: {terminal_line(chosen)}")
        run_in_place(chosen)
