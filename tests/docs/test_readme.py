"""The examples of the README do what it says."""

from pathlib import Path
from typing import Any

import pytest

import memoranda
from tests.docs.pages import ROOT, fences


def test_the_ten_lines_of_the_readme_find_what_the_model_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one block of code prints the answer that a new search finds, and both messages are in the record."""
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path / "home"))
    (block,) = fences(ROOT / "README.md", "python")
    names: dict[str, Any] = {}
    exec(block, names)
    names["memory"].close()
    assert capsys.readouterr().out.startswith("Take the locks in one order")
    with memoranda.open(tmp_path / "home") as memory:
        (session,) = memory.sessions.list_sessions_rich()
        assert session["message_count"] == 2
