"""The environment variables that a plugin or a vendor's library asks Memoranda for.

Only `memoranda.home.config` uses the environment, and it is above this package: it provides the functions for it.
"""

from collections.abc import Callable
from typing import NamedTuple

from memoranda.errors import ProviderError

ReadVariable = Callable[[str], str | None]
SetDefault = Callable[[str, str], str]


class _Environment(NamedTuple):
    read: ReadVariable
    set_default: SetDefault


_provided: list[_Environment] = []


def provide_variables(read: ReadVariable, set_default: SetDefault) -> None:
    """Use these functions for variables from now on; `set_default` sets one that is not set."""
    _provided[:] = [_Environment(read, set_default)]


def read_variable(name: str) -> str | None:
    """The value of a variable; None when it is not set, or nothing has provided variables."""
    return _provided[0].read(name) if _provided else None


def set_default_variable(name: str, value: str) -> None:
    """Set a variable that a library reads when it is imported, unless it is set. Raises ProviderError if it cannot."""
    if not _provided:
        raise ProviderError(f"{name} cannot be set, because memoranda.home.config is not loaded.")
    _provided[0].set_default(name, value)
