"""The classes with which a plugin written for Hermes describes its settings to a form.

Memoranda shows no such form: `provider setup` asks for the fields of `get_config_schema`. A plugin only has to be able
to import and construct these.
"""

from typing import Any

from memoranda.support.lazy_dataclass import dataclass

__all__ = [
    "KIND_BOOL",
    "KIND_JSON",
    "KIND_NUMBER",
    "KIND_SECRET",
    "KIND_SELECT",
    "KIND_TEXT",
    "STORAGE_HONCHO_HOST_BLOCK",
    "ProviderConfigSchema",
    "ProviderField",
    "ProviderFieldOption",
]

KIND_BOOL = "bool"
KIND_JSON = "json"
KIND_NUMBER = "number"
KIND_SECRET = "secret"
KIND_SELECT = "select"
KIND_TEXT = "text"
STORAGE_HONCHO_HOST_BLOCK = "honcho_host_block"


@dataclass(frozen=True, slots=True)
class ProviderFieldOption:
    """One choice of a field."""

    value: str
    label: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class ProviderField:
    """One field of a form."""

    key: str
    label: str = ""
    kind: str = KIND_TEXT
    default: Any = ""
    description: str = ""
    placeholder: str = ""
    env_key: str = ""
    aliases: tuple[str, ...] = ()
    env_fallbacks: tuple[str, ...] = ()
    options: tuple[ProviderFieldOption, ...] = ()
    group: str = ""
    info: str = ""
    inline: bool = False
    scope: str = ""


@dataclass(frozen=True, slots=True)
class ProviderConfigSchema:
    """The form of one provider."""

    name: str
    label: str = ""
    fields: tuple[ProviderField, ...] = ()
    storage: str = ""
    docs_url: str = ""
