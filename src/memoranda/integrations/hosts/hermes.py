"""Hermes: adds a memory provider to its plugins, and selects it in its config.yaml."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from memoranda import __version__
from memoranda.integrations.hooks.events import HERMES
from memoranda.integrations.hosts.host import (
    PROGRAM,
    Host,
    HostEnvironment,
    LaunchCommand,
    PluginFile,
    Settings,
    SettingsFile,
)
from memoranda.integrations.hosts.plugin_settings import DESCRIPTION, FILE_NAME, map_in, plugin_settings, read_replaced
from memoranda.integrations.hosts.settings_change import read_settings
from memoranda.integrations.hosts.yaml_edit import read_yaml

_SECTION, _KEY = "memory", "provider"


def _files(environment: HostEnvironment) -> list[SettingsFile]:
    root = _root(environment)
    return [SettingsFile(_config(root), _select, _deselect(root), "yaml", (_SECTION, _KEY), local=True)]


def _plugin(environment: HostEnvironment) -> list[PluginFile]:
    root = _root(environment)
    directory = _directory(root)
    return [
        PluginFile(directory / "__init__.py", _provider_code),
        PluginFile(directory / "plugin.yaml", _manifest),
        PluginFile(directory / FILE_NAME, partial(_settings, root)),
    ]


def _root(environment: HostEnvironment) -> Path:
    return environment.directory("HERMES_HOME", environment.user_home / ".hermes")


def _config(root: Path) -> Path:
    return root / "config.yaml"


def _directory(root: Path) -> Path:
    return root / "plugins" / PROGRAM


def _select(settings: Settings, command: LaunchCommand) -> Settings:
    return {**settings, _SECTION: {**map_in(settings, _SECTION), _KEY: PROGRAM}}


def _deselect(root: Path) -> Callable[[Settings], Settings]:
    """Returns a function that selects the provider from before the installation again, or none."""

    def remove(settings: Settings) -> Settings:
        section = map_in(settings, _SECTION)
        if section.get(_KEY) != PROGRAM:
            return settings
        replaced = read_replaced(_directory(root))
        others = {name: value for name, value in section.items() if name != _KEY}
        section = {**others, _KEY: replaced} if replaced else others
        rest = {name: value for name, value in settings.items() if name != _SECTION}
        return {**rest, _SECTION: section} if section else rest

    return remove


def _provider_code(command: LaunchCommand) -> bytes:
    return Path(__file__).with_name("hermes_plugin.py").read_bytes()


def _manifest(command: LaunchCommand) -> bytes:
    return f'name: {PROGRAM}\nversion: "{__version__}"\ndescription: "{DESCRIPTION}"\n'.encode()


def _settings(root: Path, command: LaunchCommand) -> bytes:
    selected = map_in(read_yaml((read_settings(_config(root)) or b"").decode()), _SECTION).get(_KEY)
    return plugin_settings(HERMES, command, root, _directory(root), selected)


HERMES_HOST = Host(
    HERMES,
    "Hermes",
    _files,
    "Start a new session of Hermes; 'hermes memory status' shows the provider. Its MEMORY.md and USER.md stay as they "
    "are.",
    has_projects=False,
    plugin=_plugin,
)
