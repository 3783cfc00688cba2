"""What a provider asks for is checked and really saved."""

from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ProviderError
from memoranda.external.loading.setup import (
    ConfigField,
    fields_of,
    read_settings,
    resolve_values,
    restored_on_failure,
    save_values,
    variables_of,
)
from memoranda.external.provider import MemoryProvider

pytestmark = pytest.mark.slow

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
    values = resolve_values(fields_of(Acme()), {"extract": "no", "limit": "7"})
    assert values == {"mode": "local", "url": "http://localhost", "extract": False, "limit": 7}
    assert resolve_values(fields_of(Acme()), {"mode": "CLOUD", "api_key": "k"})["url"] == "https://acme"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"mode": "moon"}, "one of local, cloud"),
        ({"extract": "perhaps"}, "extract must be yes or no, not"),
        ({"limit": "many"}, "limit must be"),
        ({"mode": "cloud"}, "api_key is required"),
        ({"nonsense": "x"}, "cannot be set"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, str], reason: str) -> None:
    """Before anything is saved."""
    with pytest.raises(ProviderError, match=reason):
        resolve_values(fields_of(Acme()), given)


def test_everything_is_saved_and_secrets_are_not_in_the_file(tmp_path: Path) -> None:
    """Also for a provider that does not save by itself."""
    provider = Acme()
    fields = fields_of(provider)
    secrets = save_values(
        provider, "acme", fields, resolve_values(fields, {"mode": "cloud", "api_key": "top secret"}), tmp_path
    )
    assert secrets == {"ACME_KEY": "top secret"}
    assert read_settings(tmp_path, "acme") == {"mode": "cloud", "url": "https://acme", "extract": False, "limit": 5}
    assert "top secret" not in (tmp_path / "providers" / "acme.json").read_text()


def test_settings_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """A broken file is not taken for an empty one."""
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "acme.json").write_text("{")
    with pytest.raises(ProviderError, match="cannot be read"):
        read_settings(tmp_path, "acme")


def test_what_is_not_named_stays_as_it_was() -> None:
    """Unless it followed from something that changes, is no longer allowed, or is given nothing."""
    fields = fields_of(Acme())
    known = {"mode": "cloud", "url": "https://acme", "limit": 9, "extract": True}
    assert resolve_values(fields, {"extract": "no"}, known, {"ACME_KEY"}) == known | {"extract": False}
    assert resolve_values(fields, {"mode": "local"}, known)["url"] == "http://localhost"
    assert resolve_values(fields, {"mode": "local"}, known | {"url": "http://own"})["url"] == "http://own"
    assert resolve_values(fields, {"limit": ""}, known, {"ACME_KEY"})["limit"] == 5
    assert resolve_values(fields, {}, {"mode": "moon", "limit": [1]}) == resolve_values(fields, {})


def test_a_secret_that_is_set_already_need_not_be_given_again() -> None:
    """And it is not overwritten."""
    assert "api_key" not in resolve_values(fields_of(Acme()), {"mode": "cloud"}, {}, {"ACME_KEY"})


def test_fields_with_a_variable_are_kept_where_the_provider_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secret or not; what no variable can hold is refused before anything is saved."""
    monkeypatch.setattr(
        "tests.external.test_setup.SCHEMA",
        [{"key": "url", "env_var": "ACME_URL"}, {"key": "fast", "default": True, "env_var": "ACME_FAST"}],
    )
    provider = Acme()
    fields = fields_of(provider)
    values = resolve_values(fields, {"url": "http://here"})
    assert save_values(provider, "acme", fields, values, tmp_path) == {"ACME_URL": "http://here", "ACME_FAST": "true"}
    assert read_settings(tmp_path, "acme") == {"url": "http://here", "fast": True}
    with pytest.raises(ProviderError, match="one line"):
        variables_of(fields, {"url": "a\nb"})


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [None, 3, {"key": 4}, {"key": "k", "choices": 5, "default": object(), "when": ["x"], "env_var": "no name"}],
        [{"key": "k", "default_from": "j"}, {"key": "j", "default_from": {"map": 3}, "description": 7}],
    ],
)
def test_a_schema_of_garbage_is_read_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch, schema: Any) -> None:
    """What is no field, or no part of one, is left out."""
    monkeypatch.setattr("tests.external.test_setup.SCHEMA", schema)
    assert resolve_values(fields_of(Acme()), {}) == {}


def test_a_schema_that_is_no_list_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a problem of the provider."""
    monkeypatch.setattr("tests.external.test_setup.SCHEMA", 5)
    with pytest.raises(ProviderError, match="int instead of a list"):
        fields_of(Acme())


