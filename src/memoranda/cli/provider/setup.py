"""The commands that choose and configure a provider: `use`, `off`, `setup`, and the questions of the latter."""

import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from memoranda.cli.completion import complete_provider
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.provider.output import (
    BUILT_IN,
    CommandOutput,
    describe_use,
    find_provider,
    inspect_in_home,
    open_outbox,
    owned_home,
    provider_command,
    providers_in_use,
    use_providers,
)
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError, StorageError
from memoranda.external.loading.discovery import (
    DiscoveredProvider,
    discover,
    install_command,
    missing_packages,
    missing_programs,
)
from memoranda.external.loading.loader import Inspection, check_ready, run_guarded
from memoranda.external.loading.setup import (
    ConfigField,
    read_settings,
    resolve_values,
    restored_on_failure,
    save_values,
    settings_file,
    variables_of,
)
from memoranda.external.provider import has_own
from memoranda.home import config
from memoranda.support.home import Home
from memoranda.upkeep.forgetting.started_provider import call_service

# The user answers questions, and may have to look something up.
_OWN_SETUP_SECONDS = 3_600.0


@click.command()
@click.argument("names", nargs=-1, required=True, shell_complete=complete_provider)
@common_options
@provider_command
def use(invocation: Invocation, names: tuple[str, ...]) -> CommandOutput:
    """Use these providers and no others, from the next session on."""
    home = owned_home(invocation)
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        found = inspect_in_home(home, find_provider(home, name), read_settings(home.root, name))
        readiness = check_ready(found.provider, config.load(home).external)
        if not readiness.ready:
            reason = readiness.reason or f"'memoranda provider setup {name}' asks for what it needs."
            raise ProviderError(f"{name} is not ready. {reason}")
    use_providers(home, chosen)
    text, data = describe_use(chosen)
    return CommandOutput(f"{text}.", {"success": True, "provider": chosen[0]} | data)


@click.command()
@click.argument("name", required=False, shell_complete=complete_provider)
@common_options
@provider_command
def off(invocation: Invocation, name: str | None) -> CommandOutput:
    """Stop using a provider, or all: then only the built-in memory is used. Waiting deliveries are kept."""
    home = invocation.locate_home()
    if name is None:
        return _use_built_in_only(home)
    in_use = providers_in_use(home)
    if name not in in_use:
        raise ProviderError(f"{name} is not in use. Nothing was changed.")
    rest = tuple(each for each in in_use if each != name)
    if not rest:
        return _use_built_in_only(home)
    use_providers(home, rest)
    text, data = describe_use(rest)
    return CommandOutput(
        f"{name} is no longer used. {text}.", {"success": True, "provider": rest[0]} | data | {"replaced": [name]}
    )


@click.command()
@click.argument("name", required=False, shell_complete=complete_provider)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one value instead of being asked; other values do not change.",
)
@click.option("--add", is_flag=True, help="Use it in addition to the providers in use, instead of replacing them.")
@click.option("--install", is_flag=True, help="Install the Python packages that it needs.")
@click.option("--no-test", is_flag=True, help="Do not call the provider's service.")
@common_options
@provider_command
def setup(
    invocation: Invocation, name: str | None, assignments: tuple[str, ...], add: bool, install: bool, no_test: bool
) -> CommandOutput:
    """Choose a provider, configure it, call its service once, and use it. Secrets go to .env."""
    home = owned_home(invocation)
    interactive = sys.stdin.isatty() and not assignments and not invocation.as_json
    if name is None:
        if not interactive:
            raise ProviderError(
                "Name the provider: 'memoranda provider setup NAME'. 'memoranda provider list' shows them."
            )
        name = ask_provider(list(discover(home.root).values()), providers_in_use(home))
    if name == BUILT_IN:
        return _use_built_in_only(home)
    found = find_provider(home, name)
    in_use = _choose_in_use(home, name, add, interactive)
    _check_dependencies(found, install, interactive)
    saved = _read_saved(home.root, name)
    inspection = inspect_in_home(home, found, saved)
    if has_own(inspection.provider, "post_setup") and not assignments:
        return _run_own_setup(home, name, inspection, in_use)
    stored = config.read_secrets(home)
    present = {name for name in _variables(inspection) if name in stored or config.is_set(name)}
    saved |= _plain_values_in_env(home, inspection)
    answers = ask_fields(inspection.fields, saved, present) if interactive else _parse_pairs(assignments)
    values = resolve_values(inspection.fields, answers, saved, present)
    output = _save_and_use(home, found, inspection, values, in_use)
    return output if no_test else _with_test_call(output, home, found, variables_of(inspection.fields, values, stored))


