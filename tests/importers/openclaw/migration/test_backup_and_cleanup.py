"""A backup of the home before a migration, and the rename of OpenClaw's directory after it."""

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import BackupError
from memoranda.importers.openclaw.installation import (
    find_openclaw_processes,
    is_openclaw_command,
    plan_rename,
    rename_directory,
)
from memoranda.upkeep.backup.archive import back_up
from tests.importers.openclaw.material import contents, make_openclaw

pytestmark = pytest.mark.slow


def _home(root: Path) -> Path:
    for name in (
        "memories/MEMORY.md",
        ".env",
        "skills/a/SKILL.md",
        "migration/openclaw/x.json",
        "profiles/p/MEMORY.md",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def test_the_backup_contains_what_matters_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    """Databases are whole, also while another process has them open; the index and other copies are left out."""
    root = _home(tmp_path / "home")
    with closing(sqlite3.connect(root / "state.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES ('said')")
        database.commit()
        (root / "state.index.db.1").write_bytes(b"SQLite format 3\0 derived")
        made = back_up(root)
    assert made is not None
    assert made.stat().st_mode & 0o077 == 0
    with zipfile.ZipFile(made) as archive:
        listed = {".env", "memories/MEMORY.md", "skills/a/SKILL.md", "state.db"}
        assert set(archive.namelist()) == {*listed, "memoranda-backup.json"}
        archive.extractall(tmp_path / "restored")
    with closing(sqlite3.connect(tmp_path / "restored" / "state.db")) as database:
        assert database.execute("SELECT a FROM t").fetchall() == [("said",)]


def test_an_empty_home_needs_no_copy(tmp_path: Path) -> None:
    """Nothing is made."""
    assert back_up(tmp_path / "home") is None
    assert not (tmp_path / "home").exists()


def test_the_five_newest_copies_are_kept(tmp_path: Path) -> None:
    """And nothing that a killed one left."""
    root = _home(tmp_path / "home")
    (root / "backups").mkdir()
    (root / "backups" / ".before-import-old.zip.tmp").write_text("half")
    made = [back_up(root) for _ in range(7)]
    assert sorted((root / "backups").iterdir()) == made[-5:]


def test_a_database_that_cannot_be_copied_fails_the_backup(tmp_path: Path) -> None:
    """A migration does not begin without a backup, and no incomplete one is left."""
    root = _home(tmp_path / "home")
    (root / "state.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    with pytest.raises(BackupError, match="cannot be copied"):
        back_up(root)
    assert list((root / "backups").iterdir()) == []


def test_the_directory_gets_another_name_each_time(tmp_path: Path) -> None:
    """Nothing in it is changed, and nothing with such a name is overwritten."""
    names = []
    for _ in range(3):
        source = make_openclaw(tmp_path / ".openclaw")
        before = contents(source)
        planned = plan_rename(source)
        assert (planned.files, planned.bytes) == (len(before), sum(map(len, before.values())))
        new_path = rename_directory(planned)
        names.append(new_path.name)
        assert contents(new_path) == before
        assert not source.exists()
    assert names[0] == ".openclaw.pre-migration"
    assert names[1].startswith(".openclaw.pre-migration-2")
    assert names[2] == f"{names[1]}-2"


@pytest.mark.parametrize(
    ("command", "is_it"),
    [
        ("openclaw", True),
        ("/usr/local/bin/openclaw gateway run", True),
        ("openclaw-gateway", True),
        ("node /opt/lib/node_modules/openclaw/openclaw.mjs gateway", True),
        ("/usr/bin/node --max-old-space-size=4096 /opt/openclaw/dist/index.js gateway", True),
        ("node-22 /usr/bin/clawdbot", True),
        ("/usr/bin/python /usr/bin/memoranda import openclaw", False),
        ("vim /home/ann/.openclaw/openclaw.json", False),
        ("node server.js openclaw", False),
        ("node", False),
        ("", False),
    ],
)
def test_openclaw_is_known_by_how_it_runs(command: str, is_it: bool) -> None:
    """The program or a runtime that runs it, and not a command that only names it."""
    assert is_openclaw_command(command) is is_it


def test_looking_for_it_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no `ps`."""
    assert isinstance(find_openclaw_processes(), list)
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_openclaw_processes() == []
