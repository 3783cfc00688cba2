"""The `memoranda` command: loads only the subcommand that is called, and suggests names for a misspelt one."""

import os
import re
import sys
from dataclasses import replace
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from memoranda import __version__
from memoranda.cli.context import (
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    EXIT_UNUSABLE,
    REMOTE_RUNNER,
    Invocation,
    common_options,
    memory_options,
)
from memoranda.cli.lazy_group import LazyGroup
from memoranda.errors import MemorandaError
from memoranda.home.config import colour_choice
from memoranda.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_EVERY_DAY, _AGENTS, _CARE, _TEAM = "Every day", "Agents", "Care", "Team"
GROUPS = {
    _EVERY_DAY: {
        "setup": ("memoranda.cli.setup", "Find the agents on this machine, import from them, and give them memory."),
        "status": ("memoranda.cli.memory.status", "See how full and old memory is, and what awaits your decision."),
        "remember": ("memoranda.cli.memory.entries:remember", "Save a fact."),
        "memory": ("memoranda.cli.memory", "See and change what the agent remembers."),
        "recall": ("memoranda.cli.retrieval.recall", "Search memory and conversations at once, as for a prompt."),
        "search": ("memoranda.cli.retrieval.search", "Search every past conversation."),
        "recent": ("memoranda.cli.retrieval.recent", "See what was going on: the last conversations of a project."),
        "sessions": ("memoranda.cli.sessions", "See, name, archive, export and delete past conversations."),
        "browse": ("memoranda.cli.retrieval.browse", "Find, read and resume a past conversation in the terminal."),
        "view": ("memoranda.cli.service.serve:view", "See your memory in the browser."),
        "chat": ("memoranda.cli.chat", "Talk to an agent that remembers."),
        "forget": ("memoranda.cli.upkeep.forget", "Forget a text, a conversation, an entry or a user, everywhere."),
    },
    _AGENTS: {
        "import": ("memoranda.cli.imports", "Import conversations and memories of other programs."),
        "install": ("memoranda.cli.hosts.install", "Give memory to Claude Code, Codex, Cursor and others."),
        "uninstall": ("memoranda.cli.hosts.install:uninstall", "Remove memory from one of these programs."),
        "hook": ("memoranda.cli.hooks.command", "Answer a program's events; 'hook status' shows what prompts got."),
        "mcp": ("memoranda.cli.service.mcp", "Offer memory to any program that speaks MCP."),
        "skills": ("memoranda.cli.skills", "See and change the procedures the agent follows."),
        "provider": ("memoranda.cli.provider", "Use an external memory in addition to the built-in one."),
        "semantic": ("memoranda.cli.retrieval.semantic", "Search by meaning too: see what it uses, build its index."),
        "usage": ("memoranda.cli.usage", "See what models cost, and what is left of the budget."),
        "eval": ("memoranda.cli.retrieval.evaluation", "Measure models on your own conversations."),
    },
    _CARE: {
        "curate": ("memoranda.cli.memory.curate", "See what to tidy up in memory, and do it."),
        "doctor": ("memoranda.cli.upkeep.doctor", "Check the home and fix what is wrong."),
        "backup": ("memoranda.cli.upkeep.backup:backup", "Write the whole home into one verified file."),
        "restore": ("memoranda.cli.upkeep.backup:restore", "Restore a home from a backup."),
        "sync": ("memoranda.cli.upkeep.sync", "Keep several machines the same through a shared folder."),
        "config": ("memoranda.cli.config", "See and change the settings."),
        "secret": ("memoranda.cli.config:secret", "Store API keys in .env; values are never printed."),
        "profile": ("memoranda.cli.config:profile", "List the profiles of a home."),
        "completion": ("memoranda.cli.completion", "Print the completion script for bash, zsh or fish."),
        "demo": ("memoranda.cli.demo", "Watch memory and search at work in a temporary home."),
    },
    _TEAM: {
        "server": ("memoranda.cli.main:server", "Serve a home to a team: serve, key, shards, migrate."),
    },
}
"""Each group with its commands, and each command with its module and a line about it."""
_COMMANDS = {name: row for commands in GROUPS.values() for name, row in commands.items()}
SERVER_COMMANDS = {
    "serve": "memoranda.cli.service.serve",
    "key": "memoranda.cli.service.key",
    "shards": "memoranda.cli.upkeep.servers:shards",
    "migrate": "memoranda.cli.upkeep.servers:migrate",
}
"""The commands of `memoranda server`; each is a command of `memoranda` itself, too."""
# Other names of commands.
_HIDDEN = {
    "help": "memoranda.cli.main:show_help",
    "export": "memoranda.cli.sessions.transfer:export",
    **SERVER_COMMANDS,
}
# What people type who know other programs, where no command is spelt like it.
_GUESSES = {
    "remember": ("add", "save", "note"),
    "memory list": ("list", "ls", "show", "notes"),
    "memory log": ("log", "history"),
    "memory undo": ("undo",),
    "memory remove": ("rm", "delete", "remove"),
    "search": ("find",),
    "recall": ("ask",),
    "browse": ("resume",),
}
_WANTS_JSON = "memoranda.wants_json"
_EPILOG = """\b
Examples:
  memoranda setup
  memoranda remember "Project uses pytest with xdist."
  memoranda search "how did we fix the build?" --since 30d
"""
_SERVER_EPILOG = """\b
Examples:
  memoranda server serve                                     on this machine only, without a key
  memoranda server key create --scope read --scope append
"""