def ask_provider(found: list[DiscoveredProvider], in_use: Sequence[str]) -> str:
    """Ask which provider to use, by number or name; returns its name."""
    choices = [BUILT_IN, *(provider.name for provider in found)]
    about = ["no external memory", *(provider.problem or provider.description for provider in found)]
    for number, (choice, text) in enumerate(zip(choices, about, strict=True)):
        mark = "*" if choice in (in_use or (BUILT_IN,)) else " "
        click.echo(f"{mark}{number:>3}  {choice:<16} {terminal_line(text, 90)}", err=True)
    default = next((choices.index(name) for name in in_use if name in choices), 0)
    while True:
        answer = str(click.prompt("Which one", default=default, err=True, type=str)).strip()
        if answer in choices:
            return answer
        if answer.isdecimal() and int(answer) < len(choices):
            return choices[int(answer)]
        click.echo(
            f"{terminal_line(answer, 40)!r} is not one of them: enter a number from 0 to {len(choices) - 1}.", err=True
        )


def ask_fields(fields: list[ConfigField], saved: Mapping[str, Any], present: Collection[str]) -> dict[str, Any]:
    """Ask for every field that applies; a blank answer keeps the current value."""
    values: dict[str, Any] = {}
    for field in fields:
        if field.applies(values):
            is_set = field.secret and field.env_var in present
            answer = _ask(field, values, saved, is_set)
            values |= {} if answer is None else {field.key: answer}
    return values


def _ask(field: ConfigField, values: Mapping[str, Any], saved: Mapping[str, Any], is_set: bool) -> Any:
    default = field.saved_value(saved)
    default = field.default_for(values) if default is None else default
    while True:
        answer = click.prompt(
            _question(field, is_set),
            default="" if field.secret or default is None else _format_value(default),
            hide_input=field.secret,
            show_default=not field.secret and default is not None,
            err=True,
            type=str,
        )
        if answer.strip() == "":
            if not field.required or is_set:
                return None
            click.echo(f"{field.key} is required.", err=True)
            continue
        try:
            return field.parse(answer)
        except ProviderError as error:
            click.echo(str(error), err=True)


def _question(field: ConfigField, is_set: bool) -> str:
    text = terminal_line(field.description or field.key)
    if field.choices:
        text += f" ({', '.join(map(str, field.choices))})"
    if field.url:
        text += f" ({terminal_line(field.url)})"
    return text + (" (blank keeps the current one)" if is_set else "")


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _choose_in_use(home: Home, name: str, add: bool, interactive: bool) -> tuple[str, ...]:
    """Return the providers that are used after the setup of one: it replaces others unless they are to stay."""
    current = providers_in_use(home)
    if name in current:
        return current
    if current and not add and interactive:
        add = click.confirm(f"Keep using {', '.join(current)} as well", default=True, err=True)
    return (*current, name) if add else (name,)


