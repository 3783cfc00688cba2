"""The hosts that are known, by the names that people give on the command line."""

from pathlib import Path
from typing import Any

from memoranda.adapters.hosts import claude_code
from memoranda.adapters.hosts.host import Host, HostEnvironment, Settings, SettingsFile
from memoranda.adapters.hosts.launch_command import LaunchCommand
from memoranda.adapters.hosts.server_entry import add_server, remove_server, stdio_entry

_OPENCODE_SCHEMA = "https://opencode.ai/config.json"


def _json(file: Path, *path: str, **options: Any) -> list[SettingsFile]:
    return [SettingsFile(file, add_server(*path, **options), remove_server(*path))]


def _codex(around: HostEnvironment) -> list[SettingsFile]:
    directory = around.directory("CODEX_HOME", around.person / ".codex")
    if around.project is not None:
        directory = around.project / ".codex"
    table = ("mcp_servers", "memoranda")
    put, take = add_server("mcp_servers"), remove_server("mcp_servers")
    return [SettingsFile(directory / "config.toml", put, take, "toml", table)]


def _cursor(around: HostEnvironment) -> list[SettingsFile]:
    return _json((around.project or around.person) / ".cursor" / "mcp.json", "mcpServers")


def _claude_desktop(around: HostEnvironment) -> list[SettingsFile]:
    return _json(around.app_data("Claude") / "claude_desktop_config.json", "mcpServers")


def _vscode(around: HostEnvironment) -> list[SettingsFile]:
    directory = around.app_data("Code") / "User" if around.project is None else around.project / ".vscode"
    return _json(directory / "mcp.json", "servers", shape=stdio_entry)


def _gemini_cli(around: HostEnvironment) -> list[SettingsFile]:
    return _json((around.project or around.person) / ".gemini" / "settings.json", "mcpServers")


def _opencode(around: HostEnvironment) -> list[SettingsFile]:
    directory = around.project
    if directory is None:
        directory = around.directory("XDG_CONFIG_HOME", around.person / ".config") / "opencode"
    names = ("opencode.json", "opencode.jsonc")
    file = next((directory / name for name in names if (directory / name).exists()), directory / names[0])
    return [SettingsFile(file, _put_opencode, _take_opencode)]


def _put_opencode(settings: Settings, program: LaunchCommand) -> Settings:
    path = ("mcp", "servers") if _is_second_opencode(settings) else ("mcp",)
    if not settings:
        settings = {"$schema": _OPENCODE_SCHEMA}

    def shape(command: list[str]) -> dict[str, Any]:
        return {"type": "local", "command": command}

    return add_server(*path, shape=shape)(settings, program)


def _take_opencode(settings: Settings) -> Settings:
    taken = settings
    for path in (("mcp", "servers"), ("mcp",)):
        if path == ("mcp",) or _is_second_opencode(taken):
            taken = remove_server(*path)(taken)
    return {} if taken == {"$schema": _OPENCODE_SCHEMA} != settings else taken


def _is_second_opencode(settings: Settings) -> bool:
    """Whether servers have a map of their own, as in version 2; in version 1 a server can have that name."""
    mcp = settings.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, dict) else None
    return isinstance(servers, dict) and not {"type", "command", "url", "enabled"} & {
        key for key, value in servers.items() if not isinstance(value, dict)
    }


_RESTART = "Restart {title}; its list of MCP servers shows memoranda."
_HOSTS = (
    claude_code.HOST,
    Host("codex", "Codex", _codex, "Start a new session of Codex; /mcp shows what was added."),
    Host("cursor", "Cursor", _cursor, _RESTART.format(title="Cursor")),
    Host("claude-desktop", "Claude Desktop", _claude_desktop, "Quit Claude Desktop completely and start it again.",
         has_projects=False),
    Host("vscode", "VS Code", _vscode, _RESTART.format(title="VS Code")),
    Host("gemini-cli", "Gemini CLI", _gemini_cli, "Start a new session of Gemini CLI; /mcp shows what was added."),
    Host("opencode", "opencode", _opencode, "Start opencode again; 'opencode mcp list' shows what was added."),
)  # fmt: skip
HOSTS = {host.name: host for host in _HOSTS}
