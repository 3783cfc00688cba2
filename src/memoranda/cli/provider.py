"""`memoranda provider`: which external memory is in use, and how it is."""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from memoranda import config
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.text import bold, dim, local_time, wrapped
from memoranda.errors import ProviderError
from memoranda.providers.discovery import Candidate, discover
from memoranda.providers.loading import load, load_commands
from memoranda.providers.manager import MemoryManager
from memoranda.providers.provider import MemoryProvider, has_own
from memoranda.providers.setup import Field, check, fields_of, read_settings, save
from memoranda.providers.status import keep, kept
from memoranda.safety.fence import sanitize_context
from memoranda.support.home import Home

_EPILOG = """\b
Examples:
  memoranda provider list
  memoranda provider setup holographic
  memoranda provider status
  memoranda provider off
"""
_BUILT_IN = "built-in only"


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """See, set up, test and switch off the external memory."""


def _place(invocation: Invocation) -> Home:
    """The home that was named, unless another program owns it."""
    home = invocation.place()
    home.refuse_if_foreign()
    return home


def _active(home: Home) -> str:
    return config.load(home).provider


def _candidate(invocation: Invocation, home: Home, name: str) -> Candidate:
    found = discover(home.root)
    if name not in found:
        invocation.refuse(f"There is no provider {name!r}. There are: {', '.join(found) or 'none'}.")
    return found[name]


@command.command("list")
@common_options
def list_providers() -> None:
    """List the providers there are; none of their code is run."""
    invocation = Invocation.current()
    home = _place(invocation)
    found, active = discover(home.root), _active(home)
    lines = [f"{'*' if not active else ' '} {bold(_BUILT_IN)}"]
    for each in found.values():
        about = (each.problem and f"cannot be used: {each.problem}") or each.description
        lines.append(f"{'*' if each.name == active else ' '} {bold(each.name)}  {dim(each.origin)}  {wrapped(about)}")
        lines += [dim(f"    hides {wrapped(other)}") for other in each.shadows]
    data = [
        {"name": each.name, "origin": each.origin, "description": each.description, "problem": each.problem or None,
         "active": each.name == active, "shadows": list(each.shadows)}
        for each in found.values()
    ]  # fmt: skip
    invocation.say("\n".join(lines), {"active": active or None, "providers": data})


@command.command()
@click.argument("name")
@common_options
def use(name: str) -> None:
    """Use a provider from the next session on."""
    invocation = Invocation.current()
    home = _place(invocation)
    provider = _load(invocation, home, _candidate(invocation, home, name))
    if not provider.is_available():
        invocation.refuse(f"{name} is not ready. 'memoranda provider setup {name}' asks for what it needs.")
    config.set_value(home, "memory.provider", name)
    invocation.say(f"{name} is used from the next session on.", {"success": True, "provider": name})


@command.command()
@common_options
def off() -> None:
    """Use the built-in memory only. What waits to be delivered is kept."""
    invocation = Invocation.current()
    config.set_value(invocation.place(), "memory.provider", "")
    invocation.say("Only the built-in memory is used from the next session on.", {"success": True, "provider": None})


@command.command()
@click.argument("name", required=False)
@click.option(
    "--set", "given", multiple=True, metavar="KEY=VALUE", help="Answer a question; nothing else is asked then."
)
@click.option("--install", is_flag=True, help="Install the Python packages that it needs.")
@common_options
def setup(name: str | None, given: tuple[str, ...], install: bool) -> None:
    """Choose a provider, answer what it asks, and use it. Secrets go to .env."""
    invocation = Invocation.current()
    home = _place(invocation)
    interactive = sys.stdin.isatty() and not given and not invocation.as_json
    if name is None:
        name = _pick(invocation, home, interactive)
    if name == _BUILT_IN:
        config.set_value(home, "memory.provider", "")
        invocation.say("Only the built-in memory is used.", {"success": True, "provider": None})
        return
    candidate = _candidate(invocation, home, name)
    _dependencies(invocation, candidate, install)
    provider = _load(invocation, home, candidate)
    fields = fields_of(provider)
    values = _ask(fields, read_settings(home.root, name)) if interactive else _given(invocation, given)
    try:
        checked = check(fields, values)
        secrets = save(provider, name, fields, checked, home.root)
    except ProviderError as error:
        invocation.refuse(f"{error} Nothing was switched on.")
    for variable, value in secrets.items():
        config.set_secret(home, variable, value)
    config.set_value(home, "memory.provider", name)
    plain = {key: value for key, value in checked.items() if key in read_settings(home.root, name)}
    shown = ", ".join(f"{key} = {value}" for key, value in plain.items()) or "nothing to set"
    text = f"{name} is used from the next session on ({wrapped(shown)})."
    invocation.say(text, {"success": True, "provider": name, "settings": plain, "secrets": sorted(secrets)})


