"""A backup contains the whole home, also while it is in use, and restores to the same contents."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import BackupError
from memoranda.support.home import Home
from memoranda.upkeep.backup.archive import BackupOptions, Progress, verify, write_backup
from memoranda.upkeep.backup.encryption import is_encrypted
from memoranda.upkeep.backup.restore import opened_backup, restore_backup
from tests.timing import wait_until


def _fill(root: Path, turns: int = 3) -> None:
    with memoranda.open(root) as memory:
        memory.remember("Project uses pytest with xdist.")
        memory.remember("Prefers concise answers.", "user")
        with memory.session(source="test") as session:
            for number in range(turns):
                with session.turn(f"What is apple number {number}?") as turn:
                    turn.done(f"Apple {number} is red.")
    (root / ".env").write_text("KEY=value-of-a-key\n")
    (root / "skills" / "bake").mkdir(parents=True)
    (root / "skills" / "bake" / "SKILL.md").write_text("---\nname: bake\ndescription: Bake.\n---\nHeat.\n")


def _export(root: Path) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    with memoranda.open(root) as memory:
        return (
            list(memory.sessions.export_all()),
            [str(entry) for entry in memory.entries("memory")],
            (root / "memories" / "journal.jsonl").read_text().splitlines(),
        )


def _restore(file: Path, root: Path, passphrase: str | None = None, *, replace: bool = False) -> None:
    with opened_backup(file, passphrase) as archive:
        restore_backup(archive, Home(root), replace=replace)


@pytest.mark.slow
@pytest.mark.parametrize("passphrase", [None, pytest.param("correct horse", marks=pytest.mark.slow)])
def test_a_restored_home_has_the_same_contents(tmp_path: Path, passphrase: str | None) -> None:
    """Conversations, entries, journal, settings and profiles; only the index is left out, and search works."""
    root, file = tmp_path / "home", tmp_path / "home.zip"
    _fill(root)
    _fill(root / "profiles" / "work", turns=1)
    write_backup(root, file, BackupOptions(passphrase=passphrase))
    assert file.stat().st_mode & 0o077 == 0
    assert is_encrypted(file) == (passphrase is not None)
    _restore(file, tmp_path / "again", passphrase)
    for profile in ("", "profiles/work"):
        assert _export(tmp_path / "again" / profile) == _export(root / profile)
    assert (tmp_path / "again" / ".env").read_text() == "KEY=value-of-a-key\n"
    assert (tmp_path / "again" / "skills/bake/SKILL.md").exists()
    with memoranda.open(tmp_path / "again") as memory:
        assert memory.search("apple")["results"]
    assert not list(root.glob(".backup-*"))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_passphrases")
def test_a_wrong_passphrase_restores_nothing(tmp_path: Path) -> None:
    """And says so; without a passphrase it is asked for."""
    _fill(tmp_path / "home")
    file = tmp_path / "home.zip"
    write_backup(tmp_path / "home", file, BackupOptions(passphrase="right"))
    with pytest.raises(BackupError, match="passphrase is wrong"):
        _restore(file, tmp_path / "again", "wrong")
    with pytest.raises(BackupError, match="give the passphrase"):
        _restore(file, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_backup_without_secrets_contains_no_keys(tmp_path: Path) -> None:
    """The rest is there."""
    _fill(tmp_path / "home")
    written = write_backup(tmp_path / "home", tmp_path / "a.zip", BackupOptions(without_secrets=True))
    names = {file.name for file in written.files}
    assert ".env" not in names
    assert {"state.db", "memories/MEMORY.md", "memories/journal.jsonl"} <= names


@pytest.mark.slow
def test_a_backup_is_consistent_while_the_home_is_written(tmp_path: Path) -> None:
    """Every turn that was recorded before it started is in it, whole, and appends continue during it."""
    root = tmp_path / "home"
    _fill(root)
    stop = threading.Event()
    recorded: list[int] = []

    def record() -> None:
        with memoranda.open(root) as memory, memory.session(source="busy") as session:
            while not stop.is_set():
                with session.turn(f"Turn {len(recorded)}") as turn:
                    turn.done("Done.")
                recorded.append(len(recorded))

    writer = threading.Thread(target=record)
    writer.start()
    try:
        for number in range(3):
            wanted = len(recorded) + 3
            wait_until(lambda: len(recorded) >= wanted)  # noqa: B023
            before = len(recorded)
            write_backup(root, tmp_path / f"{number}.zip", BackupOptions())
            _restore(tmp_path / f"{number}.zip", tmp_path / f"again{number}")
            with memoranda.open(tmp_path / f"again{number}") as memory:
                assert memory.sessions.engine.check() == []
                (busy,) = [each for each in memory.sessions.export_all() if each["source"] == "busy"]
                assert len(busy["messages"]) >= 2 * before
    finally:
        stop.set()
        writer.join()


def test_restores_right_after_each_other_keep_every_home(tmp_path: Path) -> None:
    """A restore that was killed is repeated at once, and each moves the present home to a name of its own."""
    root, file = tmp_path / "home", tmp_path / "home.zip"
    _fill(root)
    write_backup(root, file, BackupOptions())
    for _ in range(3):
        _restore(file, root, replace=True)
    assert len(list(tmp_path.glob("home.before-restore-*"))) == 3


def test_restoring_over_a_home_needs_consent_and_keeps_it(tmp_path: Path) -> None:
    """Without it nothing changes; with it the present home is renamed."""
    root, file = tmp_path / "home", tmp_path / "home.zip"
    _fill(root)
    write_backup(root, file, BackupOptions())
    with memoranda.open(root) as memory:
        memory.remember("Added later.")
    with pytest.raises(BackupError, match="--replace"):
        _restore(file, root)
    _restore(file, root, replace=True)
    assert "Added later." not in (root / "memories/MEMORY.md").read_text()
    (kept,) = tmp_path.glob("home.before-restore-*")
    assert "Added later." in (kept / "memories/MEMORY.md").read_text()


@pytest.mark.slow
def test_a_home_in_use_is_not_replaced(tmp_path: Path) -> None:
    """Its process would write to a home that is gone."""
    root, file = tmp_path / "home", tmp_path / "home.zip"
    _fill(root)
    write_backup(root, file, BackupOptions())
    program = (
        "import sys, memoranda; m = memoranda.open(sys.argv[1]); m.sessions.list_sessions_rich(); "
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        with pytest.raises(BackupError, match="End the programs"):
            _restore(file, root, replace=True)
        process.stdin.close()
    assert root.exists()


def test_a_volume_that_cannot_be_renamed_is_restored_into(tmp_path: Path) -> None:
    """An empty directory that exists gets the contents, also after a restore that was killed in it."""
    _fill(tmp_path / "home")
    write_backup(tmp_path / "home", tmp_path / "home.zip", BackupOptions())
    volume = tmp_path / "volume"
    (volume / ".restoring-old").mkdir(parents=True)
    before = volume.stat().st_ino
    _restore(tmp_path / "home.zip", volume)
    assert volume.stat().st_ino == before
    assert _export(volume) == _export(tmp_path / "home")


@pytest.mark.slow
def test_a_damaged_database_is_not_backed_up_as_good(tmp_path: Path) -> None:
    """The backup fails, says how to repair it, and leaves no file."""
    root = tmp_path / "home"
    _fill(root, turns=200)
    with open(root / "state.db", "r+b") as stream:
        stream.seek(5 * 4096)
        stream.write(os.urandom(8 * 4096))
    with pytest.raises(BackupError, match=r"doctor --fix|cannot be copied"):
        write_backup(root, tmp_path / "home.zip", BackupOptions())
    assert not list(tmp_path.glob("*.zip*"))
    assert not list(tmp_path.glob(".*.tmp"))


def test_an_interrupted_backup_leaves_nothing(tmp_path: Path) -> None:
    """Neither a file nor copies of databases in the home."""
    _fill(tmp_path / "home")

    def interrupt(progress: Progress) -> None:
        if progress.step == "verify":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_backup(tmp_path / "home", tmp_path / "a.zip", BackupOptions(progress=Progress(interrupt)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    assert not list((tmp_path / "home").glob(".backup-*"))


_KILLED = """
import os, signal, sys
from pathlib import Path
from memoranda.upkeep.backup.archive import BackupOptions, Progress, write_backup
from memoranda.upkeep.backup.encryption import is_encrypted
from memoranda.upkeep.backup.restore import restore_backup
from memoranda.support.home import Home
kind, root, file, step = sys.argv[1:]
def kill(progress):
    if progress.step == step and progress.done:
        os.kill(os.getpid(), signal.SIGKILL)
