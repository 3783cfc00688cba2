"""Commands that a provider brings itself: `run`."""

import argparse
import io
import sys
from contextlib import redirect_stdout
from typing import Any

import click

from memoranda.cli.context import EXIT_REFUSED, Invocation, common_options
from memoranda.cli.provider.output import active_provider, find_provider, owned_home, stdout_to_stderr
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError
from memoranda.providers.guarded_call import CallResult, PendingCall
from memoranda.providers.inspect_provider import run_guarded
from memoranda.providers.loader import PluginCommands, load_commands
from memoranda.providers.settings import ProviderSettings

_A_WHILE = 0.2


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@common_options
def run(arguments: tuple[str, ...]) -> None:
    """Run a command of the active provider's own, if it brings some. '-- --help' shows them.

    With --json what it prints is in "output".
    """
    invocation = Invocation.current()
    try:
        name, commands, parser = _commands(invocation)
    except ProviderError as error:
        invocation.fail(terminal_line(str(error)))
    printed = io.StringIO()
    if invocation.as_json:
        with stdout_to_stderr(), redirect_stdout(printed):
            answer = _run(name, commands, parser, arguments)
        code = answer.value if answer.ok else EXIT_REFUSED
        data = {"success": answer.ok and code == 0, "exit_code": code, "output": printed.getvalue()}
        invocation.respond("", data if answer.ok else data | {"error": terminal_line(answer.error)})
    else:
        answer = _run(name, commands, parser, arguments)
        if not answer.ok:
            invocation.fail(f"{name} failed: {terminal_line(answer.error)}")
        code = answer.value
    sys.exit(code)


def _commands(invocation: Invocation) -> tuple[str, PluginCommands, argparse.ArgumentParser]:
    home = owned_home(invocation)
    name = active_provider(home)
    if not name:
        raise ProviderError("No provider is in use.")
    found = find_provider(home, name)
    seconds = ProviderSettings().start_seconds
    parser = argparse.ArgumentParser(prog="memoranda provider run --")
    with stdout_to_stderr():
        commands: PluginCommands = run_guarded(
            lambda: load_commands(found, home.root), f"The commands of {name} cannot be used", seconds
        )
        run_guarded(lambda: commands.register(parser), f"The commands of {name} cannot be used", seconds)
    return name, commands, parser


def _run(
    name: str, commands: PluginCommands, parser: argparse.ArgumentParser, arguments: tuple[str, ...]
) -> CallResult:
    """An exit code, or why there is none. It may take as long as it likes; the person can interrupt it."""

    def call() -> int:
        try:
            parsed = parser.parse_args(list(arguments))
            handler: Any = getattr(parsed, "func", None) or commands.handler
            if handler is None:
                raise ProviderError(f"{name} says nothing about how its commands are run.")
            result = handler(parsed)
        except SystemExit as left:
            result = left.code
            if isinstance(result, str):
                print(result, file=sys.stderr)
                return EXIT_REFUSED
        return result if isinstance(result, int) and not isinstance(result, bool) else 0

    pending = PendingCall(call, f"memoranda-{name}-run")
    while (answer := pending.wait(_A_WHILE)) is None:
        pass
    return answer


COMMANDS = (run,)
