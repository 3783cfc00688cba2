"""Claude Code: adds our server to its MCP servers, and our commands to its hooks."""

from memoranda.integrations.hosts.hook_settings import add_hooks, remove_hooks
from memoranda.integrations.hosts.host import Host, HostEnvironment, SettingsFile
from memoranda.integrations.hosts.server_entry import add_server, remove_server, stdio_entry

NAME = "claude-code"
# Seconds after which the host stops a hook; ours answer long before.
_TIMEOUT = {"timeout": 10}
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")


def _files(environment: HostEnvironment) -> list[SettingsFile]:
    project = environment.project
    if project is None:
        base = environment.directory("CLAUDE_CONFIG_DIR", environment.user_home)
        servers = base / ".claude.json"
        settings = environment.directory("CLAUDE_CONFIG_DIR", base / ".claude") / "settings.json"
    else:
        # A project shares its servers; hooks are commands on this machine, so they go to the file that is not shared.
        servers, settings = project / ".mcp.json", project / ".claude" / "settings.local.json"
    # Our hooks give the model its memory, so the server need not repeat it. People who only get the shared
    # file have no hooks.
    add = add_server("mcpServers", entry_format=stdio_entry, flags=("--bare",) if project is None else ())
    hooks = SettingsFile(settings, add_hooks(NAME, dict.fromkeys(EVENTS, _TIMEOUT)), remove_hooks(NAME), local=True)
    return [SettingsFile(servers, add, remove_server("mcpServers")), hooks]


HOST = Host(NAME, "Claude Code", _files, "Start a new session of Claude Code; /mcp and /hooks show what was added.")
