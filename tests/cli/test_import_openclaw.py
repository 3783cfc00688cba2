"""`memoranda import openclaw` shows what would happen, writes nothing without consent, and reports everything."""

import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoranda.cli.imports import openclaw
from memoranda.cli.main import command
from memoranda.home.session_db import SessionDB
from memoranda.importers.importer import import_lock
from tests.importers.openclaw.material import OPENAI, SESSION, TELEGRAM, contents, make_openclaw
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

_PROGRAM = [sys.executable, "-m", "memoranda", "import"]


@pytest.fixture(autouse=True)
def _openclaw_is_not_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENCLAW_STATE_DIR", raising=False)
    monkeypatch.setattr(openclaw, "find_openclaw_processes", list)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_openclaw(tmp_path / "user" / ".openclaw")


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["import", "--home", str(home), "openclaw", *arguments])


def answer(home: Path, *arguments: str) -> dict[str, Any]:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize("arguments", [[], ["--dry-run"], ["--dry-run", "--yes"], ["--migrate-secrets"]])
def test_nothing_is_written_before_a_yes(home: Path, source: Path, arguments: list[str]) -> None:
    """What would happen is shown; without a terminal to ask, that is all, and the command fails. No file is changed."""
    before = contents(source)
    result = run(home, *arguments)
    assert result.exit_code == (0 if "--dry-run" in arguments else 1), result.output
    assert "entries: 8 new, 0 already here" in result.output
    assert "messages: 5 would be added" in result.output
    assert "Nothing was written. Add --yes to import this." in result.output
    assert OPENAI not in result.output
    assert not home.exists()
    assert contents(source) == before


def test_while_another_import_runs_nothing_is_migrated(
    home: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither memories nor conversations, and no backup is made; the error names the other import."""
    monkeypatch.setattr("memoranda.cli.imports.workflow._LOCK_TIMEOUT", 0.05)
    with import_lock(home, 0.0):
        result = run(home, "--yes")
    assert (result.exit_code, f"running: process {os.getpid()} " in result.stderr) == (1, True)
    assert not any((home / name).exists() for name in ("memories", "migration", "backups"))


def test_with_yes_everything_moves_and_is_found(home: Path, source: Path) -> None:
    """What was shown is what is done; a report stays, and conversations can be searched at once."""
    planned, done = answer(home, "--dry-run"), answer(home, "--yes")
    assert (planned["applied"], done["applied"]) == (False, True)
    assert planned["sessions"] == done["sessions"]
    kinds = [(item["kind"], item["source"]) for item in planned["migration"]["items"]]
    assert kinds == [(item["kind"], item["source"]) for item in done["migration"]["items"]]
    report = json.loads(Path(done["report"]).read_text())
    assert report["finished"] is True
    assert report["summary"] == done["migration"]["summary"]
    assert Path(done["report"]).parent.parent == home / "migration" / "openclaw"
    with SessionDB(home / "state.db") as db:
        assert db.get_session(f"openclaw-{SESSION}")["title"] == "The anchor"  # type: ignore[index]
        assert db.search_messages("locker")


def test_a_second_time_nothing_is_new(home: Path, source: Path) -> None:
    """Not even a report is written."""
    answer(home, "--yes")
    before = contents(home / "migration") | contents(home / "memories")
    result = run(home, "--yes")
    assert "Nothing is new." in result.output
    assert contents(home / "migration") | contents(home / "memories") == before


def test_the_home_is_copied_before(home: Path, source: Path) -> None:
    """Unless that is not wanted; an empty home has nothing to copy."""
    assert answer(home, "--yes")["backup"] is None
    note = source / "workspace" / "memory" / "2026-11-15.md"
    note.write_text("- Sailed.\n")
    copy = answer(home, "--yes")["backup"]
    with zipfile.ZipFile(copy) as archive:
        assert b"Sailed" not in archive.read("memories/MEMORY.md")
        assert "state.db" in archive.namelist()
    note.write_text("- Sailed again.\n")
    assert answer(home, "--yes", "--no-backup")["backup"] is None


def test_secrets_move_only_by_order(home: Path, source: Path) -> None:
    """And no preset for data can be given that order."""
    answer(home, "--yes")
    assert not (home / ".env").exists()
    answer(home, "--yes", "--migrate-secrets")
    assert OPENAI in (home / ".env").read_text()
    assert TELEGRAM not in (home / ".env").read_text()
    refused = run(home, "--yes", "--migrate-secrets", "--preset", "user-data")
    assert refused.exit_code == 2
    assert "never copies secrets" in refused.output


def test_another_agent_gets_its_own_memory(home: Path, source: Path) -> None:
    """In a profile, without what belongs to the others."""
    done = answer(home, "--yes", "--agent", "work", "--profile", "work")
    assert done["migration"]["agent"] == "work"
    assert (home / "profiles" / "work" / "memories" / "MEMORY.md").read_text() == "The office closes at six."
    assert done["sessions"] is None
    assert run(home, "--agent", "nobody").exit_code == 1


def test_conversations_can_be_omitted(home: Path, source: Path) -> None:
    """The home then has no record."""
    assert answer(home, "--yes", "--no-sessions")["sessions"] is None
    assert not (home / "state.db").exists()


def test_without_openclaw_the_error_names_its_directories(home: Path, tmp_path: Path) -> None:
    """With a hint, and an exit code for an unusable source."""
    (tmp_path / "user").mkdir(exist_ok=True)
    for arguments in ([], ["--source", str(tmp_path / "user")]):
        result = run(home, *arguments)
        assert result.exit_code == 2
        assert "--source" in result.output
        assert not home.exists()


def test_older_names_and_a_named_directory_are_found(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the variable that moves OpenClaw's own directory."""
    old = make_openclaw(tmp_path / "user" / ".clawdbot")
    assert answer(home, "--dry-run")["migration"]["source"] == str(old)
    moved = make_openclaw(tmp_path / "moved")
    assert answer(home, "--dry-run", "--source", str(moved))["migration"]["source"] == str(moved)
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(moved))
    assert answer(home, "--dry-run")["migration"]["source"] == str(moved)


