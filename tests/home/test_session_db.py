"""SessionDB, the store under the names that its users know."""

from pathlib import Path

import pytest

from memoranda import SessionDB


def test_without_a_path_it_opens_the_default_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home that MEMORANDA_HOME names."""
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path / "home"))
    db = SessionDB()
    db.create_session("s", "cli")
    db.close()
    assert (tmp_path / "home" / "state.db").exists()
