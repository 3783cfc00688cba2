"""Adds a suggestion to click's error about a misspelt command or value."""

import re

import click

from memoranda.support.suggestions import did_you_mean

_QUOTED = re.compile(r"'([^']*)'")


def with_suggestion(error: click.UsageError) -> click.UsageError:
    """Returns the error with the names that may have been meant."""
    quoted = _QUOTED.search(error.message)
    if quoted is None or "Did you mean" in error.format_message():
        return error
    suggestion = did_you_mean(quoted[1], _known_names(error))
    if not suggestion:
        return error
    message = error.message + suggestion
    if isinstance(error, click.BadParameter):
        return click.BadParameter(message, error.ctx, error.param, error.param_hint)
    return click.UsageError(message, error.ctx)


def _known_names(error: click.UsageError) -> list[str]:
    if isinstance(error, click.BadParameter):
        kind = error.param.type if error.param else None
        return list(map(str, kind.choices)) if isinstance(kind, click.Choice) else []
    group = error.ctx.command if error.ctx else None
    if error.ctx and isinstance(group, click.Group) and "command" in error.message:
        return group.list_commands(error.ctx)
    return []
