"""A move that is killed at any moment can be made again, and ends as if nothing had happened."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoranda.importers.openclaw.migration import plan_migration
from memoranda.importers.openclaw.places import look_at
from memoranda.importers.openclaw.steps import Wishes
from tests.importers.openclaw.material import contents, household, make_openclaw

_MOVE = """
import sys
from pathlib import Path
from memoranda.importers.openclaw.backup import back_up
from memoranda.importers.openclaw.migration import carry_out, new_directory, one_at_a_time, plan_migration
from memoranda.importers.openclaw.places import look_at
from memoranda.importers.openclaw.report import keep_report
from memoranda.importers.openclaw.steps import Wishes
from tests.importers.openclaw.material import household
home, wishes = household(Path(sys.argv[1])), Wishes(migrate_secrets=True)
print("begun", flush=True)
back_up(home.root)
with one_at_a_time(home.root):
    planned = plan_migration(look_at(Path(sys.argv[2])), home, wishes)
    directory = new_directory(home.root)
    keep_report(directory, planned, finished=False)
    keep_report(directory, carry_out(planned, home, directory), finished=True)
print("done", flush=True)
"""


def _kept(root: Path) -> dict[str, bytes]:
    """What a home holds for its user: no journals, reports or copies, and archives by what they hold."""
    found = contents(root)
    plain = ("memories/MEMORY.md", "memories/USER.md", "SOUL.md", ".env")
    kept = {name: content for name, content in found.items() if name in plain or name.startswith("skills/tide-table")}
    for name, content in found.items():
        if "/archive/" in name or "/overflow/" in name:
            kept[name.split("/", 3)[3]] = content
    return kept


def _move(root: Path, source: Path, patience: float | None) -> bool:
    """Move in a process of its own, which is killed after a while; whether it came to its end."""
    with subprocess.Popen(
        [sys.executable, "-c", _MOVE, str(root), str(source)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        if patience is not None:
            time.sleep(patience)
            process.kill()
        return process.stdout.read() == "done\n"


@pytest.mark.slow
def test_killed_again_and_again_it_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    """kill -9 between and within steps: nothing is lost, nothing is there twice."""
    source, dice = make_openclaw(tmp_path / ".openclaw"), random.Random(6)
    (source / "workspace" / "memory" / "2026-11-12.md").write_text(f"- {'Too long for any limit. ' * 200}\n")
    before = contents(source)
    assert _move(tmp_path / "whole", source, None)
    kills = 0
    for _ in range(25):
        if _move(tmp_path / "killed", source, dice.uniform(0, 0.12)):
            break
        kills += 1
    assert _move(tmp_path / "killed", source, None)
    assert kills > 2
    assert _kept(tmp_path / "killed") == _kept(tmp_path / "whole")
    assert not list((tmp_path / "killed").rglob("*.tmp"))
    assert contents(source) == before
    home = household(tmp_path / "killed", secrets={"OPENAI_API_KEY": _key(before)})
    assert not plan_migration(look_at(source), home, Wishes(migrate_secrets=True)).has_work


def _key(files: dict[str, bytes]) -> str:
    return files[".env"].decode().split("\n")[0].partition("=")[2]
