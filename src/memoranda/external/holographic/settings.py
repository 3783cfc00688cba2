"""Settings of the provider, and the form in which setup asks for them."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigError, ProviderError
from memoranda.external.loading.setup import read_settings, write_settings

NAME = "holographic"
MIN_DIMENSION = 256
MAX_DIMENSION = 8192
_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0", ""})


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
        """Reads settings from a file, a form or a caller; unknown names are ignored."""
        known = {field.name: field.default for field in fields(cls)}
        return cls(
            **{name: _convert(name, values[name], known[name]) for name in known if values.get(name) is not None}
        )


_LIMITS: dict[str, tuple[float, float]] = {
    "default_trust": (0, 1),
    "min_trust": (0, 1),
    "dimension": (MIN_DIMENSION, MAX_DIMENSION),
    "half_life_days": (0, 36500),
    "prefetch_limit": (0, 20),
}

SCHEMA: list[dict[str, Any]] = [
    {
        "key": "auto_extract",
        "description": "Store the user's statements about preferences and decisions when a session ends",
        "type": "boolean",
        "default": False,
    },
    {"key": "default_trust", "description": "Trust of a new fact, 0 to 1", "type": "number", "default": 0.5},
    {"key": "min_trust", "description": "Facts trusted less are not recalled", "type": "number", "default": 0.3},
    {
        "key": "half_life_days",
        "description": "Days after which a fact counts half; 0: facts do not age",
        "type": "number",
        "default": 0.0,
    },
    {
        "key": "dimension",
        "description": "Dimensions of a vector; facts are encoded again when it changes",
        "type": "integer",
        "default": 1024,
    },
    {
        "key": "prefetch_limit",
        "description": "Maximum number of facts recalled per turn",
        "type": "integer",
        "default": 5,
    },
]


def load(home: Path, overrides: Mapping[str, Any] | None = None) -> HolographicSettings:
    """The settings that setup saved in the home; the caller's overrides win."""
    try:
        return HolographicSettings.read(read_settings(home, NAME) | dict(overrides or {}))
    except ProviderError as error:
        raise ConfigError(str(error)) from error


def save(values: Mapping[str, Any], home: Path) -> None:
    """Checks the values and saves them, with their types, in the file that setup uses."""
    settings = asdict(HolographicSettings.read(values))
    write_settings(home, NAME, {name: settings[name] for name in values if name in settings})


def _convert(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, bool):
        return _boolean(name, value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    low, high = _LIMITS[name]
    if isinstance(value, bool) or not low <= number <= high:
        raise ConfigError(f"holographic: {name} must be a number from {low:g} to {high:g}, not {value!r}.")
    if isinstance(default, int) and number != int(number):
        raise ConfigError(f"holographic: {name} must be a whole number, not {value!r}.")
    return int(number) if isinstance(default, int) else number


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _YES or word in _NO:
        return word in _YES
    raise ConfigError(f"holographic: {name} must be true or false, not {value!r}.")