def test_a_provider_that_cannot_save_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """It saves first, and its error is reported."""

    class Full(Acme):
        def save_config(self, values: dict[str, Any], hermes_home: str, **facts: Any) -> None:
            raise OSError("no room")

    fields = fields_of(Acme())
    save_values(Acme(), "acme", fields, resolve_values(fields, {"limit": 7}), tmp_path)
    with pytest.raises(ProviderError, match="no room"):
        save_values(Full(), "acme", fields, resolve_values(fields, {"limit": 8}), tmp_path)
    assert read_settings(tmp_path, "acme")["limit"] == 7


def test_a_file_that_cannot_be_read_is_kept_and_replaced(tmp_path: Path) -> None:
    """More than once, without losing any."""
    place = tmp_path / "providers"
    place.mkdir()
    fields = fields_of(Acme())
    for broken in ("{", "[]"):
        (place / "acme.json").write_text(broken)
        save_values(Acme(), "acme", fields, resolve_values(fields, {}), tmp_path)
    assert read_settings(tmp_path, "acme")["limit"] == 5
    assert ((place / "acme.json.bak").read_text(), (place / "acme.json.bak2").read_text()) == ("{", "[]")


def test_keys_that_no_question_asks_for_are_kept(tmp_path: Path) -> None:
    """A person wrote them by hand."""
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "acme.json").write_text('{"by_hand": 1}')
    fields = fields_of(Acme())
    save_values(Acme(), "acme", fields, resolve_values(fields, {}), tmp_path)
    assert read_settings(tmp_path, "acme")["by_hand"] == 1


def test_files_are_put_back_when_something_fails(tmp_path: Path) -> None:
    """Changed ones, and new ones are gone."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("as it was")
    with pytest.raises(ZeroDivisionError), restored_on_failure(old, new):
        old.write_text("changed")
        new.write_text("new")
        raise ZeroDivisionError
    assert old.read_text() == "as it was"
    assert not new.exists()


def test_a_file_that_a_failed_setup_deleted_is_restored(tmp_path: Path) -> None:
    """And so are the files after it."""
    deleted, changed = tmp_path / "deleted", tmp_path / "changed"
    deleted.write_bytes(b"one")
    changed.write_bytes(b"two")
    with pytest.raises(ZeroDivisionError), restored_on_failure(deleted, changed):
        deleted.unlink()
        changed.write_bytes(b"three")
        raise ZeroDivisionError
    assert (deleted.read_bytes(), changed.read_bytes()) == (b"one", b"two")


def test_true_and_false_as_choices_accept_yes_and_no() -> None:
    """The value is the choice as the plugin wrote it; other choices accept no such words."""
    field = ConfigField("extract", default="true", choices=("true", "false"))
    assert [field.parse(text) for text in ("no", "Yes", "off", "1", "TRUE", False)] == [
        "false",
        "true",
        "false",
        "true",
        "true",
        "false",
    ]
    with pytest.raises(ProviderError, match="one of true, false"):
        field.parse("maybe")
    with pytest.raises(ProviderError, match="one of on, local"):
        ConfigField("mode", choices=("on", "local")).parse("yes")
