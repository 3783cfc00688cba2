"""Adds our commands to the hooks in a host's settings and removes them; the hooks of others are not touched.

Claude Code, Codex and Gemini CLI write hooks in the same form: a list of groups for each event, each with a list of
commands. Cursor has no groups, only a list of commands for each event.
"""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.integrations.hosts.host import Settings, UnusableSettingsError
from memoranda.integrations.hosts.launch_command import LaunchCommand, is_our_hook


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
