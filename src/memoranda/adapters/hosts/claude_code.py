"""Claude Code: our server among its MCP servers, and our commands among its hooks."""

from typing import Any

from memoranda.adapters.hosts.host import Host, HostEnvironment, Settings, SettingsFile, UnusableSettingsError
from memoranda.adapters.hosts.launch_command import LaunchCommand, is_our_hook
from memoranda.adapters.hosts.server_entry import add_server, remove_server, stdio_entry

NAME = "claude-code"
# Seconds after which the host gives a hook up; ours answer long before.
_TIMEOUT = 10
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")


def _files(around: HostEnvironment) -> list[SettingsFile]:
    own = around.directory("CLAUDE_CONFIG_DIR", around.person)
    servers, settings = own / ".claude.json", around.directory("CLAUDE_CONFIG_DIR", own / ".claude") / "settings.json"
    if around.project is not None:
        # The servers of a project are everybody's; hooks are commands on this machine, so they stay in its own file.
        servers, settings = around.project / ".mcp.json", around.project / ".claude" / "settings.local.json"
    # The hooks give what is remembered, so that the server need not say it as well; but others who get it have none.
    put = add_server("mcpServers", shape=stdio_entry, flags=("--bare",) if around.project is None else ())
    hooks = SettingsFile(settings, _put_hooks, _take_hooks, local=True)
    return [SettingsFile(servers, put, remove_server("mcpServers")), hooks]


HOST = Host(NAME, "Claude Code", _files, "Start a new session of Claude Code; /mcp and /hooks show what was added.")


def _put_hooks(settings: Settings, program: LaunchCommand) -> Settings:
    hooks = _hooks(settings)
    for event in EVENTS:
        ours = {"hooks": [{"type": "command", "command": program.hook(NAME, event), "timeout": _TIMEOUT}]}
        groups = _groups(hooks, event)
        places = [place for place, group in enumerate(groups) if _is_ours(group)]
        rest = [group for group in map(_without_ours, groups) if group is not None]
        at = min(places, default=len(rest))
        hooks[event] = [*rest[:at], ours, *rest[at:]]
    return {**settings, "hooks": hooks}


def _take_hooks(settings: Settings) -> Settings:
    hooks = _hooks(settings)
    for event in list(hooks):
        groups = _groups(hooks, event)
        kept = [group for group in map(_without_ours, groups) if group is not None]
        if kept != groups:
            hooks[event] = kept
            if not kept:
                del hooks[event]
    if hooks:
        return {**settings, "hooks": hooks}
    return {key: value for key, value in settings.items() if key != "hooks"}


def _hooks(settings: Settings) -> dict[str, Any]:
    hooks = settings.get("hooks") or {}
    if not isinstance(hooks, dict):
        raise UnusableSettingsError(f"hooks is {type(hooks).__name__}, not a map")
    return dict(hooks)


def _groups(hooks: dict[str, Any], event: str) -> list[Any]:
    groups = hooks.get(event) or []
    if not isinstance(groups, list):
        raise UnusableSettingsError(f"hooks.{event} is {type(groups).__name__}, not a list")
    return groups


def _commands(group: Any) -> list[Any]:
    commands = group.get("hooks") if isinstance(group, dict) else None
    return commands if isinstance(commands, list) else []


def _is_our_command(command: Any) -> bool:
    return isinstance(command, dict) and is_our_hook(command.get("command"), NAME)


def _is_ours(group: Any) -> bool:
    commands = _commands(group)
    return bool(commands) and all(map(_is_our_command, commands))


def _without_ours(group: Any) -> Any:
    """A group without our commands; None when it has no others."""
    commands = _commands(group)
    kept = [command for command in commands if not _is_our_command(command)]
    if len(kept) == len(commands):
        return group
    return {**group, "hooks": kept} if kept else None
