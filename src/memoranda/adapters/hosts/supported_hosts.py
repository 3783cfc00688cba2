"""The hosts that Memoranda can be installed into, by their names on the command line."""

from pathlib import Path
from typing import Any

from memoranda.adapters.hosts import claude_code, codex
from memoranda.adapters.hosts.hermes.host import HOST as HERMES_HOST
from memoranda.adapters.hosts.host import Host, HostEnvironment, Settings, SettingsFile
from memoranda.adapters.hosts.launch_command import LaunchCommand
from memoranda.adapters.hosts.server_entry import add_server, remove_server, stdio_entry

_NEW_OPENCODE_FILE = {"$schema": "https://opencode.ai/config.json"}


def _json_file(path: Path, *map_path: str, **options: Any) -> list[SettingsFile]:
    return [SettingsFile(path, add_server(*map_path, **options), remove_server(*map_path))]


def _cursor(environment: HostEnvironment) -> list[SettingsFile]:
    return _json_file((environment.project or environment.user_home) / ".cursor" / "mcp.json", "mcpServers")


def _claude_desktop(environment: HostEnvironment) -> list[SettingsFile]:
    return _json_file(environment.app_data("Claude") / "claude_desktop_config.json", "mcpServers")


def _vscode(environment: HostEnvironment) -> list[SettingsFile]:
    directory = environment.app_data("Code") / "User"
    if environment.project is not None:
        directory = environment.project / ".vscode"
    return _json_file(directory / "mcp.json", "servers", entry_format=stdio_entry)


def _gemini_cli(environment: HostEnvironment) -> list[SettingsFile]:
    return _json_file((environment.project or environment.user_home) / ".gemini" / "settings.json", "mcpServers")


def _opencode(environment: HostEnvironment) -> list[SettingsFile]:
    directory = environment.project
    if directory is None:
        directory = environment.directory("XDG_CONFIG_HOME", environment.user_home / ".config") / "opencode"
    paths = [directory / name for name in ("opencode.json", "opencode.jsonc")]
    path = next((path for path in paths if path.exists()), paths[0])
    return [SettingsFile(path, _add_to_opencode, _remove_from_opencode, initial=_NEW_OPENCODE_FILE)]


def _add_to_opencode(settings: Settings, command: LaunchCommand) -> Settings:
    path = ("mcp", "servers") if _is_opencode_2(settings) else ("mcp",)

    def local_entry(words: list[str]) -> dict[str, Any]:
        return {"type": "local", "command": words}

    return add_server(*path, entry_format=local_entry)(settings, command)


def _remove_from_opencode(settings: Settings) -> Settings:
    if _is_opencode_2(settings):
        settings = remove_server("mcp", "servers")(settings)
    return remove_server("mcp")(settings)


def _is_opencode_2(settings: Settings) -> bool:
    """Whether servers have a map of their own, as in version 2; in version 1 a server may be called "servers"."""
    mcp = settings.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, dict) else None
    return isinstance(servers, dict) and not {"type", "command", "url", "enabled"} & {
        key for key, value in servers.items() if not isinstance(value, dict)
    }


_RESTART = "Restart {title}; its list of MCP servers shows memoranda."
_HOSTS = (
    claude_code.HOST,
    codex.HOST,
    Host("cursor", "Cursor", _cursor, _RESTART.format(title="Cursor")),
    Host(
        "claude-desktop",
        "Claude Desktop",
        _claude_desktop,
        "Quit Claude Desktop completely and start it again.",
        has_projects=False,
    ),
    Host("vscode", "VS Code", _vscode, _RESTART.format(title="VS Code")),
    Host("gemini-cli", "Gemini CLI", _gemini_cli, "Start a new session of Gemini CLI; /mcp shows what was added."),
    Host("opencode", "opencode", _opencode, "Start opencode again; 'opencode mcp list' shows what was added."),
    HERMES_HOST,
)
HOSTS = {host.name: host for host in _HOSTS}
