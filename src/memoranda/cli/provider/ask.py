"""`memoranda provider ask` and `call`: what the external memory tells a model, and what is withheld from it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click

from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.provider.output import CommandOutput, provider_command
from memoranda.cli.terminal_text import bold
from memoranda.errors import ProviderError
from memoranda.home import config
from memoranda.safety.withheld_passages import WithheldPassage

# A library that runs in this process takes up to half a minute to load on a busy machine.
_ASK_SECONDS = 60.0

_provider_option = click.option("--provider", "provider_name", default="", help="Only this provider.")
_withheld_option = click.option(
    "--withheld", "show_withheld", is_flag=True, help="Also print what is withheld from models."
)


@click.command()
@click.argument("words", nargs=-1, required=True)
@_provider_option
@_withheld_option
@memory_options
@provider_command
def ask(invocation: Invocation, words: tuple[str, ...], provider_name: str, show_withheld: bool) -> CommandOutput:
    """Ask the providers in use what they recall about a question, as before a turn, but wait up to a minute."""
    with _session(invocation, provider_name) as session:
        recalled = session.external.recall_for_person(" ".join(words), session.id, provider_name)
    data = {"success": True, "recalled": recalled.value}
    return _output(data, recalled.value or "Nothing was recalled.", recalled.passages, show_withheld)


@click.command()
@click.argument("tool")
@click.argument("arguments", default="{}")
@_provider_option
@_withheld_option
@memory_options
@provider_command
def call(invocation: Invocation, tool: str, arguments: str, provider_name: str, show_withheld: bool) -> CommandOutput:
    """Call a tool of a provider in use as a model does. ARGUMENTS is a JSON object."""
    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise ProviderError(f"The arguments are not JSON: {error}.") from error
    if not isinstance(given, dict):
        raise ProviderError('The arguments must be a JSON object, such as \'{"query": "tea"}\'.')
    with _session(invocation, provider_name) as session:
        answer = session.external.answer_tool(tool, given, provider_name)
    text = json.dumps(answer.json, ensure_ascii=False, indent=2)
    return _output(answer.json, text, answer.withheld, show_withheld, ok=answer.json["success"] is True)


@contextmanager
def _session(invocation: Invocation, provider: str) -> Iterator[Session]:
    """Start the providers for a session that is never recorded."""
    home = config.locate_home(invocation.home, invocation.profile)
    home.refuse_if_foreign()
    with Memory(home, _wait_longer(config.load(home)), invocation.user) as memory:
        in_use = memory.config.providers
        if not in_use:
            raise ProviderError("No provider is in use. 'memoranda provider setup' chooses one.")
        if provider and provider not in in_use:
            raise ProviderError(f"{provider} is not in use; in use: {', '.join(in_use)}.")
        session = memory.session(source="cli")
        try:
            yield session
        finally:
            session.external.close()


def _wait_longer(settings: config.Config) -> config.Config:
    """The configuration with more time than a turn has: a person wants the answer, also while a library is loading."""
    external = settings.external
    external = replace(
        external,
        recall_seconds=max(external.recall_seconds, _ASK_SECONDS),
        begin_seconds=max(external.begin_seconds, external.start_seconds),
    )
    return replace(settings, external=external)


def _output(
    data: dict[str, Any], text: str, passages: Sequence[WithheldPassage], show_withheld: bool, *, ok: bool = True
) -> CommandOutput:
    lines = [printable(line) for line in text.split("\n")]
    if show_withheld:
        data = data | {
            "withheld_passages": [{"findings": passage.findings, "text": passage.text} for passage in passages]
        }
        lines += ["", bold("Withheld from models") if passages else "Nothing was withheld."]
        for passage in passages:
            lines += [f"  {', '.join(passage.findings)}:"]
            lines += [f"    {printable(line)}" for line in passage.text.split("\n")]
    elif passages:
        lines.append("A part is withheld from models; --withheld prints it.")
    return CommandOutput("\n".join(lines), data, ok)


COMMANDS = (ask, call)
