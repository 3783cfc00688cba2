"""What the installer knows about a host: its settings files, and the command with which it starts Memoranda."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from memoranda.support.lazy_dataclass import dataclass

PROGRAM = "memoranda"
HOME_OPTION = "--home"
Settings = dict[str, Any]
OWNER_MARK = "Written by Memoranda"


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


class UnusableSettingsError(ValueError):
    """The settings of a host are not in the expected form, so they cannot be changed safely."""


@dataclass(frozen=True, slots=True)
class HostEnvironment:
    """Where to look for settings: the user's home directory, the platform, and the project when it is for one."""

    user_home: Path
    platform: str
    variables: Mapping[str, str] = field(default_factory=dict)
    project: Path | None = None

    def directory(self, variable: str, default: Path) -> Path:
        """Returns the directory that an environment variable names, else the default."""
        value = self.variables.get(variable, "").strip()
        return Path(value).expanduser() if value else default

    def app_data(self, name: str) -> Path:
        """Returns the directory in which a desktop program of this name keeps its data."""
        if self.platform == "darwin":
            return self.user_home / "Library" / "Application Support" / name
        if self.platform == "win32":
            return self.directory("APPDATA", self.user_home / "AppData" / "Roaming") / name
        return self.directory("XDG_CONFIG_HOME", self.user_home / ".config") / name


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One settings file of a host.

    `add` returns its settings with our entries, `remove` without them; neither changes the settings it gets.
    """

    path: Path
    add: Callable[[Settings, LaunchCommand], Settings]
    remove: Callable[[Settings], Settings]
    language: Literal["json", "json5", "toml", "yaml"] = "json"
    table: tuple[str, str] = ("", "")
    """For TOML and YAML: the names of the parent of our table or setting, and of the table or setting itself."""
    initial: Settings = field(default_factory=dict)
    """What a new file contains besides our entries."""
    local: bool = False
    """Whether the file stays on this machine even when it belongs to a project."""
    clean: Callable[[str], str] = lambda text: text
    """Removes what the host itself wrote about our entries; uninstalling applies it before `remove`."""

    def is_shared(self, environment: HostEnvironment) -> bool:
        """Whether other people who work on the project get the file too."""
        return environment.project is not None and not self.local


@dataclass(frozen=True, slots=True)
class PluginFile:
    """One file of a plugin that the host loads; the whole file is ours."""

    path: Path
    content: Callable[[LaunchCommand], bytes]


def no_plugin(environment: HostEnvironment) -> list[PluginFile]:
    """Returns the files of a host that gets no plugin."""
    return []


@dataclass(frozen=True, slots=True)
class OwnedFile:
    """One of our files in a directory that the host shares with others, such as a single-file plugin or a rule.

    Its text contains `OWNER_MARK`. A file without it belongs to the user: it is neither replaced nor removed.
    """

    path: Path
    render: Callable[[LaunchCommand], str]
    commands: Callable[[str], list[list[str]]] = lambda text: []
    """Returns our commands in the text, for the doctor."""


def no_owned_files(environment: HostEnvironment) -> list[OwnedFile]:
    return []


@dataclass(frozen=True, slots=True)
class Host:
    """A program that Memoranda can be installed into."""

    name: str
    title: str
    files: Callable[[HostEnvironment], list[SettingsFile]]
    next_step: str
    """What the user has to do after an installation."""
    has_projects: bool = True
    """Whether it has settings for a single project."""
    plugin: Callable[[HostEnvironment], list[PluginFile]] = no_plugin
    """The files of our plugin, all in its own directory; one of them, `memoranda.json`, contains our command."""
    owned_files: Callable[[HostEnvironment], list[OwnedFile]] = no_owned_files
    """Our files in directories of the host."""
