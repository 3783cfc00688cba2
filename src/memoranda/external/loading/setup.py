"""Setup of a provider: the fields of its schema, and the values that are checked and saved for them.

Secrets go to `.env`, all other values to `providers/<name>.json` in the home, to the provider's constructor, and to its
own `save_config` if it has one. A field that names a variable is also in `.env`, where the provider reads it. Values
that were saved before and are not set again stay as they were.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.guarded_call import PendingCall
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.external.settings import file_stem
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import make_private_directory, read_file, write_private
from memoranda.support.lazy_dataclass import dataclass

_YES = {"true", "yes", "on", "1"}
_NO = {"false", "no", "off", "0"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOTHING: Mapping[str, Any] = {}
_LOCK_SECONDS = 10.0
_SAVE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One field of a provider's configuration schema."""

    key: str
    description: str = ""
    secret: bool = False
    required: bool = False
    default: Any = None
    choices: tuple[Any, ...] = ()
    url: str = ""
    env_var: str = ""
    when: Mapping[str, Any] | None = None
    default_from: Mapping[str, Any] | None = None
    minimum: float | None = None
    maximum: float | None = None
    in_env_file: bool = True
    """False if the provider reads the value from its settings. The record hides whatever is in `.env`, so words that
    people use must not get there."""

    def as_schema(self) -> dict[str, Any]:
        """The field as an entry of `get_config_schema`, without the parts that have no value."""
        defaults = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def applies(self, values: Mapping[str, Any]) -> bool:
        """Whether the field is needed with the values so far."""
        return all(values.get(key) == wanted for key, wanted in (self.when or {}).items())

    def default_for(self, values: Mapping[str, Any]) -> Any:
        """The default, which may depend on another field."""
        if self.default_from:
            found = self.default_from.get("map", {}).get(values.get(str(self.default_from.get("field"))))
            return self.default if found is None else found
        return self.default

    def saved_value(self, saved: Mapping[str, Any]) -> Any:
        """The valid value that was saved before; None without one, or when it was derived from another field."""
        old = saved.get(self.key)
        if old is None or (self.default_from and old == self.default_for(saved)):
            return None
        try:
            return self.parse(old)
        except ProviderError:
            return None

    def parse(self, text: Any) -> Any:
        """Convert typed text to the type of the field; raises ProviderError when it is not valid."""
        if isinstance(text, str):
            text = text.strip()
        if self.choices:
            word = self._choice_for(str(text).lower())
            for choice in self.choices:
                if text == choice or word == str(choice).lower():
                    return choice
            raise self._invalid(text, f"one of {', '.join(map(str, self.choices))}")
        try:
            value = self._convert(text)
        except (ValueError, TypeError, OverflowError):
            raise self._invalid(
                text, "yes or no" if isinstance(self.default, bool) else f"a value like {self.default!r}"
            ) from None
        low, high = self.minimum, self.maximum
        if isinstance(value, int | float) and not (low is None or value >= low):
            raise self._invalid(text, f"at least {low:g}")
        if isinstance(value, int | float) and not (high is None or value <= high):
            raise self._invalid(text, f"at most {high:g}")
        return value

    def _choice_for(self, word: str) -> str:
        """The choice that a word means: plugins also offer yes and no as the texts true and false."""
        if {str(choice).lower() for choice in self.choices} == {"true", "false"} and word in _YES | _NO:
            return "true" if word in _YES else "false"
        return word

    def _convert(self, text: Any) -> Any:
        if isinstance(self.default, bool) and not isinstance(text, bool):
            word = str(text).lower()
            if word not in _YES | _NO:
                raise ValueError
            return word in _YES
        if isinstance(self.default, int) and not isinstance(self.default, bool):
            if isinstance(text, bool) or (isinstance(text, float) and not text.is_integer()):
                raise ValueError
            return int(text)
        if isinstance(self.default, float):
            number = float(text)
            if not math.isfinite(number):
                raise ValueError
            return number
        return text

    def _invalid(self, text: Any, accepted: str) -> ProviderError:
        return ProviderError(f"{self.key} must be {accepted}, not {str(text)[:60]!r}.")


def fields_of(provider: MemoryProvider) -> list[ConfigField]:
    """The fields of a provider's schema; invalid fields and parts of fields are skipped."""
    schema = provider.get_config_schema()
    if schema is not None and not isinstance(schema, list | tuple):
        raise ProviderError(f"its settings are described by {type(schema).__name__} instead of a list of fields")
    return [_field(entry) for entry in schema or () if isinstance(entry, Mapping) and isinstance(entry.get("key"), str)]


def _field(entry: Mapping[str, Any]) -> ConfigField:
    def part(name: str, *kinds: type) -> Any:
        value = entry.get(name)
        return value if isinstance(value, kinds) else None

    variable = part("env_var", str) or ""
    derived = part("default_from", dict)
    return ConfigField(
        key=entry["key"],
        description=part("description", str) or "",
        secret=entry.get("secret") is True,
        required=entry.get("required") is True,
        default=part("default", bool, int, float, str, list, dict),
        choices=tuple(part("choices", list, tuple) or ()),
        url=part("url", str) or "",
        env_var=variable if _VARIABLE.fullmatch(variable) else "",
        when=part("when", dict),
        default_from=derived if derived and isinstance(derived.get("map"), dict) else None,
        minimum=part("minimum", int, float),
        maximum=part("maximum", int, float),
        in_env_file=entry.get("in_env_file") is not False,
    )


