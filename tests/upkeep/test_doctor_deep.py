"""The doctor notices every damage to a record; a deep check also compares index, history and backups with it."""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.health import DAMAGED_MESSAGES, salvage
from memoranda.memory.record.message_rows import DAMAGED
from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.storage.sqlite.database import PAGE_SIZE
from memoranda.support.health_issues import HealthIssue
from memoranda.support.home import Home
from memoranda.support.origin import PERSON
from memoranda.upkeep.doctor import examine
from tests.cli.terminal import Terminal
from tests.conftest import tree
from tests.examples import is_full_run
from tests.memory.record.damaged_homes import HARMLESS_DAMAGES, HEADER_DAMAGES, LOST_FILES, fill_home, read_messages
from tests.timing import GIVE_UP
from tests.torture.damaged_copies import (
    ALL_DAMAGES,
    choose_kinds,
    damage_copies,
    examine_copy,
    examine_parts,
    format_table,
)
from tests.torture.damaged_parts import PART_DAMAGES, Parts, fill_parts, read_parts

pytestmark = pytest.mark.slow


def _errors(path: Path, *, deep: bool = True) -> list[HealthIssue]:
    progress = (lambda name, done, total: None) if deep else None
    return [issue for issue in examine(Home.at(path.parent), progress) if issue.severity != "note"]


def _flip(path: Path, text: bytes) -> None:
    """Change one bit of the first place where the file contains a text."""
    content = bytearray(path.read_bytes())
    content[content.index(text)] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.torture)])
@pytest.mark.parametrize("kind", ALL_DAMAGES)
def test_no_damage_alters_a_message_unnoticed(tmp_path: Path, kind: str, seed: int) -> None:
    """Every message is intact, marked, or known to be lost; and rows that exist are saved."""
    path = fill_home(tmp_path / "home", 4, 30)
    said = read_messages(path)
    ALL_DAMAGES[kind](path, random.Random(seed))
    counts = examine_copy(path, said)
    assert (counts["altered"], counts["undetected"]) == (0, 0), counts
    assert counts["intact"] + counts["marked"] + counts["lost"] == len(said)
    if kind in HEADER_DAMAGES or kind in HARMLESS_DAMAGES:
        assert counts["intact"] == len(said)
    if kind in LOST_FILES or kind in HEADER_DAMAGES:
        assert counts["refused"] and counts["detected"]


def test_damaged_copies_are_counted(tmp_path: Path) -> None:
    """A suite can ask for any number of copies."""
    totals = damage_copies(3, tmp_path, sessions=2)
    assert sum(counts["copies"] for counts in totals.values()) == 3
    assert sum(counts["altered"] + counts["undetected"] for counts in totals.values()) == 0
    assert "64 bytes flipped" in format_table(totals)
    assert set(choose_kinds(100, 1)) == {*ALL_DAMAGES, *PART_DAMAGES}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Parts]:
    """A home with deliveries and changes, which tests copy, and what reading it says."""
    directory = tmp_path_factory.mktemp("parts")
    fill_parts(directory / "original")
    shutil.copytree(directory / "original", directory / "read")
    return directory / "original", read_parts(directory / "read")


@pytest.mark.parametrize("kind", PART_DAMAGES)
def test_no_damage_alters_or_loses_a_delivery_or_a_change_unnoticed(
    tmp_path: Path, parts: tuple[Path, Parts], kind: str
) -> None:
    """What a provider receives and what the journals say is as it was written, or the doctor reports it."""
    original, said = parts
    for seed in range(3 if is_full_run() else 1):
        copy = tmp_path / f"copy{seed}"
        shutil.copytree(original, copy)
        PART_DAMAGES[kind](copy, random.Random(seed))
        counts = examine_parts(copy, said)
        assert (counts["altered"], counts["undetected"]) == (0, 0), counts
        if kind in ("queue: emptied", "queue: deleted"):
            assert counts["intact"] == len(said), "the record has everything that waited"
        elif "one bit" not in kind:
            assert counts["detected"], counts


def test_a_flipped_bit_in_a_text_is_found_and_marked(tmp_path: Path) -> None:
    """After --fix the message has the text that is there, and says that it is damaged."""
    path = fill_home(tmp_path / "home", 2, 4)
    _flip(path, b"zebra 1 2 ")
    (issue,) = _errors(path, deep=False)
    assert "has 1 messages in 1 sessions that changed on the disk: 7 of s1" in issue.problem
    assert issue.repair is not None
    assert "marked 1 messages as damaged" in str(issue.repair())
    assert _errors(path) == []
    with SessionDB(path) as db:
        assert [message["id"] for message in db.get_messages("s1") if message.get(DAMAGED)] == [7]


