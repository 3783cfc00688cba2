"""`memoranda backup` and `memoranda restore` on the terminal."""

import json
from pathlib import Path

import pytest

import memoranda
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    with memoranda.open(tmp_path / "home") as memory:
        memory.remember("Likes pears.")
    (tmp_path / "home" / ".env").write_text("KEY=1\n")
    return Terminal(tmp_path / "home")


def test_a_backup_is_written_verified_and_restored(terminal: Terminal, tmp_path: Path) -> None:
    """With names, sizes and a warning about keys; a directory as target gets a name with the time."""
    wrote = terminal.ok("backup", str(tmp_path))
    (file,) = tmp_path.glob("memoranda-*.zip")
    assert str(file) in wrote.replace("\n", "")
    assert "--without-secrets" in wrote
    assert "The backup is complete" in terminal.ok("restore", str(file), "--dry-run")
    again = Terminal(tmp_path / "again")
    assert "Restored" in again.ok("restore", str(file))
    assert "Likes pears." in again.ok("memory", "list")


def test_answers_as_json_name_what_was_done(terminal: Terminal, tmp_path: Path) -> None:
    """For a program that schedules backups."""
    file = str(tmp_path / "a.zip")
    wrote = json.loads(terminal.ok("backup", file, "--json"))
    assert wrote["success"]
    assert (wrote["file"], wrote["encrypted"], wrote["contains_secrets"]) == (file, False, True)
    restored = json.loads(terminal.ok("restore", file, "--replace", "--json"))
    assert restored["files"] == wrote["files"]
    assert Path(restored["replaced"]).is_dir()


def test_a_restore_names_what_acts_by_itself(terminal: Terminal, tmp_path: Path) -> None:
    """Plugins and keys of someone else's backup, before and after it is restored; nothing without them."""
    for name in ("plugins/evil/__init__.py", "profiles/work/plugins/other/plugin.yaml"):
        path = terminal.home / name
        path.parent.mkdir(parents=True)
        path.write_text("x = 1\n")
    file = str(tmp_path / "a.zip")
    terminal.ok("backup", file)
    brought = ".env, plugins/evil, profiles/work/plugins/other"
    assert f"Warning: it brings {brought}: plugins run as code" in terminal.ok("restore", file, "--dry-run")
    again = Terminal(tmp_path / "again")
    assert again.json("restore", file)["active"] == brought.split(", ")
    plain = Terminal(tmp_path / "plain")
    plain.ok("remember", "Likes pears.")
    plain.ok("backup", str(tmp_path / "b.zip"))
    assert "Warning" not in plain.ok("restore", str(tmp_path / "b.zip"), "--dry-run")


def test_nothing_is_overwritten_without_an_order(terminal: Terminal, tmp_path: Path) -> None:
    """Neither a file that exists nor a home."""
    (tmp_path / "a.zip").write_text("mine")
    result = terminal.run("backup", str(tmp_path / "a.zip"))
    assert result.exit_code == 1
    assert "--overwrite" in result.output
    assert (tmp_path / "a.zip").read_text() == "mine"
    terminal.ok("backup", str(tmp_path / "a.zip"), "--overwrite")
    result = terminal.run("restore", str(tmp_path / "a.zip"))
    assert result.exit_code != 0
    assert "--replace" in result.output


@pytest.mark.slow
def test_a_passphrase_comes_from_a_file(terminal: Terminal, tmp_path: Path) -> None:
    """For backups on a schedule; one that others can read is used, with a warning."""
    (tmp_path / "phrase").write_text("correct horse\n")
    (tmp_path / "phrase").chmod(0o644)
    arguments = [str(tmp_path / "a.zip"), "--passphrase-file", str(tmp_path / "phrase")]
    assert json.loads(terminal.run("backup", *arguments, "--json").stdout)["encrypted"]
    restored = Terminal(tmp_path / "again").ok("restore", *arguments)
    assert "Restored" in restored and "phrase can be used by others (mode 0644): chmod 600" in restored
    (tmp_path / "phrase").chmod(0o600)
    assert "chmod" not in terminal.ok("restore", *arguments, "--dry-run")
    asked = terminal.run("restore", str(tmp_path / "a.zip"), "--dry-run")
    assert asked.exit_code == 1 and asked.output.endswith("add --passphrase-file FILE.\n")


def test_an_empty_home_and_a_missing_file_are_reported(tmp_path: Path) -> None:
    """In one line each."""
    terminal = Terminal(tmp_path / "home")
    assert "nothing to back up" in terminal.run("backup", str(tmp_path / "a.zip")).output
    assert "does not exist" in terminal.run("restore", str(tmp_path / "a.zip")).output
