"""The hosts that Memoranda can be installed into, by their names on the command line."""

from pathlib import Path
from typing import Any

from memoranda.integrations.hosts import claude_code, codex, cursor, gemini_cli, opencode
from memoranda.integrations.hosts.hermes.host import HOST as HERMES_HOST
from memoranda.integrations.hosts.host import Host, HostEnvironment, SettingsFile
from memoranda.integrations.hosts.openclaw.host import HOST as OPENCLAW_HOST
from memoranda.integrations.hosts.server_entry import add_server, remove_server, stdio_entry


def _json_file(path: Path, *map_path: str, **options: Any) -> list[SettingsFile]:
    return [SettingsFile(path, add_server(*map_path, **options), remove_server(*map_path))]


def _claude_desktop(environment: HostEnvironment) -> list[SettingsFile]:
    return _json_file(environment.app_data("Claude") / "claude_desktop_config.json", "mcpServers")


def _vscode(environment: HostEnvironment) -> list[SettingsFile]:
    directory = environment.app_data("Code") / "User"
    if environment.project is not None:
        directory = environment.project / ".vscode"
    return _json_file(directory / "mcp.json", "servers", entry_format=stdio_entry)


_RESTART = "Restart {title}; its list of MCP servers shows memoranda."
_HOSTS = (
    claude_code.HOST,
    codex.HOST,
    cursor.HOST,
    Host(
        "claude-desktop",
        "Claude Desktop",
        _claude_desktop,
        "Quit Claude Desktop completely and start it again.",
        has_projects=False,
    ),
    Host("vscode", "VS Code", _vscode, _RESTART.format(title="VS Code")),
    gemini_cli.HOST,
    opencode.HOST,
    HERMES_HOST,
    OPENCLAW_HOST,
)
HOSTS = {host.name: host for host in _HOSTS}
