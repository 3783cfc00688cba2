"""What `memoranda sessions prune --automatic` shows is what is deleted automatically; `vacuum` shrinks the file."""

import time

import pytest

from memoranda import SessionDB
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

DAY = 86_400.0


@pytest.fixture
def old(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A home with conversations of different ages, users and states."""
    terminal = Terminal(tmp_path_factory.mktemp("old") / "home")
    terminal.home.mkdir()
    with SessionDB(terminal.home / "state.db") as db:
        for name, days in (("old", 100), ("theirs", 100), ("archived", 100), ("younger", 50)):
            then = time.time() - days * DAY
            db.create_session(name, "cli", started_at=then, user_id="ana" if name == "theirs" else None)
            db.append_message(name, "user", f"a quagga in {name} " + "x" * 5_000, timestamp=then)
            db.end_session(name, "user_exit")
        db.set_session_archived("archived", True)
    return terminal


def test_the_preview_shows_what_automatic_deletion_would_delete(old: Terminal) -> None:
    """By the settings, of all users, without archived ones; and whether it is on, and when it is due."""
    shown = old.json("sessions", "prune", "--automatic", "--dry-run")
    assert (shown["would_delete"], shown["auto_prune"], shown["last_prune"]) == (["old", "theirs"], False, None)
    assert "sessions.auto_prune true" in old.ok("sessions", "prune", "--automatic", "--dry-run")
    old.ok("config", "set", "sessions.auto_prune", "true")
    old.ok("config", "set", "sessions.retention_days", "40")
    text = old.ok("sessions", "prune", "--automatic", "--dry-run")
    assert "3 sessions with 3 messages" in text and "on and due" in text
    with SessionDB(old.home / "state.db") as db:
        assert db.prune_when_due(40) == 3
    text = old.ok("sessions", "prune", "--automatic", "--dry-run")
    assert text.startswith("There is nothing to prune.\nAutomatic deletion is on, was done ")
    assert len(old.json("sessions", "list", "--all-users", "--archived")["sessions"]) == 1


def test_automatic_deletion_can_be_done_by_hand(old: Terminal) -> None:
    """With the same question as any other deletion."""
    assert old.run("sessions", "prune", "--automatic", input="n\n").exit_code == 0
    assert old.json("sessions", "prune", "--automatic", "--yes")["deleted"] == 2


@pytest.mark.parametrize("option", [["--older-than", "1d"], ["--source", "cli"], ["--title", "x"], ["--all-users"]])
def test_automatic_means_the_settings(old: Terminal, option: list[str]) -> None:
    """No option narrows it, because nothing narrows what is deleted automatically."""
    result = old.run("sessions", "prune", "--automatic", *option)
    assert result.exit_code == 2 and f"{option[0]} cannot be combined" in result.output


def test_vacuum_shrinks_the_file(old: Terminal) -> None:
    """After a deletion it has less to contain, and the index no longer has the words."""
    assert "quagga" in old.ok("search", "quagga")
    with SessionDB(old.home / "state.db") as db:
        assert db.prune_when_due(1, vacuum=False, archived=None) == 4
    assert any(b"quagga" in file.read_bytes() for file in old.home.glob("state.index.db.*"))
    done = old.json("sessions", "vacuum")
    assert not any(b"quagga" in file.read_bytes() for file in old.home.glob("state.*"))
    assert done["bytes_after"] < done["bytes_before"]
    assert f"{done['bytes_after']:,} bytes now" in old.ok("sessions", "vacuum")


def test_vacuum_in_an_empty_home_creates_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    """There is nothing to shrink."""
    terminal = Terminal(tmp_path_factory.mktemp("empty") / "home")
    terminal.ok("sessions", "vacuum")
    assert not (terminal.home / "state.db").exists()