def resolve_values(
    fields: list[ConfigField],
    answers: Mapping[str, Any],
    saved: Mapping[str, Any] = _NOTHING,
    present: Collection[str] = (),
) -> dict[str, Any]:
    """The values to save: the answers, else the values saved before, else the defaults. Raises ProviderError.

    `present` are the variables that have a value already. An empty value resets a key to its default.
    """
    unknown = [key for key in answers if key not in {field.key for field in fields}]
    if unknown:
        names = ", ".join(field.key for field in fields) or "none"
        raise ProviderError(f"{', '.join(unknown)} cannot be set; this provider has the settings: {names}.")
    values: dict[str, Any] = {}
    for field in fields:
        if not field.applies(values):
            continue
        if answers.get(field.key) not in (None, ""):
            values[field.key] = field.parse(answers[field.key])
        elif field.secret and field.env_var in present:
            continue
        elif answers.get(field.key) is None and (old := field.saved_value(saved)) is not None:
            values[field.key] = old
        elif (default := field.default_for(values)) is not None:
            values[field.key] = default
        elif field.required and field.env_var not in present:
            raise ProviderError(f"{field.key} is required: {field.description or 'no default'}.")
    return values


def variables_of(fields: list[ConfigField], values: Mapping[str, Any], stored: Collection[str] = ()) -> dict[str, str]:
    """The values for `.env` by variable; raises ProviderError for one that cannot be stored there.

    `stored` are variables that are in the file already: they are kept up to date, whatever their field says.
    """
    nameless = [field.key for field in fields if field.secret and field.key in values and not field.env_var]
    if nameless:
        raise ProviderError(f"{', '.join(nameless)}: the provider names no variable for this secret.")
    found = {
        field.env_var: _as_text(values[field.key])
        for field in fields
        if field.env_var and field.key in values and (field.secret or field.in_env_file or field.env_var in stored)
    }
    for variable, text in found.items():
        if not text.isprintable():
            raise ProviderError(f"The value for {variable} must be one line of text.")
    return found


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def settings_file(home: Path, name: str) -> Path:
    return home / "providers" / f"{file_stem(name)}.json"


def read_settings(home: Path, name: str) -> dict[str, Any]:
    """The saved settings of a provider; empty when there are none."""
    path = settings_file(home, name)
    try:
        values = json.loads(read_file(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ProviderError(
            f"{path} cannot be read ({error}). Correct it, or run 'memoranda provider setup {name}': it keeps a copy."
        ) from error
    if not isinstance(values, dict):
        raise ProviderError(
            f"{path} must contain keys and values. Correct it, or run 'memoranda provider setup {name}'."
        )
    return values


def save_values(
    provider: MemoryProvider, name: str, fields: list[ConfigField], values: Mapping[str, Any], home: Path
) -> dict[str, str]:
    """Save all values except secrets; returns the values for `.env`, which the caller stores.

    The provider saves first: if that fails, nothing is changed here.
    """
    variables = variables_of(fields, values)
    secret = {field.key for field in fields if field.secret}
    plain = {key: value for key, value in values.items() if key not in secret}
    if has_own(provider, "save_config"):
        call = PendingCall(lambda: provider.save_config(dict(plain), str(home)), f"memoranda-{name}-save_config")
        answer = call.wait(_SAVE_SECONDS)
        if answer is None or not answer.ok:
            reason = answer.error if answer else f"no answer within {_SAVE_SECONDS:g} s"
            raise ProviderError(f"{name} could not save its settings: {reason}.")
    write_settings(home, name, plain)
    return variables


def write_settings(home: Path, name: str, values: Mapping[str, Any]) -> None:
    """Add values to those that were saved before; a file that cannot be read is kept as a copy."""
    path = settings_file(home, name)
    make_private_directory(path.parent)
    with FileLock(home / ".lock", _LOCK_SECONDS):
        try:
            before = read_settings(home, name)
        except ProviderError:
            before = {}
            _copy_unreadable(path)
        write_private(path, json.dumps(before | dict(values), ensure_ascii=False, indent=2).encode())


def _copy_unreadable(path: Path) -> None:
    """Copy a file that cannot be read to a free name in the same directory."""
    if not path.is_file():
        return
    number = 1
    while (copy := path.with_name(f"{path.name}.bak{number if number > 1 else ''}")).exists():
        number += 1
    write_private(copy, read_file(path))


@contextmanager
def restored_on_failure(*paths: Path) -> Iterator[None]:
    """Restore files to their content before the block when it raises."""
    before = {path: read_file(path) if path.is_file() else None for path in paths}
    try:
        yield
    except BaseException:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            elif not path.is_file() or read_file(path) != content:
                write_private(path, content)
        raise
