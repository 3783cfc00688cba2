"""Prices of tokens: a built-in table, and `prices.yaml` in the home, which overrides it.

A model that is in neither has no known price. Its calls are counted in tokens without an amount, because a wrong amount
would be worse than none.
"""

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigError
from memoranda.models.model import Usage
from memoranda.support.durable_files import read_file
from memoranda.support.lazy_dataclass import dataclass

FILE_NAME = "prices.yaml"
AS_OF = "2026-10"
_MILLION = 1_000_000
_FIELDS = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. Without its own price, cached input costs the same as other input.

    `long` is the price of prompts of more than `long_from` tokens, if it differs.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    long_from: int = 0
    long: "Price | None" = None

    def cost(self, usage: Usage) -> float:
        """The cost of a call in US dollars."""
        if self.long is not None and usage.input_tokens > self.long_from:
            return self.long.cost(usage)
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        fresh = max(0, usage.input_tokens - read - written)
        dollars = fresh * self.input + usage.output_tokens * self.output
        dollars += read * (self.input if self.cache_read is None else self.cache_read)
        dollars += written * (self.input if self.cache_write is None else self.cache_write)
        return dollars / _MILLION

    def max_cost(self, input_tokens: int, output_tokens: int) -> float:
        """The maximum cost of a call with these tokens, whether or not they are cached."""
        highest = max(self.input, self.cache_read or 0.0, self.cache_write or 0.0)
        cost = (input_tokens * highest + output_tokens * self.output) / _MILLION
        return max(cost, self.long.max_cost(input_tokens, output_tokens)) if self.long is not None else cost


FREE = Price(0.0, 0.0)


def _anthropic(input_price: float, output: float, read: float | None = None) -> Price:
    """A price with the prices of the five-minute cache, which Memoranda's client requests."""
    return Price(input_price, output, input_price / 10 if read is None else read, input_price * 1.25)


# Providers that are free, whatever the model.
_FREE_PROVIDERS = frozenset({"scripted"})
# Patterns of model names without their vendor; the first match wins.
_TABLE: dict[str, Price] = {
    "claude-fable-5[.-]1*": _anthropic(10, 50, 0.25),
    "claude-fable-5*": _anthropic(10, 50),
    "claude-opus-5[.-]5*": _anthropic(4, 20, 0.20),
    "claude-opus-5*": _anthropic(5, 25),
    "claude-opus-4[.-][5-8]*": _anthropic(5, 25),
    "claude-opus-4*": _anthropic(15, 75),
    "claude-sonnet-5*": _anthropic(2, 10),
    "claude-sonnet-4*": _anthropic(3, 15),
    "claude-3[.-]7-sonnet*": _anthropic(3, 15),
    "claude-haiku-5[.-]5*": Price(0.10, 0.50, 0.01, 0.125, 100_000, _anthropic(0.50, 2.50)),
    "claude-haiku-4[.-]5*": _anthropic(1, 5),
    "claude-3[.-]5-haiku*": _anthropic(0.80, 4),
    "gpt-5[.-]4": Price(2.50, 15),
    "gpt-5-mini*": Price(0.25, 2, 0.025),
    "gpt-5-nano*": Price(0.05, 0.40, 0.005),
    "gpt-5-pro*": Price(15, 120),
    "gpt-5": Price(1.25, 10, 0.125),
    "gpt-5-2*": Price(1.25, 10, 0.125),
    "gpt-5[.-]1": Price(1.25, 10, 0.125),
    "gpt-4.1-mini*": Price(0.40, 1.60, 0.10),
    "gpt-4.1-nano*": Price(0.10, 0.40, 0.025),
    "gpt-4.1*": Price(2, 8, 0.50),
    "gpt-4o-mini*": Price(0.15, 0.60, 0.075),
    "gpt-4o": Price(2.50, 10, 1.25),
    "gpt-4o-2*": Price(2.50, 10, 1.25),
    "o3": Price(2, 8, 0.50),
    "o3-mini*": Price(1.10, 4.40, 0.55),
    "o4-mini*": Price(1.10, 4.40, 0.275),
}


class Prices:
    """The prices of one home; the file is read again after it has changed."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME
        self._file_version: tuple[int, int] | None = None
        self._own: dict[str, Price] = {}

    def of(self, provider: str, model: str) -> Price | None:
        """The price of a model, None if unknown; raises ConfigError if the file is invalid."""
        own = self._read()
        name = model.strip().lower()
        for candidate in (f"{provider.lower()}/{name}", name, name.rpartition("/")[2]):
            for pattern, price in own.items():
                if fnmatchcase(candidate, pattern):
                    return price
        if provider.lower() in _FREE_PROVIDERS:
            return FREE
        bare = name.rpartition("/")[2]
        return next((price for pattern, price in _TABLE.items() if fnmatchcase(bare, pattern)), None)

    def _read(self) -> dict[str, Price]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._file_version, self._own = None, {}
            return self._own
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {error.strerror}.") from error
        version = (status.st_mtime_ns, status.st_size)
        if self._file_version != version:
            self._own = _parse(self.path)
            self._file_version = version
        return self._own


def _parse(path: Path) -> dict[str, Price]:
    # Imported here: it takes 40 ms, and most homes have no prices.yaml.
    from ruamel.yaml import YAML

    try:
        document = YAML(typ="safe").load(read_file(path).decode("utf-8"))
    except Exception as error:
        # The parser raises errors of many types for odd documents; each means that the file is invalid.
        raise ConfigError(f"{path} is not valid YAML: {error}.") from error
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ConfigError(f"{path} must contain models and their prices, not {type(document).__name__}.")
    return {str(name).strip().lower(): _price(path, str(name), value) for name, value in document.items()}


def _price(path: Path, name: str, value: Any) -> Price:
    if value == 0 and not isinstance(value, bool):
        return FREE
    if not isinstance(value, Mapping) or not {"input", "output"} <= value.keys() <= {*_FIELDS}:
        raise ConfigError(
            f"{name} in {path} must be 0 or have input and output, and may have cache_read and cache_write, "
            "in US dollars per million tokens."
        )
    for field, amount in value.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise ConfigError(f"{field} of {name} in {path} is {amount!r}; it must be a number, 0 or more.")
    amounts = {field: float(amount) for field, amount in value.items()}
    return Price(amounts["input"], amounts["output"], amounts.get("cache_read"), amounts.get("cache_write"))
