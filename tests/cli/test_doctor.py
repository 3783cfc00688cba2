"""`memoranda doctor --fix` in a home that is in use, and in one that has lost its sessions' file."""

import os
import random
import tomllib
from pathlib import Path

import pytest

from memoranda import __version__
from memoranda.memory.record.store import open_store
from memoranda.storage.sqlite.database import PAGE_SIZE
from tests.cli.terminal import Terminal
from tests.conftest import tree
from tests.forked import Forked, Say, forking
from tests.memory.record.damaged_homes import HEADER_DAMAGES, LOST_FILES, append_messages, fill_home
from tests.storage.orphaned_stores import killed_store

pytestmark = forking


@pytest.mark.slow
def test_a_damaged_store_in_use_is_not_replaced_and_what_is_written_meanwhile_is_not_lost(tmp_path: Path) -> None:
    """The command fails and says who has to be stopped; then it succeeds."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_messages("s", [{"role": "user", "content": f"{each} " * 200} for each in range(300)])
    with path.open("r+b") as file:
        file.seek(path.stat().st_size * 3 // 4 // PAGE_SIZE * PAGE_SIZE)
        file.write(b"\xa5" * PAGE_SIZE)
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
    assert "its log state.db-wal holds the latest writes" in result.output + result.stderr
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_the_doctor_lists_the_hosts_and_reports_a_program_that_moved(tmp_path: Path) -> None:
    """With the command that fixes it; a host that uses another home is not mentioned."""
    (tmp_path / "user").mkdir()
    terminal = Terminal(tmp_path / "home")
    terminal.ok("install", "codex", "--yes")
    answer = terminal.json("doctor")
    assert [(host["host"], host["version"]) for host in answer["hosts"]] == [("codex", __version__)]
    assert "Host: Codex starts " in terminal.ok("doctor")
    assert "Codex" not in Terminal(tmp_path / "other").ok("doctor")
    file = tmp_path / "user" / ".codex" / "config.toml"
    program = tomllib.loads(file.read_text())["mcp_servers"]["memoranda"]["command"]
    file.write_text(file.read_text().replace(program, "/gone/memoranda"))
    result = terminal.run("doctor")
    assert result.exit_code == 1
    assert f"{file} makes Codex start /gone/memoranda" in result.output
    assert "to fix: memoranda install codex" in result.output
    terminal.ok("install", "codex", "--yes")
    terminal.ok("doctor")


@pytest.mark.parametrize(
    "name", [*LOST_FILES, *(pytest.param(name, marks=pytest.mark.slow) for name in HEADER_DAMAGES)]
)
def test_commands_report_a_lost_store_and_never_start_a_new_one(tmp_path: Path, name: str) -> None:
    """They say what to do, with exit code 2; commands about curated memory work."""
    path = fill_home(tmp_path / "home", 2, 5)
    (HEADER_DAMAGES | LOST_FILES)[name](path, random.Random(1))
    terminal = Terminal(path.parent)
    before = tree(path.parent)
    for arguments in (["sessions", "list"], ["search", "zebra"], ["recall", "zebra"], ["sessions", "show", "s1"]):
        result = terminal.run(*arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert "memoranda doctor" in result.stderr
    assert tree(path.parent) == before
    assert "heron" in terminal.ok("memory", "list")
    terminal.ok("memory", "add", "Still works.")
    result = terminal.run("doctor", "--fix")
    assert result.exit_code == (1 if name in LOST_FILES else 0)


def test_a_restored_backup_is_accepted_with_an_option(tmp_path: Path) -> None:
    """The answer says which store the home has from now on."""
    path = fill_home(tmp_path / "home", 2, 5)
    backup = path.read_bytes()
    append_messages(path)
    path.write_bytes(backup)
    terminal = Terminal(path.parent)
    assert "is older than the store that this home had" in terminal.run("doctor").stdout
    result = terminal.run("doctor", "--accept-store")
    assert (result.exit_code, result.stderr) == (
        0,
        f"{path} is the store of this home from now on; it has 10 messages.\n",
    )
    assert "s1" in terminal.ok("sessions", "list")
    assert "nothing to accept" in Terminal(tmp_path / "new").run("doctor", "--accept-store").stderr


def test_a_home_that_cannot_exist_is_a_problem(tmp_path: Path) -> None:
    """Below a file, for example: the doctor reports what every other command says, and not that it will be created."""
    (tmp_path / "file").touch()
    result = Terminal(tmp_path / "file" / "home").run("doctor")
    assert result.exit_code == 1
    assert "file is not a directory" in result.output and "does not exist yet" not in result.output
    assert "does not exist yet" in Terminal(tmp_path / "home").ok("doctor")


def test_a_destroyed_store_beside_memories_is_damaged_and_not_foreign(tmp_path: Path) -> None:
    """Also in a home that had no conversations before."""
    terminal = Terminal(tmp_path / "home")
    terminal.ok("remember", "The staging database is called heron.")
    (tmp_path / "home" / "state.db").write_bytes(random.Random(1).randbytes(4_000))
    for words in (["search", "heron"], ["doctor"]):
        result = terminal.run(*words)
        assert result.exit_code != 0
        assert "is damaged" in result.output and "another program" not in result.output
    assert "restore a backup" in terminal.run("doctor").output
