"""Plans the changes to a host's settings files that install Memoranda there or uninstall it."""

from collections.abc import Callable

from memoranda.adapters.hosts.host import Host, HostEnvironment, Settings, SettingsFile, UnusableSettingsError
from memoranda.adapters.hosts.json_edit import rewrite_json
from memoranda.adapters.hosts.launch_command import LaunchCommand
from memoranda.adapters.hosts.settings_change import HostFileChange, SettingsError, read_settings
from memoranda.support.relaxed_json import JsonTextError, parse

_BLANK = " \t\r\n\ufeff"

Edit = Callable[[Settings], Settings]


def plan_install(host: Host, environment: HostEnvironment, command: LaunchCommand) -> list[HostFileChange]:
    """Returns the changes that are still missing for an installation; none when it is complete."""

    def edit_for(file: SettingsFile) -> Edit:
        file_command = command.for_shared_file() if file.is_shared(environment) else command
        return lambda settings: file.add(settings, file_command)

    return _plan(host, environment, edit_for)


def plan_uninstall(host: Host, environment: HostEnvironment) -> list[HostFileChange]:
    """Returns the changes that remove our entries."""
    return _plan(host, environment, lambda file: file.remove)


def _plan(host: Host, environment: HostEnvironment, edit_for: Callable[[SettingsFile], Edit]) -> list[HostFileChange]:
    changes = [
        _plan_change(file, edit_for(file), shared=file.is_shared(environment)) for file in host.files(environment)
    ]
    return [change for change in changes if change.is_needed]


def _plan_change(file: SettingsFile, edit: Edit, *, shared: bool) -> HostFileChange:
    before = read_settings(file.path)
    try:
        text = (before or b"").decode()
        after = _edit_toml(file, text, edit) if file.language == "toml" else _edit_json(text, edit)
    except (UnicodeDecodeError, JsonTextError, UnusableSettingsError) as error:
        raise SettingsError(
            f"{file.path} cannot be changed: {error}. It was left as it is; repair it, or add the server by hand."
        ) from error
    return HostFileChange(file.path, before, after.encode(), shared)


def _edit_json(text: str, edit: Edit) -> str:
    is_blank = not text.strip(_BLANK)
    settings = {} if is_blank else parse(text).value
    if not isinstance(settings, dict):
        raise JsonTextError(f"settings are expected, not {type(settings).__name__}")
    wanted = edit(settings)
    return text if is_blank and not wanted else rewrite_json(text, wanted)


def _edit_toml(file: SettingsFile, text: str, edit: Edit) -> str:
    # Only Codex has TOML; the other hosts need not load the library for it.
    from memoranda.adapters.hosts.toml_edit import read_toml, rewrite_toml  # noqa: PLC0415

    return rewrite_toml(text, edit(read_toml(text)), *file.table)
