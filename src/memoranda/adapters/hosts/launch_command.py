"""How a host has to call us: which program, and with which home."""

import shlex
from dataclasses import dataclass

NAME = "memoranda"
HOME = "--home"


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """The words that start Memoranda, and the options by which it finds its home."""

    words: tuple[str, ...] = (NAME,)
    options: tuple[str, ...] = ()

    def server(self, *flags: str) -> list[str]:
        """What starts the MCP server."""
        return [*self.words, "mcp", *self.options, *flags]

    def shared(self) -> "LaunchCommand":
        """As a file calls it that others get too: by its name, and with the home that each of them has."""
        options = list(self.options)
        if HOME in options:
            place = options.index(HOME)
            del options[place : place + 2]
        return LaunchCommand((NAME,), tuple(options))

    def hook(self, host: str, event: str) -> str:
        """The shell command that answers an event of a host."""
        return shlex.join([*self.words, "hook", host, event, *self.options])


def is_our_hook(command: object, host: str) -> bool:
    """Whether a command in a host's settings is one of our hooks, wherever the program lies."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return any(
        first.endswith((NAME, f"{NAME}.exe")) and (second, third) == ("hook", host)
        for first, second, third in zip(words, words[1:], words[2:], strict=False)
    )
