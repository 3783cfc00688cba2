"""The environment variables that a plugin asks Memoranda for.

Only `memoranda.config` reads the environment, and it is above this package: it provides the function that reads one.
"""

from collections.abc import Callable

ReadVariable = Callable[[str], str | None]
_readers: list[ReadVariable] = []


def provide_variables(read: ReadVariable) -> None:
    """Use this function to read variables from now on."""
    _readers[:] = [read]


def read_variable(name: str) -> str | None:
    """The value of a variable; None when it is not set, or nothing has provided variables."""
    return _readers[0](name) if _readers else None