def test_the_lost_end_of_a_message_is_not_padded(tmp_path: Path) -> None:
    """A message whose last pages are lost is saved as far as it goes, and marked."""
    path = fill_home(tmp_path / "home", 1, 2, indexed=False)
    said = "a long story " * 4000
    with SessionDB(path) as db:
        number = db.append_message("s0", "user", said)
    content = path.read_bytes()
    # Its pages come last.
    for size in (len(content) - PAGE_SIZE, len(content) - 20_000):
        path.write_bytes(content[:size])
        (path.parent / "kept").unlink(missing_ok=True)
        saved = salvage(path, path.parent / "kept")
        assert (saved["messages"], saved[DAMAGED_MESSAGES]) == (3, 1)
        with SessionDB(path) as db:
            message = next(each for each in db.get_messages("s0") if each["id"] == number)
            assert message[DAMAGED]
            assert message["timestamp"] > 0
            assert said.startswith(message["content"])
            assert len(message["content"]) > len(said) // 3


def test_a_message_that_is_no_longer_utf8_is_saved_and_marked(tmp_path: Path) -> None:
    """Other text of a row may be damaged; only what identifies it must be right."""
    path = fill_home(tmp_path / "home", 2, 4)
    content = bytearray(path.read_bytes())
    place = content.index(b"zebra 1 2 ")
    content[place : place + 3] = b"\xff\xfe\xfd"
    path.write_bytes(content)
    assert salvage(path, path.parent / "kept")["messages"] == 8
    with SessionDB(path) as db:
        assert [message["id"] for message in db.get_messages("s1") if message.get(DAMAGED)] == [7]


def test_rows_that_disappeared_are_noticed(tmp_path: Path) -> None:
    """The marker counted them, and no change says that they were deleted."""
    path = fill_home(tmp_path / "home", 2, 4)
    with closing(sqlite3.connect(path)) as connection, connection:
        (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'note_deleted_message'").fetchone()
        connection.execute("DROP TRIGGER note_deleted_message")
        connection.execute("DELETE FROM messages WHERE id IN (2, 3)")
        connection.execute(trigger)
    problems = [issue.problem for issue in _errors(path, deep=False)]
    assert any("has lost 2 messages that it had when it was closed" in problem for problem in problems)


def test_a_damaged_index_of_a_table_is_found_by_a_deep_check(tmp_path: Path) -> None:
    """A quick check does not compare the indexes of SQLite with the rows."""
    path = fill_home(tmp_path / "home", 2, 4)
    with closing(sqlite3.connect(path)) as connection, connection:
        index = "SELECT rootpage FROM sqlite_master WHERE name = 'idx_messages_session'"
        (root,) = connection.execute(index).fetchone()
    content = bytearray(path.read_bytes())
    start = (root - 1) * PAGE_SIZE
    place = content.index(b"s1", start, start + PAGE_SIZE)
    content[place : place + 2] = b"s7"
    path.write_bytes(content)
    assert not any("is damaged" in issue.problem for issue in _errors(path, deep=False))
    (issue,) = _errors(path)
    assert "is damaged: row" in issue.problem
    assert issue.repair is not None
    issue.repair()
    assert _errors(path) == []


def test_a_message_that_the_index_lost_is_found_by_a_deep_check(tmp_path: Path) -> None:
    """Every message is looked up; a plain check looks up a few."""
    path = fill_home(tmp_path / "home", 4, 60)
    (index,) = path.parent.glob("state.index.db.?????*")
    with closing(sqlite3.connect(index)) as connection, connection:
        connection.execute("UPDATE docs SET message = 99999 WHERE message = 70")
    assert _errors(path, deep=False) == []
    (issue,) = _errors(path)
    assert issue.path == index
    assert "does not find 1 of the messages" in issue.problem
    assert issue.repair is not None
    issue.repair()
    assert _errors(path) == []


def test_a_history_that_contradicts_itself_is_found(tmp_path: Path) -> None:
    """The journal is replayed, so a changed letter in it is noticed."""
    path = fill_home(tmp_path / "home", 1, 2)
    with memoranda.open(path.parent) as memory:
        memory.curated.replace("memory", "heron", "The staging database is called stork.")
    assert _errors(path) == []
    journal = path.parent / "memories" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"heron", b"herom", 1))
    changed, history = _errors(path)
    assert "unreadable or changed lines (1)" in changed.problem
    assert "contradicts itself" in history.problem


