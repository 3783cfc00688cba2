"""The settings of a vendor's provider: fields that all vendors have, and the values for a set of fields."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError
from memoranda.external.loading.setup import ConfigField, read_settings
from memoranda.external.settings import MODES

MODE = ConfigField(
    "mode",
    "Recall before each turn (context), tools for the model (tools), or both (hybrid)",
    default="hybrid",
    choices=MODES,
)
RECALL_LIMIT = ConfigField("recall_limit", "Maximum number of items per turn", default=6, minimum=1, maximum=50)
TIMEOUT = ConfigField(
    "timeout", "Seconds that a delivery or a tool waits for the service", default=30.0, minimum=1, maximum=300
)
ALLOW_HTTP = ConfigField("allow_http", "Accept http:// to another machine, in a network that you trust", default=False)
COMMON_FIELDS = (MODE, RECALL_LIMIT, TIMEOUT)


def resolve_settings(
    fields: Iterable[ConfigField],
    name: str,
    home: Path | None,
    given: Mapping[str, Any],
    variables: Mapping[str, str],
) -> dict[str, Any]:
    """A value for every field: of its variable, else given by the caller, else saved by setup, else the default.

    Raises ProviderError for a value that is not valid; an empty one counts as absent.
    """
    saved = read_settings(home, name) if home is not None else {}
    values: dict[str, Any] = {}
    for field in fields:
        found = (variables.get(field.env_var), given.get(field.key), saved.get(field.key))
        value = next((value for value in found if value is not None and value != ""), None)
        try:
            values[field.key] = field.default_for(values) if value is None else field.parse(value)
        except ProviderError as error:
            raise PermanentProviderError(f"{name}: {error} 'memoranda provider setup {name}' sets it.") from error
    return values


def missing_fields(fields: Iterable[ConfigField], values: Mapping[str, Any]) -> list[ConfigField]:
    """The required fields that have no value, among those that the values so far make necessary."""
    return [field for field in fields if field.required and field.applies(values) and not values.get(field.key)]
