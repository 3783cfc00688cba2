"""Questions of `memoranda provider setup`: which provider, and the values of its fields."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click

from memoranda.cli.provider.output import BUILT_IN
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError
from memoranda.external.loading.discovery import DiscoveredProvider
from memoranda.external.loading.setup import ConfigField


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
