"""What a provider asks for is checked and really saved."""

from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ProviderError
from memoranda.providers.provider import MemoryProvider
from memoranda.providers.setup import check, fields_of, read_settings, save

SCHEMA: list[dict[str, Any]] = [
    {"key": "mode", "choices": ["local", "cloud"], "default": "local"},
    {"key": "api_key", "secret": True, "env_var": "ACME_KEY", "required": True, "when": {"mode": "cloud"}},
    {"key": "url", "default_from": {"field": "mode", "map": {"cloud": "https://acme", "local": "http://localhost"}}},
    {"key": "extract", "default": False},
    {"key": "limit", "default": 5},
    {"no": "field"},
]


class Acme(MemoryProvider):
    @property
    def name(self) -> str:
        return "acme"

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **facts: Any) -> None:
        return None

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return []

    def get_config_schema(self) -> list[dict[str, Any]]:
        return SCHEMA


def test_values_become_what_they_should_be() -> None:
    """A no is a no, a number is a number, and what was not said has its default."""
    values = check(fields_of(Acme()), {"extract": "no", "limit": "7"})
    assert values == {"mode": "local", "url": "http://localhost", "extract": False, "limit": 7}
    assert check(fields_of(Acme()), {"mode": "CLOUD", "api_key": "k"})["url"] == "https://acme"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"mode": "moon"}, "one of local, cloud"),
        ({"extract": "perhaps"}, "extract takes"),
        ({"limit": "many"}, "limit takes"),
        ({"mode": "cloud"}, "api_key is needed"),
        ({"nonsense": "x"}, "cannot be set"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, str], reason: str) -> None:
    """Before anything is saved."""
    with pytest.raises(ProviderError, match=reason):
        check(fields_of(Acme()), given)


def test_everything_is_saved_and_secrets_are_not_in_the_file(tmp_path: Path) -> None:
    """Also for a provider that does not save by itself."""
    provider = Acme()
    fields = fields_of(provider)
    secrets = save(provider, "acme", fields, check(fields, {"mode": "cloud", "api_key": "top secret"}), tmp_path)
    assert secrets == {"ACME_KEY": "top secret"}
    assert read_settings(tmp_path, "acme") == {"mode": "cloud", "url": "https://acme", "extract": False, "limit": 5}
    assert "top secret" not in (tmp_path / "providers" / "acme.json").read_text()


def test_settings_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """A broken file is not taken for an empty one."""
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "acme.json").write_text("{")
    with pytest.raises(ProviderError, match="cannot be read"):
        read_settings(tmp_path, "acme")
