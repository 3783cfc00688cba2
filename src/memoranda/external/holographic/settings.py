"""Settings of the provider, and the form in which setup asks for them."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigError, ProviderError
from memoranda.external.loading.setup import ConfigField, read_settings, write_settings
from memoranda.support.lazy_dataclass import dataclass

NAME = "holographic"

FIELDS = (
    ConfigField(
        "auto_extract",
        "Store the user's statements about preferences and decisions when a session ends",
        default=False,
    ),
    ConfigField("default_trust", "Trust of a new fact, 0 to 1", default=0.5, minimum=0, maximum=1),
    ConfigField("min_trust", "Facts trusted less are not recalled", default=0.3, minimum=0, maximum=1),
    ConfigField(
        "half_life_days",
        "Days after which a fact counts half; 0: facts do not age",
        default=0.0,
        minimum=0,
        maximum=36500,
    ),
    ConfigField(
        "dimension",
        "Dimensions of a vector; facts are encoded again when it changes",
        default=1024,
        minimum=256,
        maximum=8192,
    ),
    ConfigField("prefetch_limit", "Maximum number of facts recalled per turn", default=5, minimum=0, maximum=20),
)


@dataclass(frozen=True, slots=True)
class HolographicSettings:
    auto_extract: bool = False
    default_trust: float = 0.5
    min_trust: float = 0.3
    dimension: int = 1024
    half_life_days: float = 0.0
    prefetch_limit: int = 5

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "HolographicSettings":
        """Reads settings from a file, a form or a caller; unknown names are ignored. Raises ConfigError."""
        try:
            given = {field.key: field.parse(values[field.key]) for field in FIELDS if values.get(field.key) is not None}
        except ProviderError as error:
            raise ConfigError(f"holographic: {error}") from error
        return cls(**given)


def load(home: Path, overrides: Mapping[str, Any] | None = None) -> HolographicSettings:
    """The settings that setup saved in the home; the caller's overrides win."""
    try:
        saved = read_settings(home, NAME)
    except ProviderError as error:
        raise ConfigError(str(error)) from error
    return HolographicSettings.read(saved | dict(overrides or {}))


def save(values: Mapping[str, Any], home: Path) -> None:
    """Checks the values and saves them, with their types, in the file that setup uses."""
    settings = asdict(HolographicSettings.read(values))
    write_settings(home, NAME, {name: settings[name] for name in values if name in settings})
