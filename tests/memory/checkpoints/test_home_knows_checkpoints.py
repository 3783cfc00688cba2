"""Forget, backup, restore, doctor and migration know the checkpoints of a home, in a file and on a server."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import CorruptStoreError
from memoranda.memory.checkpoints.passages import CheckpointPassages
from memoranda.memory.checkpoints.schema import TABLES, Serialized, count_changed
from memoranda.memory.checkpoints.store import (
    CheckpointKey,
    CheckpointStore,
    StoredCheckpoint,
    Write,
    open_checkpoints,
)
from memoranda.memory.checkpoints.threads import copy_thread
from memoranda.storage.health import check_store
from memoranda.support.home import Home
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.backup.archive import BackupOptions, write_backup
from memoranda.upkeep.backup.restore import restore_backup
from memoranda.upkeep.doctor import examine
from memoranda.upkeep.home_tables import checked_files
from memoranda.upkeep.migration.migrate import migrate_to_files, migrate_to_server

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def memory(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[memoranda.Memory]:
    """A home with its checkpoints in a file, and one with its checkpoints on a server."""
    if request.param == "server":
        monkeypatch.setenv("MEMORANDA_STORE", request.getfixturevalue("postgres_url"))
    with memoranda.open(home) as memory:
        yield memory


def _store(memory: memoranda.Memory, user: str | None = None) -> CheckpointStore:
    return memory.services.checkpoints_for(user)


def _put(store: CheckpointStore, text: str, thread: str = "t", number: int = 1) -> CheckpointKey:
    key = CheckpointKey(thread, "", f"{number:04}")
    values = {"messages": Serialized("bytes", f"[{text}]".encode()), "other": Serialized("bytes", b"plain")}
    store.put(StoredCheckpoint(key, Serialized("bytes", b"{}"), Serialized("bytes", f"m {text}".encode()), values))
    store.put_writes(key, [Write("task", 0, "messages", Serialized("bytes", text.encode()))])
    return key


def _text(store: CheckpointStore, thread: str = "t") -> str:
    found = store.get(thread, "")
    assert found is not None
    data = (found.metadata, *found.values.values(), *(write.value for write in found.writes))
    return b" ".join(each.data for each in data).decode()


def test_a_forgotten_text_is_overwritten_in_all_parts_of_a_checkpoint(memory: memoranda.Memory) -> None:
    """Values keep their length, other users keep theirs, and a thread that is named by the text is deleted.

    A value is named by its content: a program that stores the text again does not get the overwritten one.
    """
    _put(_store(memory), "Ana lives in LISBON now")
    _put(_store(memory), "text", thread="lisbon trip")
    _put(_store(memory, "bob"), "Bob visits Lisbon")
    report = memory.forget("lisbon")
    places = [(place.area, place.where, place.count, place.action) for place in report.found]
    assert places == [("checkpoints", "thread lisbon trip", 1, "remove"), ("checkpoints", "thread t", 3, "redact")]
    assert report.left == () and report.problems == ()
    assert _text(_store(memory)) == "m Ana lives in ****** now [Ana lives in ****** now] plain Ana lives in ****** now"
    assert "Lisbon" in _text(_store(memory, "bob"))
    assert {each.key.thread_id for each in _store(memory).iter_checkpoints()} == {"t"}
    _put(_store(memory), "Ana lives in LISBON now", number=2)
    assert "[Ana lives in LISBON now]" in _text(_store(memory))


def test_a_forgotten_user_has_no_checkpoints(memory: memoranda.Memory) -> None:
    """The owner's and other users' stay."""
    for user in (None, "ana", "bob"):
        _put(_store(memory, user), f"text of {user}")
    report = memory.forget(user="ana")
    assert ("checkpoints", "checkpoints", 1) in [(place.area, place.where, place.count) for place in report.found]
    assert report.left == ()
    assert list(_store(memory, "ana").iter_checkpoints()) == []
    assert "text of bob" in _text(_store(memory, "bob")) and "text of None" in _text(_store(memory))


def test_no_byte_of_a_forgotten_text_is_left_in_the_file(home: Path) -> None:
    """Free pages and the log included."""
    with memoranda.open(home) as memory:
        for number in range(50):
            _put(_store(memory), f"Lisbon {number} " + "x" * 3_000, number=number)
        assert memory.forget("lisbon").left == ()
    assert b"isbon" not in b"".join(path.read_bytes() for path in home.glob("checkpoints.db*"))


def test_a_backup_contains_the_checkpoints(home: Path, tmp_path: Path) -> None:
    """A restored home has the thread as it was."""
    with memoranda.open(home) as memory:
        memory.remember("A fact.")
        _put(_store(memory), "Lisbon")
    archive = tmp_path / "home.zip"
    write_backup(home, archive, BackupOptions())
    restore_backup(archive, Home.at(tmp_path / "restored"))
    with memoranda.open(tmp_path / "restored") as memory:
        assert "[Lisbon]" in _text(_store(memory))


def _issues(home: Path) -> list[str]:
    return [str(issue.problem) for issue in examine(Home.at(home)) if issue.path.name == "checkpoints.db"]


def test_the_doctor_finds_missing_values_and_reading_them_raises(home: Path) -> None:
    """An undamaged file has no issue."""
    with memoranda.open(home) as memory:
        _put(_store(memory), "text")
    assert _issues(home) == []
    with closing(sqlite3.connect(home / "checkpoints.db")) as connection, connection:
        connection.execute("DELETE FROM checkpoint_values WHERE value = ?", (b"plain",))
    assert _issues(home) == ["has 1 checkpoints of which a value is missing"]
    with memoranda.open(home) as memory, pytest.raises(CorruptStoreError, match="value of checkpoint 0001"):
        _store(memory).get("t", "")


@pytest.mark.parametrize(
    ("statement", "reported"),
    [
        ("UPDATE checkpoint_values SET kind = CAST(kind AS BLOB)", "has 2 rows of checkpoints that have changed"),
        ("UPDATE checkpoint_values SET value = CAST(value AS TEXT)", "has 2 rows of checkpoints that have changed"),
        ("ALTER TABLE checkpoint_writes RENAME COLUMN id TO hd", "the table checkpoint_writes has no column id"),
    ],
)
def test_the_doctor_reports_other_types_and_names_of_columns(home: Path, statement: str, reported: str) -> None:
    """One changed bit makes bytes of a text, text of bytes, or another name."""
    with memoranda.open(home) as memory:
        _put(_store(memory), "text")
    with closing(sqlite3.connect(home / "checkpoints.db")) as connection, connection:
        connection.execute(statement)
    (issue,) = _issues(home)
    assert reported in issue


@pytest.mark.parametrize("column", ["id", "thread_id", "state"])
def test_a_renamed_column_costs_no_checkpoint(home: Path, column: str) -> None:
    """The doctor saves the rows with the values that the column has."""
    with memoranda.open(home) as memory:
        _put(_store(memory), "text")
    rows = _all_rows(home / "checkpoints.db")
    with closing(sqlite3.connect(home / "checkpoints.db")) as connection, connection:
        connection.execute(f"ALTER TABLE checkpoints RENAME COLUMN {column} TO other")
    for issue in list(examine(Home.at(home))):
        if issue.path.name == "checkpoints.db" and issue.repair is not None:
            issue.repair()
    assert _all_rows(home / "checkpoints.db") == rows and _issues(home) == []


def test_a_migration_takes_checkpoints_along_and_back(home: Path, tmp_path: Path, postgres_url: str) -> None:
    """Those of all users, and new ones can be written afterwards."""
    with memoranda.open(home) as memory:
        memory.remember("A fact.")
        memory.sessions.create_session("s", "cli")
        _put(_store(memory), "of the owner")
        _put(_store(memory, "ana"), "of Ana")
    counts = migrate_to_server(Home.at(home), postgres_url, lambda *_: None).tables
    assert counts["checkpoints"] == 2 and counts["checkpoint_values"] == 4 and counts["checkpoint_writes"] == 2
    with closing(open_checkpoints(tmp_path, postgres_url)) as database:
        assert "of Ana" in _text(CheckpointStore(database, "ana"))
        _put(CheckpointStore(database, "ana"), "later", number=2)
    migrate_to_files(postgres_url, Home.at(tmp_path / "back"), lambda *_: None)
    with memoranda.open(tmp_path / "back") as memory:
        assert "later" in _text(_store(memory, "ana")) and "of the owner" in _text(_store(memory))


def test_every_changed_bit_of_a_checkpoint_is_reported(home: Path) -> None:
    """Of every bit that was tried, the doctor reports the change, or everything is still read as it was written."""
    home.mkdir(mode=0o700)
    with closing(open_checkpoints(home)) as database:
        store = CheckpointStore(database, None)
        for number in range(6):
            _put(store, f"the heron stands in the river {number}", number=number)
    path, chosen = home / "checkpoints.db", random.Random(3)
    whole, rows = path.read_bytes(), _all_rows(path)
    places = [at for at in range(len(whole)) if whole.startswith((b"heron", b"id INTEGER"), at)]
    places += [at for at in range(len(whole)) if whole[at] and chosen.random() < 0.03]
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << chosen.randrange(8))]) + whole[place + 1 :])
        if not list(check_store(checked_files(home)[1])):
            assert _all_rows(path) == rows, place
    path.write_bytes(whole)
    assert list(check_store(checked_files(home)[1])) == []


def _all_rows(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"SELECT * FROM {table.name} ORDER BY id").fetchall() for table in TABLES]


def test_a_forgotten_text_leaves_checkpoints_that_match_their_checksums(memory: memoranda.Memory) -> None:
    """Overwriting is not taken for damage, and a copied thread keeps its checksums."""
    _put(_store(memory), "Ana lives in LISBON now")
    copy_thread(_store(memory), "t", "copy")
    engine = _store(memory).engine
    assert CheckpointPassages(_store(memory)).replace(TextMatcher(["lisbon"])) == 2
    with engine.writing() as connection:
        assert count_changed(connection) == 0
        connection.execute("UPDATE checkpoint_writes SET channel = 'other'")
        assert count_changed(connection) == 2