def test_a_failed_step_is_reported_and_sets_the_exit_code(home: Path, source: Path) -> None:
    """All other steps are done."""
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "MEMORY.md").write_bytes(b"\xff\xfe")
    result = run(home, "--yes", "--json", "--no-backup")
    done = json.loads(result.stdout)
    assert (result.exit_code, done["success"]) == (1, False)
    assert done["migration"]["summary"]["error"] == 1
    assert (home / "memories" / "USER.md").read_text() == "Always answer in German."


def test_a_running_openclaw_is_warned_of(home: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words, or as its process numbers."""
    monkeypatch.setattr(openclaw, "find_openclaw_processes", lambda: [4711])
    assert "OpenClaw is running (process 4711)" in run(home, "--dry-run").output
    assert answer(home, "--dry-run")["running"] == [4711]


def test_at_a_terminal_a_person_is_asked(home: Path, source: Path) -> None:
    """A no leaves everything as it is, a yes does it."""
    for said, database_exists in (("n", False), ("y", True)):
        shown = _at_a_terminal(home, said)
        assert "Import this?" in shown
        assert (home / "memories" / "MEMORY.md").exists() is database_exists


def test_cleanup_renames_after_a_yes_and_not_before(home: Path, source: Path) -> None:
    """What would happen is shown first."""
    result = run(home, "cleanup")
    assert "Nothing was renamed. Add --yes to do it." in result.output
    assert "It has not been imported into this home yet." in result.output
    assert source.exists()
    assert answer(home, "cleanup", "--dry-run", "--yes")["renamed"] == []
    becomes = Path(answer(home, "cleanup", "--yes")["renamed"][0]["becomes"])
    assert becomes.name == ".openclaw.pre-migration"
    assert (becomes / "openclaw.json").is_file()
    assert not source.exists()
    assert "no directory of OpenClaw" in run(home, "cleanup").output


def test_cleanup_takes_no_directory_that_is_not_openclaws(home: Path, tmp_path: Path) -> None:
    """A typing error must not rename a person's documents."""
    (tmp_path / "documents").mkdir()
    assert run(home, "cleanup", "--source", str(tmp_path / "documents"), "--yes").exit_code == 2
    assert (tmp_path / "documents").is_dir()


def _at_a_terminal(home: Path, said: str) -> str:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*_PROGRAM, "--home", str(home), "openclaw"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=dict(os.environ),
    ) as process:
        os.close(follower)
        os.write(leader, f"{said}\n".encode())
        shown = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
        process.wait(timeout=GIVE_UP)
    os.close(leader)
    return shown.decode("utf-8", "replace")