class _AllCommands(LazyGroup):
    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        # Without loading the commands, which takes a second.
        names = [(name, text) for name, (_, text) in _COMMANDS.items() if name.startswith(incomplete)]
        return [CompletionItem(name, help=text) for name, text in names] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_group(formatter, _EVERY_DAY)
        others = [(group, ", ".join(commands)) for group, commands in GROUPS.items() if group != _EVERY_DAY]
        with formatter.section("More commands; 'memoranda help care' says what they do"):
            formatter.write_dl(others)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A usage error is found before the options of a command are read.
        ctx.meta[_WANTS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (MemorandaError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            message = str(error)
            if isinstance(error, OSError) and error.filename and error.strerror:
                message = f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}."
            Invocation.current().fail(message, code=EXIT_UNUSABLE)
        except KeyboardInterrupt:
            Invocation.current().fail("Interrupted.", code=EXIT_INTERRUPTED)
        except (click.ClickException, click.Abort) as error:
            # click hides that Ctrl-C, and not the end of the input, was the answer to a question.
            if isinstance(error.__context__, KeyboardInterrupt):
                Invocation.current().fail("Interrupted.", code=EXIT_INTERRUPTED)
            if isinstance(error, click.UsageError):
                error = with_suggestion(error)
            invocation = Invocation.current()
            if isinstance(error, click.UsageError) and ctx.meta[_WANTS_JSON]:
                invocation = replace(invocation, as_json=True)
            if not invocation.as_json:
                raise error from None
            message = error.format_message() if isinstance(error, click.ClickException) else "Aborted."
            code = error.exit_code if isinstance(error, click.ClickException) else EXIT_REFUSED
            invocation.fail(message, code=code)


@click.group(
    cls=_AllCommands,
    functions={name: function for name, (function, _) in _COMMANDS.items()} | _HIDDEN,
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


@click.group(cls=LazyGroup, functions=SERVER_COMMANDS, epilog=_SERVER_EPILOG)
@common_options
def server() -> None:
    """Serve a home to a team: serve it over HTTP, give keys, move users between servers, copy it to PostgreSQL."""


def write_group(formatter: click.HelpFormatter, group: str) -> None:
    """Writes the commands of a group, each with a line about it."""
    with formatter.section(group):
        formatter.write_dl([(name, summary) for name, (_, summary) in GROUPS[group].items()])


@click.command("help")
@click.argument("names", metavar="[GROUP | COMMAND…]", nargs=-1)
@common_options
def show_help(invocation: Invocation, names: tuple[str, ...]) -> None:
    """Show the commands of a group (agents, care, team), of all groups, or the help of one command."""
    context = click.get_current_context()
    groups = {group.lower(): group for group in GROUPS}
    chosen = [groups[name] for name in names if name in groups] if names else list(GROUPS)
    if chosen:
        formatter = context.make_formatter()
        for group in chosen:
            write_group(formatter, group)
        text = formatter.getvalue().strip("\n")
        invocation.respond(text, {"success": True, "help": text})
        return
    described = context.find_root()
    for name in names:
        if isinstance(described.command, click.Group):
            _, found, _ = described.command.resolve_command(described, [name])
            assert found is not None
            described = click.Context(found, info_name=name, parent=described)
    text = described.get_help()
    invocation.respond(text, {"success": True, "help": text})


def _run_remotely(*arguments: Any) -> Any:
    from memoranda.cli.remote import run_remotely  # noqa: PLC0415

    return run_remotely(*arguments)


def main() -> None:
    """Runs the command. Output that is no longer read, or that the terminal cannot encode, is not an error."""
    if sys.stdin is None:
        # It is closed. An empty one has no answer to a question.
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
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
    if not suggestion and error.message.startswith("No such command"):
        suggestion = _guess(error, quoted[1])
    if not suggestion:
        return error
    message = error.message + suggestion
    if isinstance(error, click.BadParameter):
        return click.BadParameter(message, error.ctx, error.param, error.param_hint)
    return click.UsageError(message, error.ctx)


def _guess(error: click.UsageError, typed: str) -> str:
    """Suggests what people mean who know other programs; within a group of commands, one of the group."""
    meant = next((name for name, words in _GUESSES.items() if typed in words), "")
    if meant and error.ctx is not None and error.ctx.parent is not None:
        words = (meant.split()[-1], *_GUESSES[meant])
        found = [word for word in _known_names(error) if word in words]
        group = error.ctx.command_path.partition(" ")[2]
        return f" Did you mean 'memoranda {group} {found[0]}'?" if found else ""
    return f" Did you mean 'memoranda {meant}'?" if meant else ""


def _known_names(error: click.UsageError) -> list[str]:
    if isinstance(error, click.BadParameter):
        kind = error.param.type if error.param else None
        return list(map(str, kind.choices)) if isinstance(kind, click.Choice) else []
    group = error.ctx.command if error.ctx else None
    if error.ctx and isinstance(group, click.Group) and "command" in error.message:
        return group.list_commands(error.ctx)
    return []
