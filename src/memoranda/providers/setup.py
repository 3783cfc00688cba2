"""What a provider wants to know before it is used, asked of a person or given as values, checked and really saved.

Fields come from the provider's schema. Secrets go to `.env`, everything else to the provider's own file: by its
`save_config` where it has one, else to `providers/<name>.json` in the home, which it is given when it is made.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.providers.provider import MemoryProvider
from memoranda.support.files import make_private_directory, read_file, write_private

_YES = {"true", "yes", "on", "1"}
_NO = {"false", "no", "off", "0"}


@dataclass(frozen=True, slots=True)
class Field:
    """One thing to know."""

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

    def applies(self, values: Mapping[str, Any]) -> bool:
        """Whether it matters, given what is known so far."""
        return all(values.get(key) == wanted for key, wanted in (self.when or {}).items())

    def suggestion(self, values: Mapping[str, Any]) -> Any:
        """What to offer when nothing was said."""
        if self.default_from:
            found = self.default_from.get("map", {}).get(values.get(str(self.default_from.get("field"))))
            return self.default if found is None else found
        return self.default

    def read(self, text: Any) -> Any:
        """A value as it was typed, as what it should be; raises ProviderError when it cannot be that."""
        if isinstance(text, str):
            text = text.strip()
        if self.choices:
            for choice in self.choices:
                if text == choice or str(text).lower() == str(choice).lower():
                    return choice
            raise self._wrong(text, f"one of {', '.join(map(str, self.choices))}")
        try:
            return self._typed(text)
        except ValueError:
            raise self._wrong(text, f"a value like {self.default!r}") from None

    def _typed(self, text: Any) -> Any:
        if isinstance(self.default, bool) and not isinstance(text, bool):
            word = str(text).lower()
            if word not in _YES | _NO:
                raise ValueError
            return word in _YES
        if isinstance(self.default, int) and not isinstance(self.default, bool):
            return int(text)
        return float(text) if isinstance(self.default, float) else text

    def _wrong(self, text: Any, takes: str) -> ProviderError:
        return ProviderError(f"{self.key} takes {takes}, not {str(text)[:60]!r}.")


def fields_of(provider: MemoryProvider) -> list[Field]:
    """The schema of a provider; what is no field is left out."""
    known = set(Field.__dataclass_fields__)
    found = []
    for entry in provider.get_config_schema():
        if isinstance(entry, Mapping) and isinstance(entry.get("key"), str):
            values = {name: value for name, value in entry.items() if name in known and value is not None}
            values["choices"] = tuple(entry.get("choices") or ())
            found.append(Field(**values))
    return found


def check(fields: list[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values to save: those given, read as what they should be, and defaults for the rest."""
    unknown = [key for key in given if key not in {field.key for field in fields}]
    if unknown:
        names = ", ".join(field.key for field in fields) or "none"
        raise ProviderError(f"{', '.join(unknown)} cannot be set; this provider takes: {names}.")
    values: dict[str, Any] = {}
    for field in fields:
        if not field.applies(values):
            continue
        if field.key in given and given[field.key] not in (None, ""):
            values[field.key] = field.read(given[field.key])
        elif (suggested := field.suggestion(values)) is not None:
            values[field.key] = suggested
        elif field.required:
            raise ProviderError(f"{field.key} is needed: {field.description or 'no default'}.")
    return values


def settings_file(home: Path, name: str) -> Path:
    return home / "providers" / f"{name}.json"


def read_settings(home: Path, name: str) -> dict[str, Any]:
    """What was saved for a provider; empty when nothing was."""
    path = settings_file(home, name)
    try:
        values = json.loads(read_file(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ProviderError(f"{path} cannot be read ({error}). Mend it, or run 'memoranda provider setup'.") from error
    if not isinstance(values, dict):
        raise ProviderError(f"{path} must hold keys and values.")
    return values


def save(
    provider: MemoryProvider, name: str, fields: list[Field], values: Mapping[str, Any], home: Path
) -> dict[str, str]:
    """Save everything that is no secret; the secrets, by the names of their variables, are left to the caller."""
    secret = {field.key: field for field in fields if field.secret}
    plain = {key: value for key, value in values.items() if key not in secret}
    path = settings_file(home, name)
    make_private_directory(path.parent)
    write_private(path, json.dumps(plain, ensure_ascii=False, indent=2).encode())
    if type(provider).save_config is not MemoryProvider.save_config:
        provider.save_config(dict(plain), str(home))
    nameless = [key for key in secret if key in values and not secret[key].env_var]
    if nameless:
        raise ProviderError(f"{', '.join(nameless)}: the provider names no variable to keep this secret in.")
    return {field.env_var: str(values[key]) for key, field in secret.items() if key in values}
