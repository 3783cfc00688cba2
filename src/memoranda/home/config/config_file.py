"""Reads `config.yaml`, and writes one setting into it without changing the rest."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigError
from memoranda.home.config.config import Key, find_key, shown_value
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import make_private_directory, read_file, write_private
from memoranda.support.home import Home

LOCK_TIMEOUT = 10.0
PROVIDER_KEYS = ("memory.provider", "memory.providers")


def set_value(home: Home, name: str, raw: Any) -> Any:
    """Write one setting into config.yaml, keeping everything else in it, comments included."""
    return set_values(home, {name: raw})[name]


def set_values(home: Home, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write settings into config.yaml, all of them or none; returns the values as they were understood."""
    values = {name: _parse_new(name, raw) for name, raw in settings.items()}
    home.refuse_if_foreign()
    make_private_directory(home.root)
    with FileLock(home.lock_file, LOCK_TIMEOUT):
        document = read_document(home)
        # The parser drops a file that has only comments; they stay above the settings.
        comments = b"" if document or not home.config_file.exists() else read_file(home.config_file)
        refuse_link(home.config_file)
        for name, value in values.items():
            look_up(document, find_key(name), home)
            section, _, leaf = name.partition(".")
            if document.get(section) is None:
                document[section] = {}
            _refuse_alias(document, section, home)
            document[section][leaf] = list(value) if isinstance(value, tuple) else value
        _refuse_provider_conflict(document, home)
        write_private(home.config_file, comments + _dump(document))
    return values


def unset_value(home: Home, name: str) -> bool:
    """Remove one setting from config.yaml, so that its default applies; False if the file does not have it."""
    key = find_key(name)
    home.refuse_if_foreign()
    if not home.config_file.exists():
        return False
    with FileLock(home.lock_file, LOCK_TIMEOUT):
        document = read_document(home)
        refuse_link(home.config_file)
        look_up(document, key, home)
        section, _, leaf = name.partition(".")
        if leaf not in (document.get(section) or {}):
            return False
        _refuse_alias(document, section, home)
        del document[section][leaf]
        _refuse_provider_conflict(document, home)
        write_private(home.config_file, _dump(document))
    return True


def _refuse_alias(document: Mapping[str, Any], section: str, home: Home) -> None:
    if getattr(getattr(document[section], "anchor", None), "value", None):
        raise ConfigError(f"{section} in {home.config_file} is shared by an alias. Change it there by hand.")


def _parse_new(name: str, raw: Any) -> Any:
    key = find_key(name)
    try:
        return key.parse(raw)
    except (ValueError, TypeError):
        raise ConfigError(f"{name} must be {key.accepts}, not {raw!r}. Nothing was changed.") from None


def _refuse_provider_conflict(document: Mapping[str, Any], home: Home) -> None:
    keys = [find_key(name) for name in PROVIDER_KEYS]
    one, several = (parse_value(key, look_up(document, key, home), str(home.config_file)) for key in keys)
    if one and several and one not in several:
        conflict = describe_provider_conflict(one, several, str(home.config_file))
        raise ConfigError(f"{conflict} Nothing was changed; 'memoranda provider use' sets both.")


def describe_provider_conflict(one: str, several: Sequence[str], source: str) -> str:
    """Says that the two settings that name providers contradict each other."""
    return (
        f"In {source} memory.provider is {one}, but memory.providers are {', '.join(several)}: the one must be among "
        "the several, or only one of the two settings may have a value."
    )


def refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise ConfigError(f"{path} is a link to {path.resolve()}. Nothing was written; change that file itself.")


def read_document(home: Home) -> dict[str, Any]:
    """Read config.yaml; an absent or blank file is an empty mapping."""
    path = home.config_file
    try:
        text = read_file(path).decode("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Nothing is opened until it is fixed.") from error
    if not text.strip():
        return {}
    try:
        document = _yaml().load(text)
    except Exception as error:
        # The parser raises all kinds of errors for odd documents; each means that the file cannot be used.
        raise ConfigError(
            f"{path} is not valid YAML: {_describe_yaml_error(error)}. Nothing is opened until it is fixed."
        ) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} must contain keys and values, not {type(document).__name__}.")
    return document


def _describe_yaml_error(error: Exception) -> str:
    """The line and the problem in one sentence; the parser's own text has several lines and repeats the file."""
    mark = getattr(error, "context_mark", None) or getattr(error, "problem_mark", None)
    words = [word for word in (getattr(error, "context", None), getattr(error, "problem", None)) if word]
    reason = ", ".join(words) or str(error)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return where + " ".join(reason.split()).replace("'<stream end>'", "the end of the file").rstrip(".")


def _yaml() -> Any:
    # 40 ms, and most homes have no config file.
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 100_000
    return yaml


def _dump(document: dict[str, Any]) -> bytes:
    stream = BytesIO()
    _yaml().dump(document, stream)
    return stream.getvalue()


def look_up(document: Mapping[str, Any], key: Key, home: Home) -> Any:
    section, _, leaf = key.name.partition(".")
    values = document.get(section)
    if values is None:
        return key.default
    if not isinstance(values, Mapping):
        raise ConfigError(f"{section} in {home.config_file} must contain keys and values, not {values!r}.")
    return values.get(leaf, key.default)


def parse_value(key: Key, raw: Any, source: str) -> Any:
    try:
        return key.parse(raw)
    except (ValueError, TypeError):
        raise ConfigError(
            f"{key.name} in {source} is {shown_value(raw)!r}; it must be {key.accepts}. "
            "Nothing is opened until it is fixed."
        ) from None
