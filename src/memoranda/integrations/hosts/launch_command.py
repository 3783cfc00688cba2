"""The command line with which a host starts Memoranda: which program, and with which home."""

import shlex
from dataclasses import dataclass

PROGRAM = "memoranda"
HOME_OPTION = "--home"


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """The words that start the program, and the options that select its home."""

    words: tuple[str, ...] = (PROGRAM,)
    options: tuple[str, ...] = ()
    home: str = ""
    """The directory of the home, for a plugin that writes there by itself."""

    def server(self, *flags: str) -> list[str]:
        """Returns the command line of the MCP server."""
        return [*self.words, "mcp", *self.options, *flags]

    def for_shared_file(self) -> "LaunchCommand":
        """Returns the command for a file that other people get too: the program by name, without this user's home."""
        options = list(self.options)
        if HOME_OPTION in options:
            index = options.index(HOME_OPTION)
            del options[index : index + 2]
        return LaunchCommand((PROGRAM,), tuple(options))

    def hook(self, host: str, event: str) -> str:
        """Returns the shell command that answers an event of a host."""
        return shlex.join([*self.words, "hook", host, event, *self.options])


def is_our_hook(command: object, host: str) -> bool:
    """Whether a command in a host's settings is one of our hooks, whatever the path of the program."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return any(
        first.endswith((PROGRAM, f"{PROGRAM}.exe")) and (second, third) == ("hook", host)
        for first, second, third in zip(words, words[1:], words[2:], strict=False)
    )
