"""`memoranda doctor --fix` in a home that is in use, and in one that has lost its sessions' file."""

import os
from pathlib import Path

import pytest

from memoranda.sessions.store import open_store
from tests.cli.terminal import Terminal
from tests.conftest import tree
from tests.db.orphaned_stores import killed_store
from tests.forked import Forked, Say, forking

pytestmark = forking


def test_a_damaged_store_in_use_is_not_replaced_and_what_is_written_meanwhile_is_not_lost(tmp_path: Path) -> None:
    """The command fails and says who has to be stopped; then it succeeds."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_messages("s", [{"role": "user", "content": f"{each} " * 200} for each in range(300)])
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 8192 * 8192)
        file.write(b"\xa5" * 8192)
    checked, written = os.pipe()

    def use(say: Say) -> None:
        with open_store(path) as store:
            say(str(os.getpid()).encode())
            os.read(checked, 1)
            store.messages.append_message("s", "user", "written meanwhile")

    other = Forked(use)
    number = other.heard().decode()
    result = Terminal(tmp_path).run("doctor", "--fix")
    assert result.exit_code == 1, result.output
    assert f"is open in process {number}" in result.stderr or "is open in another process" in result.stderr
    assert "Stop every program" in result.stderr
    assert list(tmp_path.glob("*.damaged-*")) == []
    os.write(written, b"x")
    assert other.wait() == 0
    for end in (checked, written):
        os.close(end)
    assert "fixed: saved 1 sessions" in Terminal(tmp_path).ok("doctor", "--fix")
    with open_store(path) as store:
        assert store.messages.get_messages("s")[-1]["content"] == "written meanwhile"


@pytest.mark.parametrize("command", [["sessions", "list"], ["search", "x"], ["sessions", "show", "s"], ["doctor"]])
def test_no_command_takes_a_store_that_lost_its_file_for_an_empty_one(tmp_path: Path, command: list[str]) -> None:
    """It says what happened and what to do, and changes nothing."""
    killed_store(tmp_path / "state.db").unlink()
    before = tree(tmp_path)
    result = Terminal(tmp_path).run(*command)
    assert result.exit_code != 0
    assert "its log state.db-wal holds what was written last" in result.output + result.stderr
    assert tree(tmp_path) == before


def test_the_old_spelling_of_fix_still_works(tmp_path: Path) -> None:
    """Scripts may use it; the help names the new one only."""
    terminal = Terminal(tmp_path)
    terminal.ok("memory", "add", "A fact.")
    tmp_path.chmod(0o755)
    assert "1 problem to fix." in terminal.run("doctor").output
    assert "fixed" in terminal.ok("doctor", "--mend")
    assert "--mend" not in terminal.ok("doctor", "--help")