def _pick(invocation: Invocation, home: Home, interactive: bool) -> str:
    if not interactive:
        invocation.refuse("Name the provider: 'memoranda provider setup NAME'. 'memoranda provider list' shows them.")
    choices = [_BUILT_IN, *discover(home.root)]
    for number, choice in enumerate(choices):
        click.echo(f"{number:>3}  {choice}", err=True)
    return choices[click.prompt("Which one", type=click.IntRange(0, len(choices) - 1), default=0, err=True)]


def _dependencies(invocation: Invocation, candidate: Candidate, install: bool) -> None:
    for needed in candidate.external_dependencies:
        hint = needed.get("install") or needed.get("url") or ""
        click.echo(f"{candidate.name} needs {needed.get('name', '?')}. {wrapped(str(hint))}", err=True)
    if candidate.pip_dependencies and install:
        command = [sys.executable, "-m", "pip", "install", *candidate.pip_dependencies]
        if subprocess.run(command, check=False).returncode != 0:
            invocation.refuse(f"{', '.join(candidate.pip_dependencies)} could not be installed.")
    elif candidate.pip_dependencies:
        names = " ".join(candidate.pip_dependencies)
        click.echo(f"{candidate.name} needs the packages {names}; --install installs them.", err=True)


def _ask(fields: list[Field], known: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields:
        if not field.applies(values):
            continue
        question = wrapped(field.description or field.key) + (f" ({field.url})" if field.url else "")
        offered = known.get(field.key, field.suggestion(values))
        while True:
            answer = click.prompt(
                question, default="" if field.secret or offered is None else offered, hide_input=field.secret,
                show_default=not field.secret, err=True, type=str,
            )  # fmt: skip
            try:
                values |= {field.key: field.read(answer)} if answer != "" else {}
                break
            except ProviderError as error:
                click.echo(str(error), err=True)
    return values


def _given(invocation: Invocation, given: tuple[str, ...]) -> dict[str, str]:
    broken = [each for each in given if "=" not in each]
    if broken:
        invocation.refuse(f"{broken[0]!r} must be KEY=VALUE.")
    return dict(each.split("=", 1) for each in given)


def _load(invocation: Invocation, home: Home, candidate: Candidate) -> MemoryProvider:
    try:
        provider = load(candidate, Path(home.root), read_settings(home.root, candidate.name))
        config.offer_secrets(home, [field.env_var for field in fields_of(provider) if field.env_var])
        return provider
    except ProviderError as error:
        invocation.refuse(str(error))


@command.command()
@common_options
def status() -> None:
    """Show which provider is in use, whether it is ready, what waits for it, and how it last did."""
    invocation = Invocation.current()
    home = _place(invocation)
    name = _active(home)
    if not name:
        invocation.say("Only the built-in memory is used.", {"provider": None})
        return
    candidate = discover(home.root).get(name)
    if candidate is None:
        invocation.refuse(f"The provider {name} is configured and not there.", {"provider": name})
    data: dict[str, Any] = {"provider": name, "origin": candidate.origin, "problem": None, "ready": False}
    try:
        provider = load(candidate, home.root, read_settings(home.root, name))
        config.offer_secrets(home, [field.env_var for field in fields_of(provider) if field.env_var])
        secrets = config.read_secrets(home)
        data |= {
            "ready": bool(provider.is_available()),
            "settings": provider.get_status_config(read_settings(home.root, name)) or read_settings(home.root, name),
            "secrets": {field.env_var: field.env_var in secrets or config.is_set(field.env_var)
                        for field in fields_of(provider) if field.env_var},
        }  # fmt: skip
    except ProviderError as error:
        data["problem"] = str(error)
    external = config.load(home).external
    data |= {"mode": external.mode, "recall_chars": external.recall_chars, "every_n_turns": external.every_n_turns}
    data |= {"backlog": asdict(MemoryManager(home.root, external).backlog()), "last": asdict(kept(home.root, name))}
    invocation.say(_describe(data), data)


def _describe(data: dict[str, Any]) -> str:
    waiting, last = data["backlog"], data["last"]
    lines = [f"Built-in memory: always on. Provider: {bold(data['provider'])} ({data['origin']})."]
    lines.append(f"  ready      {'yes' if data['ready'] else 'no'}{'  ' + data['problem'] if data['problem'] else ''}")
    lines += [f"  {key:<10} {wrapped(str(value))}" for key, value in (data.get("settings") or {}).items()]
    lines += [f"  {name:<10} {'set' if there else 'missing'}" for name, there in data.get("secrets", {}).items()]
    lines.append(f"  mode       {data['mode']}, up to {data['recall_chars']:,} characters a turn")
    lines.append(
        "  waiting    " + (", ".join(f"{key} {value}" for key, value in waiting.items() if value) or "nothing")
    )
    if last["last_recall"]:
        when = local_time(last["last_recall"])
        lines.append(
            f"  recalled   {when}, {last['last_recall_chars']} characters in {1000 * (last['latency'] or 0):.0f} ms"
        )
    if last["last_error"]:
        lines.append(f"  last error {local_time(last['when'])} in {last['phase']}: {wrapped(last['last_error'])}")
    return "\n".join(lines)


@command.command()
@common_options
def test() -> None:
    """Start the provider, ask it something, tell it a turn, and say what worked."""
    invocation = Invocation.current()
    home = _place(invocation)
    name = _active(home)
    if not name:
        invocation.refuse("No provider is in use. 'memoranda provider setup' chooses one.")
    manager = MemoryManager(home.root, config.load(home).external, clean=sanitize_context)
    session_id = "memoranda-provider-test"
    steps: list[tuple[str, bool, str]] = []

    def step(what: str, run: Callable[[], Any]) -> bool:
        begin = time.monotonic()
        result = run()
        steps.append((what, bool(result), f"{1000 * (time.monotonic() - begin):.0f} ms"))
        return bool(result)

    loaded = _load(invocation, home, _candidate(invocation, home, name))
    worked = step("is available", lambda: manager.add_provider(loaded))
    worked = worked and step("starts", lambda: manager.initialize(session_id, platform="cli"))
    if worked:
        step("answers a recall in time", lambda: _recalls(manager, session_id))
        if has_own(loaded, "sync_turn"):
            step("takes a turn", lambda: manager.turn_finished("Is this a test?", "It is a test.", session_id))
        step("has taken in what waited", lambda: manager.drain(10.0))
    step("shuts down", manager.shutdown)
    status = manager.status()
    keep(home.root, name, status.health)
    lines = [f"{'ok    ' if done else 'FAILED'}  {what}  {dim(took)}" for what, done, took in steps]
    if status.health.last_error:
        lines.append(f"Last error in {status.health.phase}: {wrapped(status.health.last_error)}")
    shown = [{"step": what, "ok": done} for what, done, _ in steps]
    data = {
        "success": all(done for _, done, _ in steps),
        "steps": shown,
        "last_error": status.health.last_error or None,
    }
    if data["success"]:
        invocation.say("\n".join(lines), data)
    else:
        invocation.refuse("\n".join(lines), data)


def _recalls(manager: MemoryManager, session_id: str) -> bool:
    manager.recall("What do you remember?", session_id)
    health = manager.status().health
    return health.well or health.phase != "prefetch"


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@common_options
def run(arguments: tuple[str, ...]) -> None:
    """Run a command of the active provider's own, if it brings some. '-- --help' shows them."""
    invocation = Invocation.current()
    home = _place(invocation)
    name = _active(home)
    if not name:
        invocation.refuse("No provider is in use.")
    try:
        extra = load_commands(_candidate(invocation, home, name), home.root)
    except ProviderError as error:
        invocation.refuse(str(error))
    parser = argparse.ArgumentParser(prog="memoranda provider run --")
    extra.register(parser)
    parsed = parser.parse_args(list(arguments))
    handler = getattr(parsed, "func", None) or extra.handler
    if handler is None:
        invocation.refuse(f"{name} says nothing about how its commands are run.")
    sys.exit(handler(parsed) or 0)
