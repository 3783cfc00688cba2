"""The commands that show providers: `list`, `status`."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from memoranda.cli.completion import complete_provider
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.provider.output import (
    BUILT_IN,
    CommandOutput,
    inspect_in_home,
    open_outbox,
    owned_home,
    provider_command,
    providers_in_use,
)
from memoranda.cli.terminal_text import bold, dim, local_time, terminal_line
from memoranda.errors import ProviderError, StorageError
from memoranda.external.health import read_status
from memoranda.external.loading.discovery import DiscoveredProvider, discover, find_by_name
from memoranda.external.loading.loader import check_ready, run_guarded
from memoranda.external.loading.setup import ConfigField, read_settings
from memoranda.external.outbox.jobs import Backlog
from memoranda.home import config
from memoranda.safety.redaction import Redactor
from memoranda.support.home import Home

_BUILT_IN_STATUS = "Built-in memory: always on."
_OWN_THREAD = "The plugin takes turns in a thread of its own; their delivery cannot be monitored."


@click.command("list")
@common_options
@provider_command
def list_providers(invocation: Invocation) -> CommandOutput:
    """List the available providers without running their code."""
    home = owned_home(invocation)
    found, in_use = discover(home.root), providers_in_use(home)
    lines = [f"{' ' if in_use else '*'} {bold(BUILT_IN)}"]
    for provider in found.values():
        about = (provider.problem and f"cannot be used: {provider.problem}") or provider.description
        mark = "*" if provider.name in in_use else " "
        lines.append(f"{mark} {bold(provider.name)}  {dim(provider.origin)}  {terminal_line(about)}")
        lines += [dim(f"    has the same name as {terminal_line(other)}") for other in provider.shadows]
    data = [
        {
            "name": provider.name,
            "origin": provider.origin,
            "description": provider.description,
            "problem": provider.problem or None,
            "active": provider.name in in_use,
            "shadows": list(provider.shadows),
        }
        for provider in found.values()
    ]
    active = in_use[0] if in_use else None
    return CommandOutput("\n".join(lines), {"active": active, "in_use": list(in_use), "providers": data})


@click.command()
@click.argument("name", required=False, shell_complete=complete_provider)
@common_options
@provider_command
def status(invocation: Invocation, name: str | None) -> CommandOutput:
    """Show each provider in use, or one: whether it is ready, its waiting deliveries, and its last session."""
    home = owned_home(invocation)
    in_use, found = providers_in_use(home), discover(home.root)
    common: dict[str, Any] = {"built_in": True, "in_use": list(in_use), "providers": list(found)}
    names = (name,) if name else in_use
    if not names:
        text = f"{_BUILT_IN_STATUS} Provider: none.\n{_format_installed(common)}"
        return CommandOutput(text, common | {"provider": None})
    reports = {each: _report(home, each, found) for each in names}
    # The first one's own, as when there is only one.
    data = common | next(iter(reports.values()))
    if len(reports) > 1:
        data["status_of"] = reports
    texts = [_format_status(report) for report in reports.values()]
    text = "\n".join([f"{_BUILT_IN_STATUS} {texts[0]}", *texts[1:], _format_installed(common)])
    return CommandOutput(text, data, ok=all(report["installed"] for report in reports.values()))


def _report(home: Home, name: str, found: Mapping[str, DiscoveredProvider]) -> dict[str, Any]:
    """Return everything that is known about one provider, without starting it."""
    chosen = find_by_name(home.root, name)
    data: dict[str, Any] = {"provider": name, "installed": chosen is not None, "ready": False, "problem": None}
    if chosen is not None:
        same_name = [other for other in found if other.partition(":")[2] == name]
        data |= {"origin": chosen.origin, "own_thread": chosen.own_thread, "same_name": same_name}
        data |= _inspect(home, chosen)
    else:
        data["problem"] = data["error"] = f"The provider {name} is configured but not installed."
    external = config.load(home).external
    data |= {
        "mode": external.mode,
        "recall_chars": external.recall_chars,
        "every_n_turns": external.every_n_turns,
        "recall_seconds": external.recall_seconds,
    }
    data |= _count_waiting(home, name)
    data |= _last_session(home, name)
    return data | {"last_call_failed": _last_failure(data)}


def _last_failure(data: Mapping[str, Any]) -> str | None:
    """What the last call said if it failed: a delivery that waits for another attempt, else the last session's."""
    backlog, last = data["backlog"], data["last"] or {}
    if backlog["failing"] or backlog["parked"]:
        return str(backlog["last_error"])
    return str(last["last_error"]) if last.get("consecutive_failures") else None


def _inspect(home: Home, found: DiscoveredProvider) -> dict[str, Any]:
    """Return the state that the provider reports; `problem` is the first thing that failed."""
    limits = config.load(home).external
    report: dict[str, Any] = {}
    try:
        saved = read_settings(home.root, found.name)
        inspection = inspect_in_home(home, found, saved)
        report |= {"settings": saved} | _variables(home, inspection.fields, saved)
        report["settings"] = _public_settings(home, inspection.fields, saved)
        readiness = check_ready(inspection.provider, limits)
        report |= {"ready": readiness.ready, "problem": terminal_line(readiness.reason) or None}
        own = run_guarded(
            lambda: _as_json_object(inspection.provider.get_status_config(dict(saved))),
            "It cannot be shown",
            limits.call_seconds,
        )
        if own:
            report["settings"] = _public_settings(home, inspection.fields, own)
    except ProviderError as error:
        report["problem"] = terminal_line(str(error))
    return report


