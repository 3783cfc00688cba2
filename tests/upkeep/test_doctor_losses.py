"""The doctor notices what was lost or changed in journals and in the queue, and nothing that happens in normal use."""

import os
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copytree

import pytest

import memoranda
from memoranda.external.outbox.outbox import Outbox
from memoranda.memory.curated import change_history
from memoranda.memory.skills import change_history as skill_history
from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.support.health_issues import HealthIssue
from memoranda.support.home import Home
from memoranda.support.origin import PERSON
from memoranda.upkeep.backup.archive import BackupOptions, write_backup
from memoranda.upkeep.backup.restore import restore_backup
from memoranda.upkeep.doctor import examine
from memoranda.upkeep.migration.migrate import migrate_to_files, migrate_to_server
from tests.upkeep.sync.machines import Machine

pytestmark = pytest.mark.slow

JOURNALS = ("memories/journal.jsonl", "skills/.journal.jsonl", "memories/users/u-ana/journal.jsonl")


def _fill(root: Path) -> Home:
    """A home with several changes of everything that has a journal, and with waiting deliveries."""
    for user in (None, "ana"):
        with memoranda.open(root, user=user) as memory:
            for number in range(3):
                memory.remember(f"The heron nests in tree {number}.")
            memory.remember("Prefers tea.", "user")
    home = Home.at(root)
    skills = SkillStore(home.skills())
    for name in ("deploy", "review"):
        skills.create(name, with_front_matter(name, f"How to {name}.", "1. Ask the heron."), PERSON)
    with closing(Outbox(root)) as outbox:
        for number in range(4):
            outbox.put("diary", "turn", f"s{number}", {"user_content": f"A heron {number}"}, {"a": 1}, key=f"k{number}")
        outbox.release()
    return home


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without an issue, of which each test gets a copy."""
    home = _fill(tmp_path_factory.mktemp("filled") / "home")
    assert _issues(home) == []
    return home.root


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Home:
    return Home.at(copytree(filled, tmp_path / "home"))


def _issues(home: Home) -> list[HealthIssue]:
    return [issue for issue in examine(home, lambda *_: None) if issue.severity != "note"]


def _flip_letter(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"heron", b"hero.", 1))


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: os.truncate(path, 0),
    "truncated": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1])),
    "one letter": _flip_letter,
    "a flipped bit": lambda path: _flip_bit(path, random.Random(5)),
}


def _flip_bit(path: Path, chosen: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
    path.write_bytes(content)


@pytest.mark.parametrize("name", [JOURNALS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in JOURNALS[1:])])
@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=[pytest.mark.slow] if place else []) for place, how in enumerate(_DAMAGES)]
)
def test_a_damaged_journal_is_reported_and_accepted_by_fix(home: Home, name: str, how: str) -> None:
    """With and without further changes; the repair ends the alarm, except for lines that stay damaged."""
    path = home.root / name
    _DAMAGES[how](path)
    reported = [issue for issue in _issues(home) if issue.path == path]
    assert reported
    with memoranda.open(home.root) as memory:
        memory.remember("Something else.")
    reported = [issue for issue in _issues(home) if issue.path == path and issue.repair is not None]
    assert [issue.severity for issue in reported] == ["error"]
    for issue in reported:
        assert issue.repair is not None
        issue.repair()
    left = [issue.problem for issue in _issues(home) if issue.path == path and issue.severity == "error"]
    assert left == []


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_lost_outbox_is_no_loss(home: Home, how: str) -> None:
    """The record has what waited in it."""
    _DAMAGES[how](home.root / "home.db")
    assert _issues(home) == []
    with closing(Outbox(home.root)) as outbox:
        assert outbox.backlog("diary").waiting == 4


def test_a_changed_letter_in_a_notification_is_reported(home: Home) -> None:
    """Although the file is a valid database with valid JSON."""
    _flip_letter(home.root / "state.db")
    (issue,) = _issues(home)
    assert "1 notifications for external memories that cannot be read or have changed on the disk" in issue.problem


def test_entries_edited_by_hand_are_no_damage(home: Home) -> None:
    """The files of entries are made for that."""
    (home.memories() / "MEMORY.md").write_text("Written by hand.")
    assert _issues(home) == []
    with memoranda.open(home.root) as memory:
        memory.entries("memory")
        memory.remember("Another one.")
    assert _issues(home) == []


def test_undo_purge_and_delete_are_no_damage(home: Home) -> None:
    """The history grows, or starts again."""
    skills = SkillStore(home.skills())
    with memoranda.open(home.root) as memory:
        change_history.undo(memory.curated, None, PERSON)
        skills.delete("deploy", PERSON)
        skill_history.undo(skills, None, PERSON)
        assert _issues(home) == []
        change_history.purge(memory.curated, 2)
        assert _issues(home) == []
        change_history.purge(memory.curated)
        skill_history.purge(skills)
        assert _issues(home) == []
        memory.remember("After the purge.")
        skills.delete("deploy", PERSON)
    assert _issues(home) == []


@pytest.mark.parametrize("user", [None, "ana"])
def test_forgetting_is_no_damage(home: Home, user: str | None) -> None:
    """In journals, skills and waiting deliveries, all of which are rewritten."""
    with memoranda.open(home.root, user=user) as memory:
        report = memory.forget("heron")
    assert _issues(home) == []
    if user is None:
        assert report.complete
        assert b"heron" not in (home.skills() / ".journal.jsonl").read_bytes()


def test_forgetting_a_user_is_no_damage(home: Home) -> None:
    """Nothing of the user remains that could be missed."""
    with memoranda.open(home.root) as memory:
        memory.forget(user="ana")
    assert _issues(home) == []


def test_a_restored_backup_has_no_damage(home: Home, tmp_path: Path) -> None:
    """Also if the home has changed since; the copy notices losses as the original does."""
    write_backup(home.root, tmp_path / "backup.zip", BackupOptions())
    with memoranda.open(home.root) as memory:
        memory.remember("After the backup.")
    restore_backup(tmp_path / "backup.zip", home, replace=True)
    assert _issues(home) == []
    (home.memories() / "journal.jsonl").unlink()
    assert [issue.path.name for issue in _issues(home)] == ["journal.jsonl"]


def test_a_home_without_markers_has_no_damage(home: Home) -> None:
    """A person deleted them, and the checksums of lines that were edited; the next changes have both."""
    for path in home.root.rglob("*.marker.json"):
        path.unlink()
    for name in JOURNALS:
        lines = (home.root / name).read_bytes().splitlines()
        (home.root / name).write_bytes(b"".join(line[: line.rindex(b',"checksum"')] + b"}\n" for line in lines))
    assert _issues(home) == []
    with memoranda.open(home.root) as memory:
        memory.remember("A new one.")
        assert len(change_history.log(memory.curated)) == 5
    with closing(Outbox(home.root)) as outbox:
        job = outbox.claim("diary")
        assert job is not None and job.args == {"user_content": "A heron 0"}
        outbox.release()
    assert _issues(home) == []


def test_a_home_that_moved_to_a_server_and_back_has_no_damage(home: Home, tmp_path: Path, postgres_url: str) -> None:
    """Checksums travel with the lines and the deliveries."""
    migrate_to_server(home, postgres_url, lambda *_: None)
    back = Home.at(tmp_path / "back")
    migrate_to_files(postgres_url, back, lambda *_: None)
    assert _issues(home) == []
    assert _issues(back) == []
    with closing(Outbox(back.root)) as outbox:
        assert outbox.claim("diary") is not None
    (back.memories() / "journal.jsonl").unlink()
    assert [issue.path.name for issue in _issues(back)] == ["journal.jsonl"]


def test_synchronised_homes_have_no_damage(tmp_path: Path) -> None:
    """What is received goes through the same journals."""
    homes = [_fill(tmp_path / name) for name in ("a", "b")]
    (tmp_path / "shared").mkdir()
    for _ in range(2):
        for home in homes:
            with closing(Machine(home.root, tmp_path / "shared")) as machine:
                machine.sync()
    for home in homes:
        assert _issues(home) == []
