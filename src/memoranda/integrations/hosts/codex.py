"""Codex: adds our server to its config.toml, and our commands to its hooks.json.

Codex runs a hook only after the user has reviewed it (`/hooks`). The server therefore provides the memory too, and
Codex waits for the server: its first request contains the memory even before the user trusts the hooks.

Uninstalling also removes what Codex stored about our hooks: the user's review of each, under `[hooks.state]` in its
config.toml. Codex identifies a hook by its file, event and position, such as
`/home/ann/.codex/hooks.json:session_start:0:0`. So the hook at that position shows whether a review is about a hook of
ours; the reviews of other hooks stay.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.integrations.hosts.host import PROGRAM, Host, HostEnvironment, SettingsFile, is_our_hook
from memoranda.integrations.hosts.our_entries import add_hooks, add_server, remove_hooks, remove_server
from memoranda.integrations.hosts.settings_change import SettingsError, read_settings
from memoranda.support.relaxed_json import JsonTextError, parse

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
NAME = "codex"
# Codex sends its first request without the tools of a server that is not required. A required server that does not
# start in time stops Codex, so it gets more than the ten seconds of other servers.
_WAIT_FOR_SERVER = {"required": True, "startup_timeout_sec": 60}
_TIMEOUT = {"timeout": 10}
# Codex moves longer context to a file. It counts tokens by bytes, and 9,500 characters may be 28,500 bytes.
_CONTEXT_OPTIONS = {**_TIMEOUT, "additionalContextLimit": 10_000}
# Codex stops this one after three seconds at the latest, and warns about a longer timeout.
_SESSION_END_OPTIONS = {"timeout": 3}
EVENTS = {
    "SessionStart": _CONTEXT_OPTIONS,
    "UserPromptSubmit": _CONTEXT_OPTIONS,
    "Stop": _TIMEOUT,
    "SubagentStop": _TIMEOUT,
    "PreCompact": _TIMEOUT,
    "SessionEnd": _SESSION_END_OPTIONS,
}


def _files(environment: HostEnvironment) -> list[SettingsFile]:
    table = ("mcp_servers", PROGRAM)
    remove = remove_server("mcp_servers")
    if environment.project is not None:
        # Others may not have Memoranda: a required server would stop their Codex, and our hooks would disturb it.
        path = environment.project / ".codex" / "config.toml"
        return [SettingsFile(path, add_server("mcp_servers"), remove, "toml", table)]
    directory = environment.directory("CODEX_HOME", environment.user_home / ".codex")
    add = add_server("mcp_servers", defaults=_WAIT_FOR_SERVER)
    hooks = SettingsFile(directory / "hooks.json", add_hooks(NAME, EVENTS), remove_hooks(NAME), local=True)
    config = SettingsFile(
        directory / "config.toml",
        add,
        remove,
        "toml",
        table,
        clean=lambda text: _remove_our_state(text, hooks.path, NAME),
    )
    return [config, hooks]


CODEX_HOST = Host(
    NAME,
    "Codex",
    _files,
    "Start Codex and trust the hooks that it asks you to review (/hooks): until then it does not run them, and "
    "Memoranda records nothing. /mcp shows the server.",
)


def _remove_our_state(text: str, hooks_file: Path, host: str) -> str:
    """Returns the text of config.toml without the reviews of our hooks; unchanged if that cannot be done safely."""
    keys = set(_our_keys(hooks_file, host))
    try:
        settings = tomllib.loads(text)
        state = _state_of(settings)
        if not keys & state.keys():
            return text
        result = _remove_tables(text, keys)
        is_as_intended = tomllib.loads(result) == _without_state(settings, keys)
    except (tomllib.TOMLDecodeError, RecursionError):
        # A file that cannot be read is reported by the edit that follows.
        return text
    return result if is_as_intended else text


def _our_keys(hooks_file: Path, host: str) -> Iterator[str]:
    """Yields the keys under which Codex stores the reviews of our hooks."""
    try:
        settings = parse((read_settings(hooks_file) or b"{}").decode()).value
    except (SettingsError, JsonTextError, UnicodeDecodeError):
        return
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        name = _CAPITAL.sub("_", event).lower()
        for group_index, group in enumerate(groups if isinstance(groups, list) else ()):
            commands = group.get("hooks") if isinstance(group, dict) else None
            for index, command in enumerate(commands if isinstance(commands, list) else ()):
                if isinstance(command, dict) and is_our_hook(command.get("command"), host):
                    for path in {str(hooks_file), os.path.realpath(hooks_file)}:
                        yield f"{path}:{name}:{group_index}:{index}"


def _state_of(settings: dict[str, Any]) -> dict[str, Any]:
    hooks = settings.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return state if isinstance(state, dict) else {}


def _without_state(settings: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    state = {key: value for key, value in _state_of(settings).items() if key not in keys}
    hooks = {key: value for key, value in settings["hooks"].items() if key != "state"}
    if state:
        hooks["state"] = state
    rest = {key: value for key, value in settings.items() if key != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def _remove_tables(text: str, keys: set[str]) -> str:
    """Removes the tables of these reviews, and then the table above them if it is empty."""
    lines = text.splitlines(keepends=True)
    headers = [(index, _parse_header(line)) for index, line in enumerate(lines) if line.startswith("[")]
    ends = [index for index, _ in headers[1:]] + [len(lines)]
    ours = [
        (start, end)
        for (start, path), end in zip(headers, ends, strict=True)
        if len(path) == 3 and path[:2] == ("hooks", "state") and path[2] in keys
    ]
    if not any(path[:2] == ("hooks", "state") and len(path) > 2 and path[2] not in keys for _, path in headers):
        ours += [
            (start, end)
            for (start, path), end in zip(headers, ends, strict=True)
            if path == ("hooks", "state") and not "".join(lines[start + 1 : end]).strip()
        ]
    removed = {index for start, end in ours for index in range(start, end)}
    kept = [line for index, line in enumerate(lines) if index not in removed]
    if len(lines) - 1 in removed:
        # Remove the blank lines before a table at the end of the file too.
        while kept and not kept[-1].strip():
            kept.pop()
    return "".join(kept)


def _parse_header(line: str) -> tuple[str, ...]:
    """Returns the path in the header line of a table; an empty path for any other line."""
    try:
        value = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path = []
    while isinstance(value, dict) and len(value) == 1:
        (name, value) = next(iter(value.items()))
        path.append(name)
    return tuple(path) if value == {} else ()
