"""What a host is to an installer: settings files, and what has to stand in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memoranda.adapters.hosts.launch_command import LaunchCommand

Settings = dict[str, Any]


class UnusableSettingsError(ValueError):
    """The settings of a host are not in the expected form, so they cannot be changed safely."""


@dataclass(frozen=True, slots=True)
class HostEnvironment:
    """Where a person works: their home, their system, and the project that is meant, if only one is."""

    person: Path
    platform: str
    variables: Mapping[str, str] = field(default_factory=dict)
    project: Path | None = None

    def directory(self, variable: str, otherwise: Path) -> Path:
        """A directory that a variable may name."""
        named = self.variables.get(variable, "").strip()
        return Path(named).expanduser() if named else otherwise

    def app_data(self, name: str) -> Path:
        """Where a desktop program of this name keeps its data."""
        if self.platform == "darwin":
            return self.person / "Library" / "Application Support" / name
        if self.platform == "win32":
            return self.directory("APPDATA", self.person / "AppData" / "Roaming") / name
        return self.directory("XDG_CONFIG_HOME", self.person / ".config") / name


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One file of a host: `put` gives its settings with ours in them, `take` without. Neither changes what it gets."""

    file: Path
    put: Callable[[Settings, LaunchCommand], Settings]
    take: Callable[[Settings], Settings]
    language: Literal["json", "toml"] = "json"
    table: tuple[str, str] = ("", "")
    """For TOML: the one table that is ours."""
    local: bool = False
    """Whether it stays on this machine even when it belongs to a project."""

    def is_shared(self, around: HostEnvironment) -> bool:
        """Whether others who work on the project get it too."""
        return around.project is not None and not self.local


@dataclass(frozen=True, slots=True)
class Host:
    """A program that people work in."""

    name: str
    title: str
    files: Callable[[HostEnvironment], list[SettingsFile]]
    then: str
    """What a person has to do afterwards."""
    has_projects: bool = True
    """Whether it has settings for a single project."""
