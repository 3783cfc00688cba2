"""The entry that every host needs: our MCP server by name, in a map of servers."""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.integrations.hosts.host import Settings, UnusableSettingsError
from memoranda.integrations.hosts.launch_command import PROGRAM, LaunchCommand

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
