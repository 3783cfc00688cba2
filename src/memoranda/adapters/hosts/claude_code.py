"""Claude Code: adds our server to its MCP servers, and our commands to its hooks."""

from typing import Any

from memoranda.adapters.hosts.host import Host, HostEnvironment, Settings, SettingsFile, UnusableSettingsError
from memoranda.adapters.hosts.launch_command import LaunchCommand, is_our_hook
from memoranda.adapters.hosts.server_entry import add_server, remove_server, stdio_entry

NAME = "claude-code"
# Seconds after which the host stops a hook; ours answer long before.
_TIMEOUT = 10
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
    hooks = SettingsFile(settings, _add_hooks, _remove_hooks, local=True)
    return [SettingsFile(servers, add, remove_server("mcpServers")), hooks]


HOST = Host(NAME, "Claude Code", _files, "Start a new session of Claude Code; /mcp and /hooks show what was added.")


def _add_hooks(settings: Settings, command: LaunchCommand) -> Settings:
    """Adds one group with our command to each event; a group of ours that is already there is replaced in place."""
    hooks = _hooks(settings)
    for event in EVENTS:
        ours = {"hooks": [{"type": "command", "command": command.hook(NAME, event), "timeout": _TIMEOUT}]}
        groups = _groups(hooks, event)
        positions = [index for index, group in enumerate(groups) if _is_ours(group)]
        others = [group for group in map(_without_ours, groups) if group is not None]
        position = min(positions, default=len(others))
        hooks[event] = [*others[:position], ours, *others[position:]]
    return {**settings, "hooks": hooks}


def _remove_hooks(settings: Settings) -> Settings:
    hooks = _hooks(settings)
    for event in list(hooks):
        groups = _groups(hooks, event)
        others = [group for group in map(_without_ours, groups) if group is not None]
        if others != groups:
            hooks[event] = others
            if not others:
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
    """Returns a group without our commands; None when no other commands are in it."""
    commands = _commands(group)
    others = [command for command in commands if not _is_our_command(command)]
    if len(others) == len(commands):
        return group
    return {**group, "hooks": others} if others else None
