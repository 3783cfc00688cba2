"""`memoranda.json`, the file from which our plugin in a host learns its command, its spool and its tools."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memoranda.integrations.hooks.events import TOOLS, spool_directory
from memoranda.integrations.hosts.host import PROGRAM, LaunchCommand, Settings, UnusableSettingsError
from memoranda.integrations.hosts.settings_change import HostFileChange, read_settings
from memoranda.support.json_object import parse_object

FILE_NAME = "memoranda.json"
DESCRIPTION = "The memory that all of your agents share: recall, search, and a record of every conversation"
_REPLACES = "replaces"
# What OpenClaw uses when no plugin is selected.
_BUILT_IN = ("memory-core",)
_SHARED = "From Memoranda, the memory that all of the user's agents share. "


def plugin_settings(
    host: str, command: LaunchCommand, host_directory: Path, plugin_directory: Path, selected: Any
) -> bytes:
    """Returns the content of the file.

    `host_directory` is where the host keeps its state; the plugin needs it because a host may run a copy of the plugin
    elsewhere. `selected` is the memory that the host uses now, ours or another one, which ours replaces.
    """
    first, *rest = command.words
    replaces = read_replaced(plugin_directory) if selected == PROGRAM else selected
    settings = {
        PROGRAM: {"command": first, "args": [*rest, "hook", host, *command.options]},
        "spool": str(spool_directory(Path(command.home), host)),
        "host_directory": str(host_directory),
        _REPLACES: replaces if isinstance(replaces, str) and replaces else None,
        "tools": _tool_schemas(),
    }
    return json.dumps(settings, indent=2, ensure_ascii=False).encode() + b"\n"


def map_in(settings: Settings, name: str) -> Settings:
    """Returns a map in the settings of a host; an empty one if there is none."""
    value = settings.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnusableSettingsError(f"{name} is {type(value).__name__}, not a map")
    return value


def read_replaced(directory: Path) -> str | None:
    """Returns what an installed plugin replaced; None when it replaced nothing, or is not installed."""
    value = _read_plugin_settings(directory).get(_REPLACES)
    return value if isinstance(value, str) and value else None


def replaced_memory(changes: Iterable[HostFileChange]) -> str:
    """Returns the memory that planned changes replace; "" for none, and for a host's built-in one."""
    for change in changes:
        if change.file.name == FILE_NAME and change.before is None and change.after is not None:
            replaced = json.loads(change.after)[_REPLACES]
            return "" if replaced in (None, *_BUILT_IN) else str(replaced)
    return ""


def is_installed(directory: Path) -> bool:
    """Whether a directory contains our plugin, as opposed to other files under the same name."""
    return PROGRAM in _read_plugin_settings(directory)


def _read_plugin_settings(directory: Path) -> Mapping[str, Any]:
    return parse_object(read_settings(directory / FILE_NAME)) or {}


def _tool_schemas() -> list[dict[str, Any]]:
    # Importing the tools loads the stores, which other hosts do not need.
    from memoranda.memory.curated import guidance as memory_guidance  # noqa: PLC0415
    from memoranda.memory.curated.tool import PARAMETERS as MEMORY_PARAMETERS  # noqa: PLC0415
    from memoranda.search import guidance as search_guidance  # noqa: PLC0415
    from memoranda.search.tool import PARAMETERS as SEARCH_PARAMETERS  # noqa: PLC0415

    schemas = {
        "memory": (memory_guidance.TOOL_DESCRIPTION, MEMORY_PARAMETERS),
        "session_search": (search_guidance.TOOL_DESCRIPTION, SEARCH_PARAMETERS),
    }
    return [
        {"name": name, "description": _SHARED + schemas[tool][0], "parameters": schemas[tool][1]}
        for name, tool in TOOLS.items()
    ]