def test_a_damaged_backup_is_found(tmp_path: Path) -> None:
    """Before it is needed."""
    path = fill_home(tmp_path / "home", 1, 2)
    backup = path.parent / "backups" / "before-import-1.zip"
    backup.parent.mkdir(mode=0o700)
    with zipfile.ZipFile(backup, "w") as archive:
        archive.writestr("state.db", b"zebra" * 1000)
    assert _errors(path) == []
    _flip(backup, b"zebra")
    (issue,) = _errors(path)
    assert issue.path == backup
    assert "state.db cannot be restored" in issue.problem


def test_a_deep_check_changes_nothing_and_is_quiet_when_all_is_well(tmp_path: Path) -> None:
    """So that it can be scheduled: exit code 0 and no output, or 1 and the problems."""
    path = fill_home(tmp_path / "home", 2, 4)
    terminal = Terminal(path.parent)
    before = tree(path.parent)
    result = terminal.run("doctor", "--deep", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert json.loads(terminal.ok("doctor", "--deep", "--json"))["healthy"] is True
    # SQLite creates files for reading, and removes them with the next write.
    assert {name: content for name, content in tree(path.parent).items() if name in before} == before
    _flip(path, b"zebra 1 2 ")
    result = terminal.run("doctor", "--deep", "--quiet", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["findings"][0]["can_mend"] is True


def test_a_deep_check_reports_its_progress(tmp_path: Path) -> None:
    """The record, the messages in the index, the history and the backups."""
    path = fill_home(tmp_path / "home", 2, 4)
    seen: dict[str, tuple[int, int]] = {}
    list(examine(Home.at(path.parent), lambda name, done, total: seen.update({name: (done, total)})))
    assert seen["messages of the record"] == (8, 8)
    assert seen["messages in the index"] == (8, 8)
    assert {"pages of the record", "history of curated memory"} <= seen.keys()


def test_a_deep_check_can_be_interrupted(tmp_path: Path) -> None:
    """Also while SQLite reads the file; nothing is changed."""
    path = fill_home(tmp_path / "home", 2, 4)
    program = (
        "import os, signal, threading\n"
        "from memoranda.storage.sqlite import database\n"
        "database._STEPS_BETWEEN_SIGNALS = 1\n"
        "from memoranda.memory.record.store import open_store\n"
        f"store = open_store({str(path)!r})\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "for _ in range(10_000): store.maintenance.check_integrity(thorough=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=GIVE_UP, check=False)
    assert done.returncode in (-signal.SIGINT, -signal.SIGALRM, 1, 130), done.stderr
    assert _errors(path) == []


def _deep_problems(home: Home) -> list[str]:
    return [issue.problem for issue in examine(home, lambda *_: None)]


def test_every_changed_bit_of_a_skill_is_reported(tmp_path: Path) -> None:
    """Whether it is in the front matter, in a word or in a number; the files that Memoranda wrote have fingerprints."""
    home = Home.at(tmp_path)
    content = with_front_matter("deploy", "How to deploy.", "1. Wait 15 minutes.\n2. Ask the heron.")
    SkillStore(home.skills()).create("deploy", content, PERSON)
    (file,) = home.skills().rglob("SKILL.md")
    whole, chosen = file.read_bytes(), random.Random(5)
    assert _deep_problems(home) == []
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << chosen.randrange(8))]) + whole[place + 1 :])
        assert any("is not as its last recorded change left it" in each for each in _deep_problems(home)), place


def test_a_memory_that_was_changed_outside_gets_the_text_of_the_journal_back(tmp_path: Path) -> None:
    """The doctor reports one digit; the outside change is recorded, so that it can be restored in turn."""
    home, terminal = Home.at(tmp_path), Terminal(tmp_path)
    store = MemoryStore(home.memories())
    store.add("memory", "The port is 8080.")
    store.add("memory", "Uses uv.")
    file = store.path("memory")
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"8080", b"8084"))
    assert any("was changed outside Memoranda" in problem for problem in _deep_problems(home))
    assert "memory undo --outside memory" in terminal.run("doctor").output
    terminal.ok("memory", "undo", "--outside", "memory")
    assert file.read_bytes() == whole and _deep_problems(home) == []
    terminal.ok("memory", "undo", "4")
    assert b"8084" in file.read_bytes()
    file.unlink()
    terminal.ok("memory", "undo", "--outside", "memory")
    assert b"8084" in file.read_bytes()
    assert terminal.run("memory", "undo", "--outside", "memory").exit_code == 1
