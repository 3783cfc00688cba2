"""Refuses the options of a command that a service does not have, instead of ignoring them."""

from collections.abc import Mapping
from typing import Any

from memoranda.cli.context import Invocation


def refuse_options(invocation: Invocation, options: Mapping[str, Any]) -> None:
    """Ends the command if one of these options was given: its value is neither missing, false, zero nor empty."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        invocation.fail(f"{given[0]} does not work with a service. Run the command on the machine of the service.")
