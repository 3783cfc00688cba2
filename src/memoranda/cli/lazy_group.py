"""A group of commands that loads only the one that is called: a command needs little of what its neighbours need."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group with a table of its commands, in the order of its help: each with its module and function."""

    def __init__(self, *args: Any, functions: Mapping[str, str], **options: Any) -> None:
        """`functions` are written as "package.module:function"; without a function it is `command`."""
        super().__init__(*args, **options)
        self._functions = functions

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._functions)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._functions:
            return None
        module, _, function = self._functions[cmd_name].partition(":")
        command = getattr(import_module(module), function or "command")
        assert isinstance(command, click.Command)
        return command
