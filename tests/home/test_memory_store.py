"""`memoranda.MemoryStore` is constructed as programs written for Hermes construct it."""

from pathlib import Path

import pytest

import memoranda
from memoranda.errors import ConfigError, HomeError
from memoranda.memory.curated.operations import MemoryReceipt, MemoryRefusal
from memoranda.memory.curated.settings import CuratedSettings


@pytest.fixture
def default_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path))
    return tmp_path


def test_without_a_directory_it_is_the_memory_of_the_default_home(default_home: Path) -> None:
    """With the settings of that home; limits that are passed take precedence."""
    (default_home / "config.yaml").write_text("memory:\n  memory_char_limit: 500\n  user_char_limit: 600\n")
    store = memoranda.MemoryStore(memory_char_limit=20)
    assert (store.memory_char_limit, store.user_char_limit) == (20, 600)
    store.add("user", "Prefers tea.")
    assert (default_home / "memories" / "USER.md").read_text("utf-8").strip() == "Prefers tea."
    assert isinstance(store.add("memory", "x" * 21), MemoryRefusal)
    store.load_from_disk()
    assert "Prefers tea." in (store.format_for_system_prompt("user") or "")


def test_limits_go_with_a_directory_and_with_settings(tmp_path: Path) -> None:
    """The settings that are not limits stay as they were given."""
    store = memoranda.MemoryStore(tmp_path, CuratedSettings(lock_timeout=1.0, user_char_limit=7), memory_char_limit=9)
    assert store.settings == CuratedSettings(lock_timeout=1.0, user_char_limit=7, memory_char_limit=9)
    assert [type(store.add("memory", text)) for text in ("aaa", "bbb", "c")] == [
        MemoryReceipt,
        MemoryReceipt,
        MemoryRefusal,
    ]


def test_an_open_home_gives_the_same_class(tmp_path: Path) -> None:
    """A program can name the type of what it gets."""
    with memoranda.open(tmp_path) as memory:
        assert isinstance(memory.curated, memoranda.MemoryStore)


@pytest.mark.parametrize("limit", [0, -1, True, "2200", 1.5])
def test_a_limit_that_is_no_count_is_refused(tmp_path: Path, limit: object) -> None:
    """It would refuse every entry, or none."""
    with pytest.raises(ConfigError, match="memory_char_limit"):
        memoranda.MemoryStore(tmp_path, memory_char_limit=limit)  # type: ignore[arg-type]


def test_a_directory_of_another_program_is_no_home(default_home: Path) -> None:
    """Nothing is written into it."""
    (default_home / "passwd").write_text("root")
    with pytest.raises(HomeError):
        memoranda.MemoryStore()
    assert [path.name for path in default_home.iterdir()] == ["passwd"]
