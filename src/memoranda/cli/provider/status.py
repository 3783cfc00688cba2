"""What there is and how it is: `list`, `status`."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from memoranda import config
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.provider.output import (
    BUILT_IN,
    CommandOutput,
    active_provider,
    inspect_in_home,
    owned_home,
    provider_command,
)
from memoranda.cli.terminal_text import bold, dim, local_time, terminal_line
from memoranda.errors import ProviderError, StorageError
from memoranda.providers.discovery import DiscoveredProvider, discover
from memoranda.providers.inspect_provider import is_ready, run_guarded
from memoranda.providers.jobs import Backlog
from memoranda.providers.outbox import Outbox
from memoranda.providers.setup import ConfigField, read_settings
from memoranda.providers.status_file import read_status
from memoranda.safety.redaction import Redactor
from memoranda.support.home import Home

_BUILT_IN_IS_ON = "Built-in memory: always on."


@click.command("list")
@common_options
@provider_command
def list_providers(invocation: Invocation) -> CommandOutput:
    """List the providers there are; none of their code is run."""
    home = owned_home(invocation)
    found, name = discover(home.root), active_provider(home)
    lines = [f"{'*' if not name else ' '} {bold(BUILT_IN)}"]
    for each in found.values():
        about = (each.problem and f"cannot be used: {each.problem}") or each.description
        lines.append(
            f"{'*' if each.name == name else ' '} {bold(each.name)}  {dim(each.origin)}  {terminal_line(about)}"
        )
        lines += [dim(f"    hides {terminal_line(other)}") for other in each.shadows]
    data = [
        {
            "name": each.name,
            "origin": each.origin,
            "description": each.description,
            "problem": each.problem or None,
            "active": each.name == name,
            "shadows": list(each.shadows),
        }
        for each in found.values()
    ]
    return CommandOutput("\n".join(lines), {"active": name or None, "providers": data})


@click.command()
@common_options
@provider_command
def status(invocation: Invocation) -> CommandOutput:
    """Show which provider is in use, whether it is ready, what waits for it, and how it last did."""
    home = owned_home(invocation)
    name, found = active_provider(home), discover(home.root)
    data: dict[str, Any] = {"built_in": True, "provider": name or None, "providers": list(found)}
    if not name:
        return CommandOutput(f"{_BUILT_IN_IS_ON} Provider: none.\n{_installed(data)}", data)
    data |= {"installed": name in found, "ready": False, "problem": None}
    if name in found:
        data |= {"origin": found[name].origin} | _as_it_is(home, found[name])
    else:
        data["problem"] = data["error"] = f"The provider {name} is configured and not there."
    external = config.load(home).external
    data |= {
        "mode": external.mode,
        "recall_chars": external.recall_chars,
        "every_n_turns": external.every_n_turns,
        "recall_seconds": external.recall_seconds,
    }
    data |= _waiting(home, name)
    data |= _last(home, name)
    return CommandOutput(_described(data), data, ok=name in found)


def _as_it_is(home: Home, found: DiscoveredProvider) -> dict[str, Any]:
    """What the provider says of itself, as far as it says anything; `problem` is the first thing that failed."""
    limits = config.load(home).external
    told: dict[str, Any] = {}
    try:
        saved = read_settings(home.root, found.name)
        seen = inspect_in_home(home, found, saved)
        told |= {"settings": saved} | _variables(home, seen.fields)
        told["settings"] = _shown(home, seen.fields, saved)
        told["ready"] = is_ready(seen.provider, limits)
        own = run_guarded(
            lambda: _plain(seen.provider.get_status_config(dict(saved))), "It cannot be shown", limits.call_seconds
        )
        if own:
            told["settings"] = _shown(home, seen.fields, own)
    except ProviderError as error:
        told["problem"] = terminal_line(str(error))
    return told


def _plain(values: object) -> dict[str, Any]:
    """Whatever a provider shows of itself, as JSON has it."""
    plain = json.loads(json.dumps(values, default=str))
    return plain if isinstance(plain, dict) else {}


def _shown(home: Home, fields: list[ConfigField], values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without anything secret in them."""
    secret = {field.key for field in fields if field.secret}
    redactor = Redactor(config.known_secrets(home))
    return {
        key: redactor.text(value)[0] if isinstance(value, str) else value
        for key, value in values.items()
        if key not in secret
    }


