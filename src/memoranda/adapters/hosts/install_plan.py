"""Plans what an installation changes in a host's settings, or what taking it out again changes."""

from collections.abc import Callable

from memoranda.adapters.hosts.host import Host, HostEnvironment, Settings, SettingsFile, UnusableSettingsError
from memoranda.adapters.hosts.json_edit import rewrite
from memoranda.adapters.hosts.launch_command import LaunchCommand
from memoranda.adapters.hosts.settings_change import HostFileChange, SettingsError, read_settings
from memoranda.support.relaxed_json import JsonTextError, parse

_BLANK = " \t\r\n\ufeff"


def plan_install(host: Host, around: HostEnvironment, program: LaunchCommand) -> list[HostFileChange]:
    """The changes that put us into a host; those that are made already are not among them."""

    def put(place: SettingsFile) -> Callable[[Settings], Settings]:
        return lambda settings: place.put(settings, program.shared() if place.is_shared(around) else program)

    return _planned(host, around, put)


def plan_uninstall(host: Host, around: HostEnvironment) -> list[HostFileChange]:
    """The changes that take us out of a host again."""
    return _planned(host, around, lambda place: place.take)


def _planned(
    host: Host, around: HostEnvironment, how: Callable[[SettingsFile], Callable[[Settings], Settings]]
) -> list[HostFileChange]:
    changes = [_change(place, how(place), shared=place.is_shared(around)) for place in host.files(around)]
    return [change for change in changes if change.is_needed]


def _change(place: SettingsFile, make: Callable[[Settings], Settings], *, shared: bool) -> HostFileChange:
    before = read_settings(place.file)
    try:
        text = (before or b"").decode()
        after = _as_toml(place, text, make) if place.language == "toml" else _as_json(text, make)
    except (UnicodeDecodeError, JsonTextError, UnusableSettingsError) as error:
        raise SettingsError(
            f"{place.file} cannot be changed: {error}. It was left as it is; mend it, or add the server by hand."
        ) from error
    return HostFileChange(place.file, before, after.encode(), shared)


def _as_json(text: str, make: Callable[[Settings], Settings]) -> str:
    blank = not text.strip(_BLANK)
    value = {} if blank else parse(text).value
    if not isinstance(value, dict):
        raise JsonTextError(f"settings are expected, not {type(value).__name__}")
    wanted = make(value)
    return text if blank and not wanted else rewrite(text, wanted)


def _as_toml(place: SettingsFile, text: str, make: Callable[[Settings], Settings]) -> str:
    # Only Codex has TOML; the other hosts need not load the library for it.
    from memoranda.adapters.hosts.toml_edit import read_toml, rewrite_toml  # noqa: PLC0415

    return rewrite_toml(text, make(read_toml(text)), *place.table)
