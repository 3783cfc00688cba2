"""`memoranda provider run`: runs one of the provider's own commands."""

import argparse
import io
import sys
from contextlib import redirect_stdout
from typing import Any

import click

from memoranda.cli.context import EXIT_REFUSED, Invocation, common_options
from memoranda.cli.provider.output import find_provider, owned_home, require_one, stdout_to_stderr
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError
from memoranda.external.guarded_call import CallResult, PendingCall
from memoranda.external.loading.loader import PluginCommands, load_commands, run_guarded
from memoranda.home import config

_POLL_SECONDS = 0.2


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--provider", "provider_name", help="The provider, where several are in use.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@common_options
def run(provider_name: str | None, arguments: tuple[str, ...]) -> None:
    """Run one of the provider's own commands. '-- --help' lists them.

    With --json, "output" contains what the command prints.
    """
    invocation = Invocation.current()
    try:
        name, commands, parser = _load_commands(invocation, provider_name)
    except ProviderError as error:
        invocation.fail(terminal_line(str(error)))
    printed = io.StringIO()
    if invocation.as_json:
        with stdout_to_stderr(), redirect_stdout(printed):
            result = _run(name, commands, parser, arguments)
        code = result.value if result.ok else EXIT_REFUSED
        data = {"success": result.ok and code == 0, "exit_code": code, "output": printed.getvalue()}
        invocation.respond("", data if result.ok else data | {"error": terminal_line(result.error)})
    else:
        result = _run(name, commands, parser, arguments)
        if not result.ok:
            invocation.fail(f"{name} failed: {terminal_line(result.error)}")
        code = result.value
    sys.exit(code)


def _load_commands(invocation: Invocation, chosen: str | None) -> tuple[str, PluginCommands, argparse.ArgumentParser]:
    home = owned_home(invocation)
    name = require_one(home, chosen, "--provider NAME")
    found = find_provider(home, name)
    seconds, setting = config.load(home).external.start_seconds, "provider.start_seconds"
    parser = argparse.ArgumentParser(prog="memoranda provider run --")
    with stdout_to_stderr():
        commands: PluginCommands = run_guarded(
            lambda: load_commands(found, home.root), f"The commands of {name} cannot be used", seconds, setting
        )
        run_guarded(lambda: commands.register(parser), f"The commands of {name} cannot be used", seconds, setting)
    return name, commands, parser


def _run(
    name: str, commands: PluginCommands, parser: argparse.ArgumentParser, arguments: tuple[str, ...]
) -> CallResult:
    """Return the exit code of a command, or an error. It has no time limit; the user can interrupt it."""

    def call() -> int:
        try:
            parsed = parser.parse_args(list(arguments))
            handler: Any = getattr(parsed, "func", None) or commands.handler
            if handler is None:
                raise ProviderError(f"{name} does not say how its commands are run.")
            code = handler(parsed)
        except SystemExit as request:
            code = request.code
            if isinstance(code, str):
                print(code, file=sys.stderr)
                return EXIT_REFUSED
        return code if isinstance(code, int) and not isinstance(code, bool) else 0

    pending = PendingCall(call, f"memoranda-{name}-run")
    while (result := pending.wait(_POLL_SECONDS)) is None:
        pass
    return result


COMMANDS = (run,)
