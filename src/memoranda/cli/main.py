"""The `memoranda` command: loads only the subcommand that is called, and suggests names for a misspelt one."""

import re
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from memoranda import __version__
from memoranda.cli.context import EXIT_REFUSED, EXIT_UNUSABLE, REMOTE_RUNNER, Invocation, memory_options
from memoranda.cli.lazy_group import LazyGroup
from memoranda.errors import MemorandaError
from memoranda.home.config import colour_choice
from memoranda.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "setup": ("memoranda.cli.setup", "Find the agents on this machine, import from them, and give them memory."),
    "remember": ("memoranda.cli.memory.entries:remember", "Save a fact."),
    "recall": ("memoranda.cli.retrieval.recall", "Search notes and conversations at once, for you or for a prompt."),
    "memory": ("memoranda.cli.memory", "See and change what the agent remembers."),
    "curate": ("memoranda.cli.memory.curate", "See what to tidy up in memory, and do it."),
    "forget": ("memoranda.cli.upkeep.forget", "Forget a text, a conversation, an entry or a user, everywhere."),
    "search": ("memoranda.cli.retrieval.search", "Search every past conversation."),
    "browse": ("memoranda.cli.retrieval.browse", "Find, read and resume a past conversation in the terminal."),
    "recent": ("memoranda.cli.retrieval.recent", "See what was going on: the last conversations of a project."),
    "sessions": ("memoranda.cli.sessions", "See, name, archive, export and delete past conversations."),
    "view": ("memoranda.cli.service.serve:view", "See your memory in the browser."),
    "chat": ("memoranda.cli.chat", "Talk to an agent that remembers."),
    "import": ("memoranda.cli.imports", "Import conversations and memories of other programs."),
    "install": ("memoranda.cli.hosts.install", "Give memory to Claude Code, Codex, Cursor and others."),
    "uninstall": ("memoranda.cli.hosts.install:uninstall", "Remove memory from one of these programs."),
    "hook": ("memoranda.cli.hooks.command", "Answer an event of a host (called by the host)."),
    "mcp": ("memoranda.cli.service.mcp", "Offer memory to any program that speaks MCP."),
    "serve": ("memoranda.cli.service.serve", "Serve the home over HTTP to programs on any machine."),
    "key": ("memoranda.cli.service.key", "Create, list and revoke the API keys of the HTTP service."),
    "skills": ("memoranda.cli.skills", "See and change the procedures the agent follows."),
    "semantic": ("memoranda.cli.retrieval.semantic", "Search by meaning as well: see what it uses, build its index."),
    "usage": ("memoranda.cli.usage", "See what models cost, and what is left of the budget."),
    "eval": ("memoranda.cli.retrieval.evaluation", "Measure models on your own conversations."),
    "provider": ("memoranda.cli.provider", "Use an external memory in addition to the built-in one."),
    "doctor": ("memoranda.cli.upkeep.doctor", "Check the home and fix what is wrong."),
    "shards": ("memoranda.cli.upkeep.servers:shards", "See which server has which users of a fleet, and move them."),
    "backup": ("memoranda.cli.upkeep.backup:backup", "Write the whole home into one verified file."),
    "restore": ("memoranda.cli.upkeep.backup:restore", "Restore a home from a backup."),
    "sync": ("memoranda.cli.upkeep.sync", "Keep several machines the same through a shared folder."),
    "migrate": ("memoranda.cli.upkeep.servers:migrate", "Copy a home to a PostgreSQL server, or back."),
    "config": ("memoranda.cli.config", "See and change the settings."),
    "secret": ("memoranda.cli.config:secret", "Store API keys in .env; values are never printed."),
    "profile": ("memoranda.cli.config:profile", "List the profiles of a home."),
    "completion": ("memoranda.cli.completion", "Print the completion script for bash, zsh or fish."),
    "demo": ("memoranda.cli.demo", "Watch memory and search at work in a temporary home."),
}
_EPILOG = """\b
Examples:
  memoranda setup
  memoranda remember "Project uses pytest with xdist."
  memoranda remember --target user "Prefers concise answers."
  memoranda memory list
  memoranda search "how did we fix the build?" --since 30d
  memoranda sessions list
  memoranda doctor
"""


class _AllCommands(LazyGroup):
    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        # Without loading the commands, which takes a second.
        names = [(name, text) for name, (_, text) in _COMMANDS.items() if name.startswith(incomplete)]
        return [CompletionItem(name, help=text) for name, text in names] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (MemorandaError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            Invocation.current().fail(str(error), code=EXIT_UNUSABLE)
        except (click.ClickException, click.Abort) as error:
            if isinstance(error, click.UsageError):
                error = with_suggestion(error)
            if not Invocation.current().as_json:
                raise error from None
            message = error.format_message() if isinstance(error, click.ClickException) else "Aborted."
            code = error.exit_code if isinstance(error, click.ClickException) else EXIT_REFUSED
            Invocation.current().fail(message, code=code)


@click.group(
    cls=_AllCommands,
    functions={name: function for name, (function, _) in _COMMANDS.items()},
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="memoranda")
@memory_options
def command() -> None:
    """A memory for AI agents: small files that the agent curates, and every conversation, recorded and searchable."""
    context = click.get_current_context()
    context.color = colour_choice()
    context.meta[REMOTE_RUNNER] = _run_remotely


def _run_remotely(*arguments: Any) -> Any:
    from memoranda.cli.remote import run_remotely  # noqa: PLC0415

    return run_remotely(*arguments)


def main() -> None:
    """Runs the command. Output that is no longer read, or that the terminal cannot encode, is not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        command(prog_name="memoranda")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def with_suggestion(error: click.UsageError) -> click.UsageError:
    """Returns the error with the names that may have been meant."""
    quoted = re.search(r"'([^']*)'", error.message)
    if quoted is None or "Did you mean" in error.format_message():
        return error
    suggestion = did_you_mean(quoted[1], _known_names(error))
    if not suggestion:
        return error
    message = error.message + suggestion
    if isinstance(error, click.BadParameter):
        return click.BadParameter(message, error.ctx, error.param, error.param_hint)
    return click.UsageError(message, error.ctx)


def _known_names(error: click.UsageError) -> list[str]:
    if isinstance(error, click.BadParameter):
        kind = error.param.type if error.param else None
        return list(map(str, kind.choices)) if isinstance(kind, click.Choice) else []
    group = error.ctx.command if error.ctx else None
    if error.ctx and isinstance(group, click.Group) and "command" in error.message:
        return group.list_commands(error.ctx)
    return []
