"""OpenCode: adds our server to its settings, and a plugin that does what hooks do in other hosts."""

import json
from pathlib import Path
from typing import Any

from memoranda.integrations.hosts.host import OWNER_MARK, Host, HostEnvironment, OwnedFile, Settings, SettingsFile
from memoranda.integrations.hosts.launch_command import PROGRAM, LaunchCommand
from memoranda.integrations.hosts.server_entry import add_server, remove_server

NAME = "opencode"
_NEW_FILE = {"$schema": "https://opencode.ai/config.json"}
_PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_COMMAND_LINES = {"COMMAND": "const COMMAND = ", "OPTIONS": "const OPTIONS = "}


def _files(environment: HostEnvironment) -> list[SettingsFile]:
    if environment.project is not None:
        return [_settings_file(environment.project, ())]
    # The plugin gives the model its memory, so the server need not repeat it.
    return [_settings_file(_directory(environment), ("--bare",))]


def _plugin(environment: HostEnvironment) -> list[OwnedFile]:
    if environment.project is not None:
        # A plugin calls a program on this machine, and the collaborators of a project share its plugins.
        return []
    path = _directory(environment) / "plugins" / f"{PROGRAM}.js"
    return [OwnedFile(path, _render_plugin, _plugin_commands)]


def _directory(environment: HostEnvironment) -> Path:
    return environment.directory("XDG_CONFIG_HOME", environment.user_home / ".config") / "opencode"


def _settings_file(directory: Path, flags: tuple[str, ...]) -> SettingsFile:
    paths = [directory / name for name in ("opencode.json", "opencode.jsonc")]
    path = next((path for path in paths if path.exists()), paths[0])

    def add(settings: Settings, command: LaunchCommand) -> Settings:
        servers = ("mcp", "servers") if _is_version_2(settings) else ("mcp",)
        return add_server(*servers, entry_format=_local_entry, flags=flags)(settings, command)

    return SettingsFile(path, add, _remove, initial=_NEW_FILE)


def _local_entry(words: list[str]) -> dict[str, Any]:
    return {"type": "local", "command": words}


def _remove(settings: Settings) -> Settings:
    if _is_version_2(settings):
        settings = remove_server("mcp", "servers")(settings)
    return remove_server("mcp")(settings)


def _is_version_2(settings: Settings) -> bool:
    """Whether servers have their own map, as in version 2; in version 1 a server may be called "servers"."""
    mcp = settings.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, dict) else None
    return isinstance(servers, dict) and not {"type", "command", "url", "enabled"} & {
        key for key, value in servers.items() if not isinstance(value, dict)
    }


def _render_plugin(command: LaunchCommand) -> str:
    """Returns the text of the plugin, with the command that starts this program."""
    words = {"COMMAND": [*command.words, "hook", NAME], "OPTIONS": command.options}
    text = _PLUGIN.read_text("utf-8").replace("OWNER_MARK", OWNER_MARK)
    for name, start in _COMMAND_LINES.items():
        text = text.replace(f"{start}[]", f"{start}{json.dumps(words[name])}")
    return text


def _plugin_commands(text: str) -> list[list[str]]:
    """Returns the command in a plugin as a list of one; an empty list if a manual change made it unreadable."""
    words: list[str] = []
    for start in _COMMAND_LINES.values():
        line = next((line for line in text.splitlines() if line.startswith(start)), "")
        try:
            words += map(str, json.loads(line.removeprefix(start) or "[]"))
        except (ValueError, TypeError):
            return []
    return [words] if words else []


HOST = Host(
    NAME,
    "OpenCode",
    _files,
    "Start OpenCode again; 'opencode mcp list' shows the server, and the plugin works from the next prompt on.",
    owned_files=_plugin,
)
