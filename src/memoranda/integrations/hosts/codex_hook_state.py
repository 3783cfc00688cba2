"""Removes what Codex stored about our hooks: the user's review of each, under `[hooks.state]` in its config.toml.

Codex identifies a hook by its file, event and position, such as `/home/ann/.codex/hooks.json:session_start:0:0`. So the
hook at that position shows whether a review is about a hook of ours; the reviews of other hooks stay.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.integrations.hosts.launch_command import is_our_hook
from memoranda.integrations.hosts.settings_change import SettingsError, read_settings
from memoranda.support.relaxed_json import JsonTextError, parse

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def remove_our_state(text: str, hooks_file: Path, host: str) -> str:
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
