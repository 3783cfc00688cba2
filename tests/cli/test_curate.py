"""`memoranda curate`: what rules would tidy up, and the same done and undone."""

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

OLD, NEW = "The staging server is heron.", "The staging server is heron. Its port is 2222."


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def _entries(terminal: Terminal) -> list[str]:
    return [entry["text"] for entry in terminal.json("memory", "list")["memory"]["entries"]]


def test_a_home_with_entries_and_no_conversation_is_curated(terminal: Terminal) -> None:
    """As on the first day: shown, done, and undone; showing it creates no record."""
    for text in (OLD, NEW):
        terminal.ok("remember", text)
    assert f"- {OLD}" in terminal.ok("curate")
    assert not (terminal.home / "state.db").exists()
    assert "Done as change 3" in terminal.ok("curate", "--apply")
    assert _entries(terminal) == [NEW]
    terminal.ok("memory", "undo")
    assert _entries(terminal) == [OLD, NEW]


def test_an_empty_home_has_nothing_to_tidy_up(terminal: Terminal) -> None:
    """And says so."""
    assert terminal.ok("curate").strip() == "Nothing to tidy up."
    assert terminal.json("curate") == {"changes": [], "mode": "propose"}