def _use(home: Home, name: str, in_use: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Use the providers; returns text and data that name the one that was set up, and those that it replaced."""
    replaced = [each for each in providers_in_use(home) if each not in in_use]
    use_providers(home, in_use)
    text, data = describe_use(in_use, replaced)
    return text, {"success": True, "provider": name} | data


def _save_and_use(
    home: Home, found: DiscoveredProvider, inspection: Inspection, values: Mapping[str, Any], in_use: Sequence[str]
) -> CommandOutput:
    """Save all values and use the provider, or change nothing."""
    name = found.name
    variables = variables_of(inspection.fields, values, config.read_secrets(home))
    secret = {field.key: field.env_var for field in inspection.fields if field.secret}
    with restored_on_failure(home.secrets_file, home.config_file, settings_file(home.root, name)):
        for variable, value in variables.items():
            config.set_secret(home, variable, value)
        try:
            save_values(inspection.provider, name, inspection.fields, values, home.root)
            _refuse_to_replace_with_unready(home, found, in_use)
        except ProviderError as error:
            raise ProviderError(f"{error} Nothing was changed.") from error
        text, data = _use(home, name, in_use)
    plain = {key: value for key, value in values.items() if key not in secret}
    # Vendors have twenty settings; a person wants to see what is special here.
    defaults = {field.key: field.default_for(values) for field in inspection.fields}
    changed = [f"{key} = {value}" for key, value in plain.items() if value != defaults[key]]
    listed = ", ".join(changed) or "with default settings"
    text = f"{text} ({terminal_line(listed)})." if len(in_use) == 1 else f"{name}: {terminal_line(listed)}. {text}."
    if "replaced" in data:
        text += " --add would keep both." if len(data["replaced"]) == 1 else " --add would keep them as well."
    data |= {"settings": plain, "secrets": sorted(secret[key] for key in values if key in secret)}
    if retried := _retry_failed(home, name):
        text += f" {retried} deliveries that failed are retried then."
        data["retried"] = retried
    return CommandOutput(text, data)


def _refuse_to_replace_with_unready(home: Home, found: DiscoveredProvider, in_use: Sequence[str]) -> None:
    """Raise if a provider that works would be replaced by one that cannot start."""
    replaced = [each for each in providers_in_use(home) if each not in in_use]
    if not replaced:
        return
    inspection = inspect_in_home(home, found, read_settings(home.root, found.name))
    readiness = check_ready(inspection.provider, config.load(home).external)
    if not readiness.ready:
        reason = readiness.reason or "It needs more settings."
        raise ProviderError(f"{found.name} is not ready, so it does not replace {', '.join(replaced)}. {reason}")


def _with_test_call(
    output: CommandOutput, home: Home, found: DiscoveredProvider, variables: Mapping[str, str]
) -> CommandOutput:
    """Add what the service answers to a test call with the new settings; they stay saved if it fails."""
    try:
        inspection = inspect_in_home(home, found, read_settings(home.root, found.name))
        # The environment may still have the values from before.
        known = config.export_secrets(home, _variables(inspection))
        inspection.provider.receive_secrets({**known, **variables})
        answer = call_service(home, found.name, inspection.provider)
    except ProviderError as error:
        text = f"{output.text}\nThe test call failed: {terminal_line(str(error))}\nThe settings are saved."
        return CommandOutput(text, output.data | {"test": {"ok": False, "error": str(error)}})
    if not answer:
        return output
    return CommandOutput(
        f"{output.text}\n{terminal_line(answer)}", output.data | {"test": {"ok": True, "answer": answer}}
    )


def _retry_failed(home: Home, name: str) -> int:
    """Retry deliveries that the provider refused, because the new settings may make them succeed."""
    with open_outbox(home) as outbox:
        try:
            return outbox.retry_failed(name)
        except StorageError as error:
            click.echo(f"Deliveries that failed are not retried: {error}", err=True)
            return 0


def _run_own_setup(home: Home, name: str, inspection: Inspection, in_use: Sequence[str]) -> CommandOutput:
    """Run the provider's own setup."""
    document = {key: value for key, value in config.read_document(home).items()}
    try:
        run_guarded(
            lambda: inspection.provider.post_setup(str(home.root), document),
            f"{name} could not be set up and is not used",
            _OWN_SETUP_SECONDS,
        )
    except ProviderError as error:
        keys = ", ".join(dict.fromkeys(field.key for field in inspection.fields))
        hint = f" Its settings can be set with --set KEY=VALUE: {keys}." if keys else ""
        raise ProviderError(f"{error}{hint}") from error
    text, data = _use(home, name, in_use)
    return CommandOutput(f"{name} has set itself up. {text}.", data | {"set_up_by": "provider"})


def _use_built_in_only(home: Home) -> CommandOutput:
    use_providers(home, ())
    return CommandOutput(
        "Only the built-in memory is used from the next session on.", {"success": True, "provider": None}
    )


def _read_saved(home: Path, name: str) -> dict[str, Any]:
    """Return the saved settings; setup replaces a file that cannot be read."""
    try:
        return read_settings(home, name)
    except ProviderError as error:
        click.echo(f"{error} It is replaced.", err=True)
        return {}


def _variables(inspection: Inspection) -> list[str]:
    return [field.env_var for field in inspection.fields if field.env_var]


def _plain_values_in_env(home: Home, inspection: Inspection) -> dict[str, str]:
    """Return the values in `.env` of fields that are not secret."""
    stored = config.read_secrets(home)
    plain = [field for field in inspection.fields if not field.secret and field.env_var in stored]
    return {field.key: stored[field.env_var] for field in plain}


def _check_dependencies(found: DiscoveredProvider, install: bool, interactive: bool) -> None:
    """Report missing programs and packages, and install the packages if asked to."""
    for program, hint in missing_programs(found):
        click.echo(
            f"{found.name} needs {terminal_line(program)}, which is not installed. {terminal_line(hint)}", err=True
        )
    packages = missing_packages(found)
    if not packages:
        return
    names = " ".join(packages)
    wanted = install or (interactive and click.confirm(f"{found.name} needs {names}. Install it now", err=True))
    if not wanted:
        click.echo(f"{found.name} needs the packages {names}; --install installs them.", err=True)
    elif subprocess.run(install_command(packages), check=False).returncode != 0:
        raise ProviderError(f"{', '.join(packages)} could not be installed. Nothing was changed.")


def _parse_pairs(assignments: tuple[str, ...]) -> dict[str, str]:
    broken = [pair for pair in assignments if "=" not in pair]
    if broken:
        raise ProviderError(f"{broken[0]!r} must be KEY=VALUE.")
    return dict(pair.split("=", 1) for pair in assignments)
