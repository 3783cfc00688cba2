"""The store has the fields and constants that programs written for Hermes read."""

from pathlib import Path

import pytest

from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import (
    DEFAULT_MEMORY_CHAR_LIMIT,
    DEFAULT_USER_CHAR_LIMIT,
    ENTRY_DELIMITER,
)
from tests.memory.curated.storages import open_store

pytestmark = pytest.mark.slow


def test_entries_and_limits_have_a_field_per_file(tmp_path: Path) -> None:
    """The fields follow every write; changing the returned list changes nothing."""
    store = open_store(tmp_path, CuratedSettings(user_char_limit=500))
    store.add("memory", "Uses pytest.")
    store.add("memory", "Uses ruff.")
    store.add("user", "Prefers tea.")
    store.memory_entries.clear()
    assert (store.memory_entries, store.user_entries) == (["Uses pytest.", "Uses ruff."], ["Prefers tea."])
    assert (store.memory_char_limit, store.user_char_limit) == (2200, 500)
    assert store.path("memory").read_text("utf-8") == ENTRY_DELIMITER.join(store.memory_entries)


def test_the_defaults_are_those_of_the_settings() -> None:
    """One number each, in one place."""
    settings = CuratedSettings()
    assert (settings.memory_char_limit, settings.user_char_limit) == (
        DEFAULT_MEMORY_CHAR_LIMIT,
        DEFAULT_USER_CHAR_LIMIT,
    )
    assert (DEFAULT_MEMORY_CHAR_LIMIT, DEFAULT_USER_CHAR_LIMIT, ENTRY_DELIMITER) == (2200, 1375, "\n§\n")
