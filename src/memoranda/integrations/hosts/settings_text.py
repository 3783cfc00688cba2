"""The text of a settings file in each of the formats that hosts use: reading its values, and editing them in place."""

from collections.abc import Callable

from memoranda.integrations.hosts.created_files import BLANK
from memoranda.integrations.hosts.host import Settings, SettingsFile
from memoranda.integrations.hosts.json_edit import rewrite_json
from memoranda.integrations.hosts.settings_change import read_settings
from memoranda.support.relaxed_json import JsonTextError, parse, parse_json5_node


def read_values(file: SettingsFile) -> Settings:
    """Returns the settings in a file; an empty map when it does not exist."""
    return _parse(file, (read_settings(file.path) or b"").decode())


def edit_text(file: SettingsFile, text: str, edit: Callable[[Settings], Settings]) -> str:
    """Returns the text with the settings that `edit` makes of the current ones; the rest keeps its bytes."""
    wanted = edit(_parse(file, text))
    # The libraries for TOML and YAML are loaded for the hosts that use them.
    if file.language == "toml":
        from memoranda.integrations.hosts.toml_edit import rewrite_toml  # noqa: PLC0415

        return rewrite_toml(text, wanted, *file.table)
    if file.language == "yaml":
        from memoranda.integrations.hosts.yaml_edit import rewrite_yaml  # noqa: PLC0415

        return rewrite_yaml(text, wanted, *file.table)
    if not text.strip(BLANK) and not wanted:
        return text
    return rewrite_json(text, wanted, parse_json5_node if file.language == "json5" else parse)


def _parse(file: SettingsFile, text: str) -> Settings:
    if file.language == "toml":
        from memoranda.integrations.hosts.toml_edit import read_toml  # noqa: PLC0415

        return read_toml(text)
    if file.language == "yaml":
        from memoranda.integrations.hosts.yaml_edit import read_yaml  # noqa: PLC0415

        return read_yaml(text)
    if not text.strip(BLANK):
        return {}
    settings = (parse_json5_node if file.language == "json5" else parse)(text).value
    if not isinstance(settings, dict):
        raise JsonTextError(f"settings are expected, not {type(settings).__name__}")
    return settings
