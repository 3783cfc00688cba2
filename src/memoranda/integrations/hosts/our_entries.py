"""Our entries in the settings of a host, our MCP server and our hooks: how they are added and removed.

Entries of others are not touched. Claude Code, Codex and Gemini CLI write hooks in the same form: a list of groups for
each event, each with a list of commands. Cursor has no groups, only a list of commands for each event.
"""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.integrations.hosts.host import PROGRAM, LaunchCommand, Settings, UnusableSettingsError, is_our_hook

_REMOTE_KEYS = frozenset({"url", "httpUrl", "serverUrl", "headers", "type"})

EntryFormat = Callable[[list[str]], dict[str, Any]]


def plain_entry(command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:]}


def stdio_entry(command: list[str]) -> dict[str, Any]:
    return {"type": "stdio", **plain_entry(command)}


def add_server(
    *path: str,
    entry_format: EntryFormat = plain_entry,
    flags: tuple[str, ...] = (),
    defaults: Mapping[str, Any] | None = None,
) -> Callable[[Settings, LaunchCommand], Settings]:
    """Returns a function that adds our server to the map at `path`.

    Keys that the user added to the entry stay, and so does a value that the user gave to one of the `defaults`.
    """

    def add(settings: Settings, command: LaunchCommand) -> Settings:
        servers = _map_at(settings, path)
        current = servers.get(PROGRAM)
        # The entry may have been one for a server over HTTP; ours starts a program.
        kept = (
            {key: value for key, value in current.items() if key not in _REMOTE_KEYS}
            if isinstance(current, dict)
            else {}
        )
        entry = {**kept, **entry_format(command.server(*flags))}
        return _with_map(settings, path, {**servers, PROGRAM: {**entry, **(defaults or {}), **entry}})

    return add


def remove_server(*path: str) -> Callable[[Settings], Settings]:
    """Returns a function that removes our server from the map at `path`, and the map if nothing else is in it."""

    def remove(settings: Settings) -> Settings:
        servers = _map_at(settings, path)
        if PROGRAM not in servers:
            return settings
        return _with_map(settings, path, {key: value for key, value in servers.items() if key != PROGRAM})

    return remove


def _map_at(settings: Settings, path: tuple[str, ...]) -> dict[str, Any]:
    value: Any = settings
    for name in path:
        value = value.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise UnusableSettingsError(f"{'.'.join(path)} is {type(value).__name__}, not a map")
    return dict(value)


def _with_map(settings: Mapping[str, Any], path: tuple[str, ...], value: dict[str, Any]) -> Settings:
    """Returns the settings with another map at `path`; an empty map is removed."""
    if not path:
        return value
    inner = settings.get(path[0])
    changed = _with_map(inner if isinstance(inner, dict) else {}, path[1:], value)
    if changed:
        return {**settings, path[0]: changed}
    return {key: other for key, other in settings.items() if key != path[0]}


def add_hooks(
    host: str, events: Mapping[str, Mapping[str, Any]], *, grouped: bool = True
) -> Callable[[Settings, LaunchCommand], Settings]:
    """Returns a function that adds one group with our command to each event; `events` maps an event to its options.

    An existing group of ours is replaced in place. In a host without groups, the command itself is added.
    """

    def add(settings: Settings, command: LaunchCommand) -> Settings:
        hooks = _hooks(settings)
        for event, options in events.items():
            ours: dict[str, Any] = {"command": command.hook(host, event), **options}
            if grouped:
                ours = {"hooks": [{"type": "command", **ours}]}
            groups = _groups(hooks, event)
            positions = [index for index, group in enumerate(groups) if _is_ours(group, host)]
            others = _other_groups(groups, host)
            position = min(positions, default=len(others))
            hooks[event] = [*others[:position], ours, *others[position:]]
        return {**settings, "hooks": hooks}

    return add


def remove_hooks(host: str) -> Callable[[Settings], Settings]:
    """Returns a function that removes our commands, and the groups and events that are empty without them."""

    def remove(settings: Settings) -> Settings:
        hooks = _hooks(settings)
        for event in list(hooks):
            groups = _groups(hooks, event)
            others = _other_groups(groups, host)
            if others != groups:
                hooks[event] = others
                if not others:
                    del hooks[event]
        if hooks:
            return {**settings, "hooks": hooks}
        return {key: value for key, value in settings.items() if key != "hooks"}

    return remove


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
    if isinstance(group, dict) and "command" in group:
        return [group]
    commands = group.get("hooks") if isinstance(group, dict) else None
    return commands if isinstance(commands, list) else []


def _is_our_command(command: Any, host: str) -> bool:
    return isinstance(command, dict) and is_our_hook(command.get("command"), host)


def _is_ours(group: Any, host: str) -> bool:
    commands = _commands(group)
    return bool(commands) and all(_is_our_command(command, host) for command in commands)


def _other_groups(groups: list[Any], host: str) -> list[Any]:
    """Returns the groups without our commands; a group that has no other command is omitted."""
    without_ours = (_without_ours(group, host) for group in groups)
    return [group for group in without_ours if group is not None]


def _without_ours(group: Any, host: str) -> Any:
    commands = _commands(group)
    others = [command for command in commands if not _is_our_command(command, host)]
    if len(others) == len(commands):
        return group
    return {**group, "hooks": others} if others else None
