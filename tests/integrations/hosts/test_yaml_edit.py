"""One setting of a YAML text changes; every other byte stays."""

import pytest

from memoranda.integrations.hosts.host import UnusableSettingsError
from memoranda.integrations.hosts.yaml_edit import read_yaml, rewrite_yaml

pytestmark = pytest.mark.slow

TEXTS = {
    "": "memory:\n  provider: ours\n",
    "# only a comment\n": "# only a comment\nmemory:\n  provider: ours\n",
    "a: 1": "a: 1\nmemory:\n  provider: ours\n",
    "memory:\n": "memory:\n  provider: ours\n",
    "memory: null # nothing\na: 1\n": "memory:  # nothing\n  provider: ours\na: 1\n",
    "memory:  # mine\n    limit: 5\n": "memory:  # mine\n    provider: ours\n    limit: 5\n",
    "memory:\n  provider: ''   # none\nx: 2\n": "memory:\n  provider: ours   # none\nx: 2\n",
    "memory: {limit: 5}\n": "memory: {provider: ours, limit: 5}\n",
    "memory: {}\n": "memory: {provider: ours}\n",
    "memory: {provider: honcho, limit: 5} # x\n": "memory: {provider: ours, limit: 5} # x\n",
    "a: ö\r\nmemory:\r\n  b: 2\r\n": "a: ö\r\nmemory:\r\n  provider: ours\r\n  b: 2\r\n",
}


def _with_provider(text: str, value: str | None) -> str:
    settings = read_yaml(text)
    section = {name: old for name, old in (settings.get("memory") or {}).items() if name != "provider"}
    if value is not None:
        section["provider"] = value
    return rewrite_yaml(text, {**settings, "memory": section}, "memory", "provider")


@pytest.mark.parametrize("text", TEXTS)
def test_a_setting_is_added_or_replaced_where_it_belongs(text: str) -> None:
    """Comments, indentation and line ends stay as they are; a second edit changes nothing."""
    edited = _with_provider(text, "ours")
    assert edited == TEXTS[text]
    assert _with_provider(edited, "ours") == edited


@pytest.mark.parametrize("text", TEXTS)
def test_a_removed_setting_leaves_the_others(text: str) -> None:
    """A section that has nothing else goes with it."""
    removed = _with_provider(TEXTS[text], None)
    assert "ours" not in removed
    others = {name: value for name, value in (read_yaml(text).get("memory") or {}).items() if name != "provider"}
    assert (read_yaml(removed).get("memory") or {}) == others
    assert "memory: {}" in removed or removed.count("memory") == bool(others)


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "a: 1\n---\nb: 2\n", "a: 1\na: 2\n", "memory: [1]\n"])
def test_a_text_that_is_no_map_of_settings_is_refused(text: str) -> None:
    """Instead of being written over."""
    with pytest.raises(UnusableSettingsError):
        rewrite_yaml(text, {"memory": {"provider": "ours"}}, "memory", "provider")


def test_a_section_that_an_alias_shares_is_refused() -> None:
    """The edit would change the other place too."""
    text = "base: &b {provider: x}\nmemory: *b\n"
    wanted = {"base": {"provider": "x"}, "memory": {"provider": "ours"}}
    with pytest.raises(UnusableSettingsError, match="without changing something else"):
        rewrite_yaml(text, wanted, "memory", "provider")
