"""The one entry that most hosts want: a server by name, in a map of servers."""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.adapters.hosts.host import Settings, UnusableSettingsError
from memoranda.adapters.hosts.launch_command import NAME, LaunchCommand

_REMOTE = frozenset({"url", "httpUrl", "serverUrl", "headers", "type"})

Shape = Callable[[list[str]], dict[str, Any]]


def command_and_args(command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:]}


def stdio_entry(command: list[str]) -> dict[str, Any]:
    return {"type": "stdio", **command_and_args(command)}


def add_server(
    *path: str, shape: Shape = command_and_args, flags: tuple[str, ...] = ()
) -> Callable[[Settings, LaunchCommand], Settings]:
    """Settings with our server in the map at `path`; what a person added to its entry stays."""

    def put(settings: Settings, program: LaunchCommand) -> Settings:
        servers = _map_at(settings, path)
        there = servers.get(NAME)
        ours = shape(program.server(*flags))
        # An entry that reaches a server over HTTP becomes one that starts a program.
        kept = {key: value for key, value in there.items() if key not in _REMOTE} if isinstance(there, dict) else {}
        return _with_map(settings, path, {**servers, NAME: {**kept, **ours}})

    return put


def remove_server(*path: str) -> Callable[[Settings], Settings]:
    """Settings without our server; maps that are empty then go too."""

    def take(settings: Settings) -> Settings:
        servers = _map_at(settings, path)
        if NAME not in servers:
            return settings
        return _with_map(settings, path, {key: value for key, value in servers.items() if key != NAME})

    return take


def _map_at(settings: Settings, path: tuple[str, ...]) -> dict[str, Any]:
    found: Any = settings
    for name in path:
        found = found.get(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise UnusableSettingsError(f"{'.'.join(path)} is {type(found).__name__}, not a map")
    return dict(found)


def _with_map(settings: Mapping[str, Any], path: tuple[str, ...], value: dict[str, Any]) -> Settings:
    if not path:
        return value
    inner = settings.get(path[0])
    made = _with_map(inner if isinstance(inner, dict) else {}, path[1:], value)
    if made:
        return {**settings, path[0]: made}
    return {key: each for key, each in settings.items() if key != path[0]}
