"""A migration that is killed at any time can be repeated, and ends as if nothing had happened."""

import os
import random
import sys
from functools import partial
from pathlib import Path

import pytest

from memoranda.importers.openclaw.installation import inspect_installation
from memoranda.importers.openclaw.migration.runner import (
    migration_lock,
    new_directory,
    plan_migration,
    run_migration,
    write_report,
)
from memoranda.importers.openclaw.migration.steps import MigrationOptions
from memoranda.upkeep.backup.archive import back_up
from tests.forked import Forked, Say, forking
from tests.importers.openclaw.material import contents, make_openclaw, migration_target


def _move_until(root: Path, source: Path, last: int, say: Say) -> None:
    """Move, and die when the home is about to be touched so often; say how often it was."""
    touched = 0

    def touch(event: str, values: tuple[object, ...]) -> None:
        nonlocal touched
        touches = ("open", "os.", "shutil.", "sqlite3.connect")
        if event.startswith(touches) and values and str(values[0]).startswith(str(root)):
            touched += 1
            if touched == last:
                os._exit(9)

    home, options = migration_target(root), MigrationOptions(migrate_secrets=True)
    sys.addaudithook(touch)
    back_up(home.root)
    with migration_lock(home.root):
        planned = plan_migration(inspect_installation(source), home, options)
        directory = new_directory(home.root)
        write_report(directory, planned, finished=False)
        write_report(directory, run_migration(planned, home, directory), finished=True)
    say(str(touched).encode())


def _kept(root: Path) -> dict[str, bytes]:
    """What a home holds for its user: no journals, reports or copies, and archives by what they hold."""
    found = contents(root)
    plain = ("memories/MEMORY.md", "memories/USER.md", "SOUL.md", ".env")
    kept = {name: content for name, content in found.items() if name in plain or name.startswith("skills/tide-table")}
    for name, content in found.items():
        if "/archive/" in name or "/overflow/" in name:
            kept[name.split("/", 3)[3]] = content
    return kept


def _move(root: Path, source: Path, last: int = 0) -> int:
    """Move in a process that dies when it is about to touch its home that often; how often it did, 0 if it died.

    Counted in touches and not in time, it dies at the same places on a slow machine and on a fast one.
    """
    process = Forked(partial(_move_until, root, source, last))
    said = process.heard()
    assert process.wait() == (0 if said else 9)
    return int(said or 0)


@pytest.mark.slow
@forking
def test_after_many_kills_the_result_is_the_same(tmp_path: Path) -> None:
    """Kills between and within steps: nothing is lost, nothing is there twice."""
    source, dice = make_openclaw(tmp_path / ".openclaw"), random.Random(6)
    (source / "workspace" / "memory" / "2026-11-12.md").write_text(f"- {'Too long for any limit. ' * 200}\n")
    before = contents(source)
    touches = _move(tmp_path / "whole", source)
    kills = 0
    for last in sorted(dice.sample(range(1, touches), 15)):
        if _move(tmp_path / "killed", source, last):
            break
        kills += 1
    assert kills > 2
    assert _move(tmp_path / "killed", source)
    assert _kept(tmp_path / "killed") == _kept(tmp_path / "whole")
    assert not list((tmp_path / "killed").rglob("*.tmp"))
    assert contents(source) == before
    home = migration_target(tmp_path / "killed", secrets={"OPENAI_API_KEY": _key(before)})
    assert not plan_migration(inspect_installation(source), home, MigrationOptions(migrate_secrets=True)).has_work


def _key(files: dict[str, bytes]) -> str:
    return files[".env"].decode().split("\n")[0].partition("=")[2]