def _as_json_object(values: object) -> dict[str, Any]:
    """Return the values that a provider reports, as JSON."""
    plain = json.loads(json.dumps(values, default=str))
    return plain if isinstance(plain, dict) else {}


def _public_settings(home: Home, fields: list[ConfigField], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without secrets."""
    secret = {field.key for field in fields if field.secret}
    redactor = Redactor(config.known_secrets(home))
    return {
        key: redactor.text(value)[0] if isinstance(value, str) else value
        for key, value in values.items()
        if key not in secret
    }


def _variables(home: Home, fields: list[ConfigField], saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return which variables of the provider have a value, and where to get the missing ones.

    Fields that do not apply with the saved settings are left out, and so are variables without a value of fields that
    have their own settings file.
    """
    stored = config.read_secrets(home)
    values = {field.key: field.default for field in fields if field.default is not None} | dict(saved)
    with_variable = [field for field in fields if field.env_var and field.applies(values)]
    state = {
        field.env_var: is_set
        for field in with_variable
        if (is_set := field.env_var in stored or config.is_set(field.env_var)) or field.secret or field.in_env_file
    }
    missing = [
        {"variable": field.env_var, "description": field.description, "url": field.url}
        for field in with_variable
        if field.required and not state.get(field.env_var) and (field.secret or not values.get(field.key))
    ]
    return {"secrets": state, "missing": missing}


def _count_waiting(home: Home, name: str) -> dict[str, Any]:
    """Count the undelivered jobs of this provider and of others."""
    with open_outbox(home) as outbox:
        try:
            own, total = outbox.backlog(name), outbox.backlog()
        except StorageError as error:
            own, total = Backlog(last_error=str(error)), Backlog()
    age = None if own.oldest is None else round(max(0.0, time.time() - own.oldest), 1)
    others = total.waiting + total.parked - own.waiting - own.parked
    return {"backlog": asdict(own) | {"oldest_age_seconds": age}, "backlog_of_others": max(0, others)}


def _last_session(home: Home, name: str) -> dict[str, Any]:
    try:
        return {"last": asdict(read_status(home.root, name))}
    except ProviderError as error:
        return {"last": None, "problem": str(error)}


def _format_status(data: dict[str, Any]) -> str:
    origin = f" ({data['origin']})" if data["installed"] else ", which is not installed"
    lines = [f"Provider: {bold(data['provider'])}{origin}."]
    problem = f"  {terminal_line(data['problem'])}" if data["problem"] else ""
    if data["ready"] and data["last_call_failed"]:
        problem = f", but its last call failed: {terminal_line(data['last_call_failed'])}"
    lines.append(f"  ready      {'yes' if data['ready'] else 'no'}{problem}")
    lines += [f"  {key:<10} {terminal_line(str(value))}" for key, value in (data.get("settings") or {}).items()]
    lines += [f"  {name:<10} {'set' if is_set else 'not set'}" for name, is_set in data.get("secrets", {}).items()]
    for field in data.get("missing", ()):
        hint = "  ".join(terminal_line(part) for part in (field["description"], field["url"]) if part)
        lines.append(f"  missing    {field['variable']}  {hint}".rstrip())
    lines.append(
        f"  mode       {data['mode']}, every {data['every_n_turns']} turns, up to {data['recall_chars']:,} characters"
        f" within {data['recall_seconds']:g} s"
    )
    lines.append(f"  waiting    {_format_backlog(data)}")
    if data.get("own_thread"):
        lines.append(f"  turns      {_OWN_THREAD}")
    lines += [
        f"  also       {other} has this name; 'memoranda provider setup {other}' chooses it instead"
        for other in data.get("same_name", ())
    ]
    lines += _format_history(data["last"] or {})
    return "\n".join(lines)


def _format_backlog(data: dict[str, Any]) -> str:
    backlog = data["backlog"]
    if backlog["last_error"] and not backlog["waiting"] and not backlog["parked"]:
        return f"unknown: {terminal_line(backlog['last_error'])}"
    parts = [f"{backlog[kind]} {kind}" for kind in ("waiting", "failing", "parked") if backlog[kind]]
    if backlog["oldest_age_seconds"] is not None:
        parts.append(f"the oldest for {_format_age(backlog['oldest_age_seconds'])}")
    if backlog["last_error"]:
        parts.append(f"last error: {terminal_line(backlog['last_error'])}")
    others = data["backlog_of_others"]
    return (", ".join(parts) or "nothing") + (f"; {others} for other providers" if others else "")


def _format_history(last: Mapping[str, Any]) -> list[str]:
    lines = []
    if last.get("last_recall"):
        took = 1000 * (last.get("latency") or 0)
        when = local_time(last["last_recall"])
        lines.append(f"  recalled   {when}, {last['last_recall_chars']} characters in {took:.0f} ms")
    if last.get("last_error"):
        lines.append(f"  last error {local_time(last['when'])} in {last['phase']}: {terminal_line(last['last_error'])}")
    return lines


def _format_installed(data: dict[str, Any]) -> str:
    names = [f"{'*' if name in data['in_use'] else ''}{name}" for name in data["providers"]]
    return f"  installed  {', '.join(names) or 'none'}"


def _format_age(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
