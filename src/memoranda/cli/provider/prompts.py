"""Asking a person: which provider, and what it wants to know."""

from collections.abc import Collection, Mapping
from typing import Any

import click

from memoranda.cli.provider.output import BUILT_IN
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError
from memoranda.providers.discovery import DiscoveredProvider
from memoranda.providers.setup import ConfigField


def pick(found: list[DiscoveredProvider], active: str) -> str:
    """The name of the provider that was chosen, by its number or its name."""
    choices = [BUILT_IN, *(each.name for each in found)]
    about = ["no external memory", *(each.problem or each.description for each in found)]
    for number, (choice, text) in enumerate(zip(choices, about, strict=True)):
        mark = "*" if choice == (active or BUILT_IN) else " "
        click.echo(f"{mark}{number:>3}  {choice:<16} {terminal_line(text, 90)}", err=True)
    default = choices.index(active) if active in choices else 0
    while True:
        answer = str(click.prompt("Which one", default=default, err=True, type=str)).strip()
        if answer in choices:
            return answer
        if answer.isdecimal() and int(answer) < len(choices):
            return choices[int(answer)]
        click.echo(
            f"{terminal_line(answer, 40)!r} is none of them: give a number from 0 to {len(choices) - 1}.", err=True
        )


def ask_fields(fields: list[ConfigField], known: Mapping[str, Any], present: Collection[str]) -> dict[str, Any]:
    """An answer to every question that applies; blank keeps what there is."""
    values: dict[str, Any] = {}
    for field in fields:
        if field.applies(values):
            there = field.secret and field.env_var in present
            answer = _ask(field, values, known, there)
            values |= {} if answer is None else {field.key: answer}
    return values


def _ask(field: ConfigField, values: Mapping[str, Any], known: Mapping[str, Any], there: bool) -> Any:
    offered = field.kept(known)
    offered = field.suggestion(values) if offered is None else offered
    while True:
        answer = click.prompt(
            _question(field, there),
            default="" if field.secret or offered is None else _shown(offered),
            hide_input=field.secret,
            show_default=not field.secret and offered is not None,
            err=True,
            type=str,
        )
        if answer.strip() == "":
            if not field.required or there:
                return None
            click.echo(f"{field.key} is needed.", err=True)
            continue
        try:
            return field.read(answer)
        except ProviderError as error:
            click.echo(str(error), err=True)


def _question(field: ConfigField, there: bool) -> str:
    text = terminal_line(field.description or field.key)
    if field.choices:
        text += f" ({', '.join(map(str, field.choices))})"
    if field.url:
        text += f" ({terminal_line(field.url)})"
    return text + (" (blank keeps the one that is set)" if there else "")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
