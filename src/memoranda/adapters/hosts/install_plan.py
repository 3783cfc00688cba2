"""Plans the changes to a host's settings files that install Memoranda there or uninstall it."""

import json
from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path

from memoranda.adapters.hosts.host import Host, HostEnvironment, Settings, SettingsFile, UnusableSettingsError
from memoranda.adapters.hosts.json_edit import rewrite_json
from memoranda.adapters.hosts.launch_command import LaunchCommand
from memoranda.adapters.hosts.settings_change import HostFileChange, SettingsError, read_settings
from memoranda.support.relaxed_json import JsonTextError, parse

_BLANK = " \t\r\n\ufeff"

Edit = Callable[[Settings], Settings]


def plan_install(host: Host, environment: HostEnvironment, command: LaunchCommand) -> list[HostFileChange]:
    """Returns the changes that are still missing for an installation; none when it is complete."""

    def plan_file(file: SettingsFile) -> HostFileChange:
        shared = file.is_shared(environment)
        file_command = command.for_shared_file() if shared else command
        initial = {} if file.path.exists() else file.initial
        return _plan_change(file, lambda settings: file.add({**initial, **settings}, file_command), shared=shared)

    changes = map(plan_file, host.files(environment))
    return [change for change in changes if change.is_needed]


def plan_uninstall(
    host: Host, environment: HostEnvironment, created: Container[Path] = frozenset()
) -> list[HostFileChange]:
    """Returns the changes that remove our entries; a file that installing created is deleted if it is empty now."""

    def plan_file(file: SettingsFile) -> HostFileChange:
        change = _plan_change(file, file.remove, shared=file.is_shared(environment))
        is_ours = change.before is not None and file.path in created
        return replace(change, after=None) if is_ours and _is_empty(change.after, file.initial) else change

    changes = map(plan_file, host.files(environment))
    return [change for change in changes if change.is_needed]


def _is_empty(content: bytes | None, initial: Settings) -> bool:
    """Whether only the settings of a new file are left; a comment counts as content."""
    words = b"".join((content or b"").split())
    return words in (b"", b"{}", json.dumps(initial, separators=(",", ":")).encode())


def _plan_change(file: SettingsFile, edit: Edit, *, shared: bool) -> HostFileChange:
    before = read_settings(file.path)
    try:
        text = (before or b"").decode()
        after = _edit_toml(file, text, edit) if file.language == "toml" else _edit_json(text, edit)
    except (UnicodeDecodeError, JsonTextError, UnusableSettingsError) as error:
        raise SettingsError(
            f"{file.path} cannot be changed: {error}. Nothing was written; repair it, or add the server by hand."
        ) from error
    return HostFileChange(file.path, before, after.encode(), shared)


def read_values(file: SettingsFile) -> Settings:
    """Returns the settings in a file; an empty map when it does not exist."""
    text = (read_settings(file.path) or b"").decode()
    return _read_toml(text) if file.language == "toml" else _read_json(text)


def _edit_json(text: str, edit: Edit) -> str:
    wanted = edit(_read_json(text))
    return text if not text.strip(_BLANK) and not wanted else rewrite_json(text, wanted)


def _read_json(text: str) -> Settings:
    settings = parse(text).value if text.strip(_BLANK) else {}
    if not isinstance(settings, dict):
        raise JsonTextError(f"settings are expected, not {type(settings).__name__}")
    return settings


def _edit_toml(file: SettingsFile, text: str, edit: Edit) -> str:
    # Only Codex uses TOML, so the other hosts do not load its library.
    from memoranda.adapters.hosts.toml_edit import rewrite_toml  # noqa: PLC0415

    return rewrite_toml(text, edit(_read_toml(text)), *file.table)


def _read_toml(text: str) -> Settings:
    from memoranda.adapters.hosts.toml_edit import read_toml  # noqa: PLC0415

    return read_toml(text)