if kind == "backup":
    write_backup(Path(root), Path(file), BackupOptions(progress=Progress(kill)))
else:
    restore_backup(Path(file), Home(Path(root)), replace=True, progress=Progress(kill))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step"), [("backup", "copy"), ("backup", "verify"), ("restore", "restore")])
def test_after_a_kill_the_home_is_as_before_and_the_next_run_succeeds(tmp_path: Path, kind: str, step: str) -> None:
    """A killed backup is not taken for one, and a killed restore has changed nothing."""
    root, file = tmp_path / "home", tmp_path / "home.zip"
    _fill(root)
    before = _export(root)
    if kind == "restore":
        write_backup(root, file, BackupOptions())
    done = subprocess.run([sys.executable, "-c", _KILLED, kind, str(root), str(file), step], check=False)
    assert done.returncode == -signal.SIGKILL
    assert _export(root) == before
    assert file.exists() == (kind == "restore")
    write_backup(root, file, BackupOptions())
    _restore(file, tmp_path / "again")
    assert _export(tmp_path / "again") == before
    assert not list(root.glob(".backup-*"))


def test_an_empty_home_has_nothing_to_back_up(tmp_path: Path) -> None:
    """And no file is written."""
    with pytest.raises(BackupError, match="nothing to back up"):
        write_backup(tmp_path / "home", tmp_path / "a.zip", BackupOptions())
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_forgetting_names_the_backups_that_may_have_the_text(tmp_path: Path) -> None:
    """Backups in the home are changed and can still be restored; those elsewhere are listed."""
    from memoranda.support.text_matcher import TextMatcher
    from memoranda.upkeep.backup.archive import WrittenBackup, back_up, note_backup
    from memoranda.upkeep.forgetting.eraser import Eraser

    root, file = tmp_path / "home", tmp_path / "home.zip"
    _fill(root)
    inner = back_up(root)
    assert inner is not None
    written = write_backup(root, file, BackupOptions())
    note_backup(root, WrittenBackup(str(file), written.created_at))
    report = Eraser(Home(root)).forget_text(TextMatcher(["pytest with xdist"]))
    assert any(str(file) in note for note in report.notes)
    verify(inner)
    _restore(inner, tmp_path / "again")
    assert "xdist" not in (tmp_path / "again/memories/MEMORY.md").read_text()
    with closing(sqlite3.connect(tmp_path / "again/state.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert json.loads(json.dumps(report.as_data()))
