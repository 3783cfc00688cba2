"""OpenClaw: adds a plugin to its extensions, and gives it the memory slot in openclaw.json."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from memoranda import __version__
from memoranda.integrations.hooks.events import OPENCLAW, TOOLS
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
from memoranda.support.relaxed_json import parse_json5

_CONFIG_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "owner": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Keys of further sessions that use the owner's memory",
        }
    },
}


def _files(environment: HostEnvironment) -> list[SettingsFile]:
    root = _root(environment)
    return [SettingsFile(_config(environment), _select, _deselect(root), "json5", local=True)]


def _plugin(environment: HostEnvironment) -> list[PluginFile]:
    directory = _directory(_root(environment))
    return [
        PluginFile(directory / "index.js", _plugin_code),
        PluginFile(directory / "openclaw.plugin.json", _manifest),
        PluginFile(directory / "package.json", _package),
        PluginFile(directory / FILE_NAME, partial(_settings, environment)),
    ]


def _root(environment: HostEnvironment) -> Path:
    user_home = environment.directory("OPENCLAW_HOME", environment.user_home)
    return environment.directory("OPENCLAW_STATE_DIR", user_home / ".openclaw")


def _config(environment: HostEnvironment) -> Path:
    return environment.directory("OPENCLAW_CONFIG_PATH", _root(environment) / "openclaw.json")


def _directory(root: Path) -> Path:
    return root / "extensions" / PROGRAM


def _select(settings: Settings, command: LaunchCommand) -> Settings:
    plugins = map_in(settings, "plugins")
    entries = map_in(plugins, "entries")
    entry = map_in(entries, PROGRAM)
    # Without this permission OpenClaw shows the plugin no prompts and no turns.
    hooks = {**map_in(entry, "hooks"), "allowConversationAccess": True}
    changed = {
        **plugins,
        "slots": {**map_in(plugins, "slots"), "memory": PROGRAM},
        "entries": {**entries, PROGRAM: {**entry, "enabled": True, "hooks": hooks}},
    }
    allowed = plugins.get("allow")
    if isinstance(allowed, list) and allowed and PROGRAM not in allowed:
        changed["allow"] = [*allowed, PROGRAM]
    return {**settings, "plugins": changed}


def _deselect(root: Path) -> Callable[[Settings], Settings]:
    """Returns a function that gives the slot back to the plugin that had it before, or else to the default."""

    def remove(settings: Settings) -> Settings:
        plugins = dict(map_in(settings, "plugins"))
        slots, entries = map_in(plugins, "slots"), map_in(plugins, "entries")
        if slots.get("memory") == PROGRAM:
            replaced = read_replaced(_directory(root))
            others = {name: value for name, value in slots.items() if name != "memory"}
            plugins["slots"] = {**others, "memory": replaced} if replaced else others
        plugins["entries"] = {name: value for name, value in entries.items() if name != PROGRAM}
        allowed = plugins.get("allow")
        if isinstance(allowed, list):
            plugins["allow"] = [name for name in allowed if name != PROGRAM]
        empty = [name for name in ("slots", "entries", "allow") if not plugins.get(name)]
        plugins = {name: value for name, value in plugins.items() if name not in empty}
        if plugins:
            return {**settings, "plugins": plugins}
        return {name: value for name, value in settings.items() if name != "plugins"}

    def remove_if_present(settings: Settings) -> Settings:
        return remove(settings) if PROGRAM in json.dumps(settings.get("plugins")) else settings

    return remove_if_present


def _plugin_code(command: LaunchCommand) -> bytes:
    return Path(__file__).with_name("openclaw_plugin.js").read_bytes()


def _manifest(command: LaunchCommand) -> bytes:
    return _json(
        {
            "id": PROGRAM,
            "name": "Memoranda",
            "version": __version__,
            "description": DESCRIPTION,
            "kind": "memory",
            "activation": {"onStartup": True},
            "contracts": {"tools": list(TOOLS)},
            "configSchema": _CONFIG_SCHEMA,
        }
    )


def _package(command: LaunchCommand) -> bytes:
    return _json(
        {
            "name": "memoranda-openclaw",
            "version": __version__,
            "private": True,
            "type": "module",
            "openclaw": {"extensions": ["./index.js"]},
        }
    )


def _settings(environment: HostEnvironment, command: LaunchCommand) -> bytes:
    text = (read_settings(_config(environment)) or b"").decode()
    settings = parse_json5(text) if text.strip() else {}
    selected = map_in(map_in(settings, "plugins"), "slots").get("memory")
    root = _root(environment)
    return plugin_settings(OPENCLAW, command, root, _directory(root), selected)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


OPENCLAW_HOST = Host(
    OPENCLAW,
    "OpenClaw",
    _files,
    "Restart the gateway ('openclaw gateway restart'); 'openclaw plugins inspect memoranda' shows the plugin. The "
    "memory files in the workspace stay as they are.",
    has_projects=False,
    plugin=_plugin,
)