def _variables(home: Home, fields: list[ConfigField]) -> dict[str, Any]:
    """Which variables the provider reads have a value, and where to get those that are missing."""
    there = config.read_secrets(home)
    named = [field for field in fields if field.env_var]
    state = {field.env_var: field.env_var in there or config.is_set(field.env_var) for field in named}
    missing = [
        {"variable": field.env_var, "description": field.description, "url": field.url}
        for field in named
        if field.required and not state[field.env_var]
    ]
    return {"secrets": state, "missing": missing}


def _waiting(home: Home, name: str) -> dict[str, Any]:
    """What this provider has yet to be told, and what others have."""
    outbox = Outbox(home.root)
    try:
        mine, all_of_it = outbox.backlog(name), outbox.backlog()
    except StorageError as error:
        mine, all_of_it = Backlog(last_error=str(error)), Backlog()
    finally:
        outbox.close()
    age = None if mine.oldest is None else round(max(0.0, time.time() - mine.oldest), 1)
    others = all_of_it.waiting + all_of_it.parked - mine.waiting - mine.parked
    return {"backlog": asdict(mine) | {"oldest_age_seconds": age}, "backlog_of_others": max(0, others)}


def _last(home: Home, name: str) -> dict[str, Any]:
    try:
        return {"last": asdict(read_status(home.root, name))}
    except ProviderError as error:
        return {"last": None, "problem": str(error)}


def _described(data: dict[str, Any]) -> str:
    origin = f" ({data['origin']})" if data["installed"] else ", which is not installed"
    lines = [f"{_BUILT_IN_IS_ON} Provider: {bold(data['provider'])}{origin}."]
    problem = f"  {terminal_line(data['problem'])}" if data["problem"] else ""
    lines.append(f"  ready      {'yes' if data['ready'] else 'no'}{problem}")
    lines += [f"  {key:<10} {terminal_line(str(value))}" for key, value in (data.get("settings") or {}).items()]
    lines += [f"  {name:<10} {'set' if there else 'not set'}" for name, there in data.get("secrets", {}).items()]
    for each in data.get("missing", ()):
        hint = "  ".join(terminal_line(part) for part in (each["description"], each["url"]) if part)
        lines.append(f"  missing    {each['variable']}  {hint}".rstrip())
    lines.append(
        f"  mode       {data['mode']}, every {data['every_n_turns']} turns, up to {data['recall_chars']:,} characters"
        f" within {data['recall_seconds']:g} s"
    )
    lines.append(f"  waiting    {_backlog(data)}")
    lines += _history(data["last"] or {})
    return "\n".join([*lines, _installed(data)])


def _backlog(data: dict[str, Any]) -> str:
    backlog = data["backlog"]
    if backlog["last_error"] and not backlog["waiting"] and not backlog["parked"]:
        return f"not known: {terminal_line(backlog['last_error'])}"
    parts = [f"{backlog[kind]} {kind}" for kind in ("waiting", "failing", "parked") if backlog[kind]]
    if backlog["oldest_age_seconds"] is not None:
        parts.append(f"the oldest for {_age(backlog['oldest_age_seconds'])}")
    if backlog["last_error"]:
        parts.append(f"last error: {terminal_line(backlog['last_error'])}")
    others = data["backlog_of_others"]
    return (", ".join(parts) or "nothing") + (f"; {others} for other providers" if others else "")


def _history(last: Mapping[str, Any]) -> list[str]:
    lines = []
    if last.get("last_recall"):
        took = 1000 * (last.get("latency") or 0)
        when = local_time(last["last_recall"])
        lines.append(f"  recalled   {when}, {last['last_recall_chars']} characters in {took:.0f} ms")
    if last.get("last_error"):
        lines.append(f"  last error {local_time(last['when'])} in {last['phase']}: {terminal_line(last['last_error'])}")
    return lines


def _installed(data: dict[str, Any]) -> str:
    names = [f"{'*' if name == data['provider'] else ''}{name}" for name in data["providers"]]
    return f"  installed  {', '.join(names) or 'none'}"


def _age(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


COMMANDS = (list_providers, status)
