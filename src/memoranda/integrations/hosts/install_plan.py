"""Plans the changes to a host's settings files and plugins that install Memoranda there or uninstall it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from memoranda.integrations.hosts.host import (
    OWNER_MARK,
    Host,
    HostEnvironment,
    LaunchCommand,
    OwnedFile,
    PluginFile,
    Settings,
    SettingsFile,
    UnusableSettingsError,
)
from memoranda.integrations.hosts.plugin_settings import is_installed
from memoranda.integrations.hosts.settings_change import (
    CreatedFiles,
    HostFileChange,
    SettingsBackups,
    SettingsError,
    read_settings,
)
from memoranda.integrations.hosts.settings_text import edit_text
from memoranda.support.relaxed_json import JsonTextError

Edit = Callable[[Settings], Settings]


def plan_install(host: Host, environment: HostEnvironment, command: LaunchCommand) -> list[HostFileChange]:
    """Returns the changes that are still missing for an installation; none when it is complete."""

    def plan_file(file: SettingsFile) -> HostFileChange:
        shared = file.is_shared(environment)
        file_command = command.for_shared_file() if shared else command
        initial = {} if file.path.exists() else file.initial
        return _plan_change(file, lambda settings: file.add({**initial, **settings}, file_command), shared=shared)

    settings = list(map(plan_file, host.files(environment)))
    # The plugin is written first, so that the settings never name one that is missing.
    shared = environment.project is not None
    owned_command = command.for_shared_file() if shared else command
    owned = [_plan_owned_file(file, owned_command, shared=shared) for file in host.owned_files(environment)]
    changes = [*_plan_plugin(host.plugin(environment), command), *settings, *owned]
    return [change for change in changes if change.is_needed]


def plan_uninstall(
    host: Host, environment: HostEnvironment, created: CreatedFiles | None = None, backups: Path | None = None
) -> list[HostFileChange]:
    """Returns the changes that remove our entries.

    If nothing else is in a file, it is deleted when installing created it, and empty again when it was empty before.
    Where a plugin took the place of another value, the settings become those in `backups` again, if installing made
    exactly the current ones from them.
    """
    plugin = host.plugin(environment)

    def plan_file(file: SettingsFile) -> HostFileChange:
        change = _plan_change(file, file.remove, shared=file.is_shared(environment), clean=file.clean)
        original = _find_original(file, change.before, backups) if plugin and backups and change.is_needed else None
        if original is not None:
            return replace(change, after=original)
        if created is not None and change.before is not None and _is_empty(change.after, file.initial):
            return replace(change, after=created.original_content(file.path, change.after))
        return change

    owned = [_plan_owned_removal(file) for file in host.owned_files(environment)]
    changes = [*map(plan_file, host.files(environment)), *_plan_plugin_removal(plugin), *owned]
    return [change for change in changes if change.is_needed]


def _plan_plugin(files: list[PluginFile], command: LaunchCommand) -> list[HostFileChange]:
    directories = {file.path.parent for file in files}
    for directory in directories:
        if directory.exists() and any(directory.iterdir()) and not is_installed(directory):
            raise SettingsError(f"{directory} has files that are not Memoranda's. Nothing was written; move them away.")
    return [
        HostFileChange(file.path, read_settings(file.path), _plugin_content(file, command), directory=file.path.parent)
        for file in files
    ]


def _plugin_content(file: PluginFile, command: LaunchCommand) -> bytes:
    try:
        return file.content(command)
    except (UnicodeDecodeError, JsonTextError, UnusableSettingsError) as error:
        raise SettingsError(f"{file.path} cannot be written: {error}. Nothing was changed.") from error


def _plan_plugin_removal(files: list[PluginFile]) -> list[HostFileChange]:
    """Returns the removal of everything in the plugin's directory: what the host compiled there is ours too."""
    directories = sorted({file.path.parent for file in files if is_installed(file.path.parent)})
    return [
        HostFileChange(path, read_settings(path), None, directory=directory)
        for directory in directories
        for path in sorted(directory.rglob("*"))
        if path.is_file() or path.is_symlink()
    ]


def _plan_owned_file(file: OwnedFile, command: LaunchCommand, *, shared: bool) -> HostFileChange:
    before = read_settings(file.path)
    if before is not None and not _is_owned(before):
        raise SettingsError(f"{file.path} exists, and Memoranda did not write it. Nothing was written; move it away.")
    return HostFileChange(file.path, before, file.render(command).encode(), shared)


def _plan_owned_removal(file: OwnedFile) -> HostFileChange:
    content = read_settings(file.path)
    return HostFileChange(file.path, content, None if content is not None and _is_owned(content) else content)


def _is_owned(content: bytes) -> bool:
    return OWNER_MARK.encode() in content


def _find_original(file: SettingsFile, current: bytes | None, backups: Path) -> bytes | None:
    """Returns the newest backup from which installing makes the current settings."""
    for copy in reversed(SettingsBackups(backups).copies(file.path)):
        content = read_settings(copy)
        if content is None or content == current:
            continue
        try:
            installed = edit_text(file, content.decode(), lambda settings: file.add(settings, LaunchCommand()))
        except (UnicodeDecodeError, JsonTextError, UnusableSettingsError):
            continue
        if installed.encode() == current:
            return content
    return None


def _is_empty(content: bytes | None, initial: Settings) -> bool:
    """Whether only the settings of a new file are left; a comment counts as content."""
    words = b"".join((content or b"").split())
    return words in (b"", b"{}", json.dumps(initial, separators=(",", ":")).encode())


def _plan_change(
    file: SettingsFile, edit: Edit, *, shared: bool, clean: Callable[[str], str] = lambda text: text
) -> HostFileChange:
    before = read_settings(file.path)
    try:
        text = clean((before or b"").decode())
        after = edit_text(file, text, edit)
    except (UnicodeDecodeError, JsonTextError, UnusableSettingsError) as error:
        raise SettingsError(
            f"{file.path} cannot be changed: {error}. Nothing was written; repair it, or add the server by hand."
        ) from error
    return HostFileChange(file.path, before, after.encode(), shared)
