"""A home recognises its store by a marker: what is missing, emptied, replaced or older is refused, and nothing else."""

import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import CorruptStoreError, StoreMismatchError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.health import salvage
from memoranda.memory.record.record import StoreMarker, read_marker, write_marker
from memoranda.memory.record.store import open_store
from memoranda.storage.files.marker_file import checksum
from memoranda.storage.salvage import rebuild
from memoranda.support.home import Home, marker_path
from memoranda.upkeep.doctor import accept_store, examine
from tests.conftest import tree
from tests.forked import Forked, Say, forking, in_child
from tests.memory.record.damaged_homes import HEADER_DAMAGES, LOST_FILES, append_messages, fill_home, read_messages

pytestmark = pytest.mark.slow

_SEED = random.Random(1)


def _restore_older(path: Path, chosen: random.Random) -> None:
    older = path.read_bytes()
    append_messages(path)
    path.write_bytes(older)


ALARMS = HEADER_DAMAGES | LOST_FILES | {"an older copy": _restore_older}
# Only a person can say what to do about these.
UNDECIDED = [*LOST_FILES, "an older copy"]


@pytest.mark.parametrize("name", ALARMS)
def test_a_store_that_is_not_the_one_of_the_home_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    """In the library; curated memory works meanwhile, and neither the file nor the index is touched."""
    path = fill_home(tmp_path / "home", 2, 5)
    ALARMS[name](path, _SEED)
    before = tree(path.parent)
    with memoranda.open(path.parent) as memory:
        for use in (lambda: memory.sessions, lambda: memory.search("zebra"), lambda: memory.session().turn("hello")):
            with pytest.raises(CorruptStoreError, match="memoranda doctor"):
                use()
        assert memory.entries("memory") == ("The staging database is called heron.",)
    assert tree(path.parent) == before
    with memoranda.open(path.parent) as memory:
        assert memory.remember("Curated memory is still written.")["success"]


@pytest.mark.parametrize(
    "name", [*list(ALARMS)[:1], *(pytest.param(name, marks=pytest.mark.slow) for name in list(ALARMS)[1:])]
)
def test_the_doctor_reports_it_and_keeps_the_index(tmp_path: Path, name: str) -> None:
    """What has rows is saved completely; what has none waits for a person, however often --fix runs."""
    path = fill_home(tmp_path / "home", 2, 5)
    said = read_messages(path)
    ALARMS[name](path, _SEED)
    (index,) = path.parent.glob("state.index.db.?????*")
    errors = [issue for issue in examine(Home.at(path.parent)) if issue.severity == "error"]
    assert [issue.path for issue in errors] == [path]
    if name in UNDECIDED:
        assert errors[0].repair is None
        assert "--accept-store" in errors[0].remedy
        assert index.exists()
    else:
        assert errors[0].repair is not None
        assert "saved 2 sessions and 10 messages" in str(errors[0].repair())
        assert read_messages(path) == said
        assert [issue for issue in examine(Home.at(path.parent)) if issue.severity != "note"] == []


@pytest.mark.parametrize("lose", [LOST_FILES["emptied"], LOST_FILES["deleted"]], ids=["emptied", "deleted"])
def test_the_doctor_says_what_is_left_of_a_lost_store(tmp_path: Path, lose: Callable[..., object]) -> None:
    """The index has words and times of messages, not their texts; copies of the file are named."""
    path = fill_home(tmp_path / "home", 2, 5)
    (path.parent / "backups").mkdir(mode=0o700)
    (path.parent / "backups" / "before-import-1.zip").touch(mode=0o600)
    lose(path, _SEED)
    notes = [
        f"{issue.path.name} {issue.problem}" for issue in examine(Home.at(path.parent)) if issue.severity == "note"
    ]
    assert "still knows 10 messages of 2 sessions" in notes[0]
    assert "before-import-1.zip may contain" in notes[1]


@pytest.mark.parametrize("name", UNDECIDED)
def test_a_person_can_accept_the_store_that_is_there(tmp_path: Path, name: str) -> None:
    """A backup that was restored, another store, or an empty one; from then on the home is as any other."""
    path = fill_home(tmp_path / "home", 2, 5)
    ALARMS[name](path, _SEED)
    accept_store(Home.at(path.parent))
    assert [issue for issue in examine(Home.at(path.parent)) if issue.severity == "error" and issue.path == path] == []
    with memoranda.open(path.parent) as memory:
        memory.sessions.create_session("new", "cli")
        memory.sessions.append_message("new", "user", "a giraffe")
        assert memory.search("giraffe")["count"] == 1
    path.unlink()
    with pytest.raises(StoreMismatchError):
        SessionDB(path)


def test_a_home_whose_marker_was_deleted_gets_one_when_it_is_opened(tmp_path: Path) -> None:
    """And until then its index says that there was a store, and that a damaged file is not another program's."""
    path = fill_home(tmp_path / "home", 2, 5)
    marker_path(path).unlink()
    for damage in (HEADER_DAMAGES["first 4 kB zeroed"], LOST_FILES["deleted"]):
        content = path.read_bytes()
        damage(path, _SEED)
        with memoranda.open(path.parent) as memory:
            with pytest.raises(CorruptStoreError):
                _ = memory.sessions
            assert memory.entries("memory")
        path.write_bytes(content)
    assert read_marker(path) is None
    with open_store(path) as store:
        assert read_marker(path) == StoreMarker(store.feed.store_id(), 10, 0, 10, _columns(path))


def _columns(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: " ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
            for table in ("sessions", "messages", "system_prompts")
        }


def test_a_new_home_and_an_empty_store_have_no_marker(tmp_path: Path) -> None:
    """There is nothing to lose, so deleting the file is no alarm."""
    path = tmp_path / "state.db"
    for _ in range(2):
        open_store(path).close()
        assert not marker_path(path).exists()
        path.unlink()


def _written(path: Path) -> tuple[int, int]:
    """Which file the marker is, and when it was written; not when it was read, which a second's end could change."""
    state = marker_path(path).stat()
    return state.st_ino, state.st_mtime_ns


def test_an_append_does_not_touch_the_marker(tmp_path: Path) -> None:
    """It is written when the store is closed, and only if something was recorded."""
    path = fill_home(tmp_path / "home", 1, 3)
    before = _written(path)
    with SessionDB(path) as db:
        for _ in range(10):
            db.append_message("s0", "user", "more")
        assert _written(path) == before
    assert read_marker(path) == replace(read_marker(path) or StoreMarker(), last_message=13, messages=13)
    before = _written(path)
    with SessionDB(path) as db:
        assert db.get_messages("s0")
    assert _written(path) == before


def test_a_checkpoint_writes_the_marker(tmp_path: Path) -> None:
    """A process that stays open for weeks is noted, too."""
    path = fill_home(tmp_path / "home", 1, 3)
    before = read_marker(path)
    with SessionDB(path) as db:
        deadline = time.monotonic() + 60
        while read_marker(path) == before and time.monotonic() < deadline:
            db.append_message("s0", "user", "more " * 20_000)
        assert read_marker(path) != before


def _delete_session(db: SessionDB) -> None:
    assert db.delete_session("s1")


def _clear_last(db: SessionDB) -> None:
    db.clear_messages("s1")


def _prune(db: SessionDB) -> None:
    for name in ("s0", "s1"):
        db.end_session(name, "done")
    assert db.prune_sessions(older_than_days=-1) == 2


@pytest.mark.parametrize("delete", [_delete_session, _clear_last, _prune])
def test_deleting_messages_is_no_alarm(tmp_path: Path, delete: Callable[[SessionDB], None]) -> None:
    """Whether the process that deleted them closed the store or was killed; the marker counts what is left."""
    path = fill_home(tmp_path / "home", 2, 5)

    def delete_and_die() -> None:
        db = SessionDB(path)
        delete(db)
        os._exit(9)

    copy = tmp_path / "copy" / "state.db"
    shutil.copytree(path.parent, copy.parent)
    assert in_child(delete_and_die) == 9
    with SessionDB(copy) as db:
        delete(db)
    for each in (path, copy):
        with SessionDB(each) as db:
            left = db.statistics()["messages"]
            db.create_session("new", "cli")
            db.append_message("new", "user", "new")
        marker = read_marker(each)
        assert marker is not None
        assert marker.messages == left + 1


@forking
def test_a_process_that_is_killed_leaves_an_older_marker_which_is_no_alarm(tmp_path: Path) -> None:
    """Wherever it is killed: during an append, at a close, while it writes the marker."""
    path = fill_home(tmp_path / "home", 1, 3)

    def work(say: Say) -> None:
        while True:
            with SessionDB(path) as db:
                for _ in range(3):
                    db.append_message("s0", "user", "again")
                    say(b".")

    acknowledged = 0
    for pause in (0.0, 0.002, 0.005, 0.011, 0.017):
        other = Forked(work)
        acknowledged += len(other.heard())
        time.sleep(pause)
        acknowledged += len(other.kill())
        marker = read_marker(path)
        assert marker is not None and marker.store_id
    with SessionDB(path) as db:
        assert db.statistics()["messages"] >= 3 + acknowledged


@forking
def test_several_processes_open_write_and_close_without_an_alarm(tmp_path: Path) -> None:
    """They also create the store together."""
    path = tmp_path / "state.db"

    def work(say: Say) -> None:
        for number in range(6):
            with SessionDB(path) as db:
                db.create_session(f"{os.getpid()}-{number}", "cli")
                db.append_message(f"{os.getpid()}-{number}", "user", "hello")
                if number % 3 == 2:
                    db.delete_session(f"{os.getpid()}-{number}")

    others = [Forked(work) for _ in range(4)]
    assert [other.wait() for other in others] == [0] * 4
    with SessionDB(path) as db:
        assert db.statistics()["messages"] == 16


def test_a_copied_home_and_a_read_only_one_are_no_alarm(tmp_path: Path) -> None:
    """The marker is copied along; where it cannot be written, it is not."""
    path = fill_home(tmp_path / "home", 1, 3)
    copy = tmp_path / "copy"
    shutil.copytree(path.parent, copy)
    append_messages(copy / "state.db")
    append_messages(path)
    marker_path(path).unlink()
    marker_path(path).mkdir()
    with SessionDB(path) as db:
        db.append_message("s0", "user", "the marker cannot be written")
        assert db.statistics()["messages"] == 9


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff\x00" * 40, None])
def test_a_damaged_marker_is_no_alarm_and_is_replaced(tmp_path: Path, content: bytes | None) -> None:
    """A changed digit is noticed by its checksum. That there was a store is still known."""
    path = fill_home(tmp_path / "home", 1, 3)
    intact = marker_path(path).read_bytes()
    marker_path(path).write_bytes(intact.replace(b": 3", b": 9") if content is None else content)
    assert read_marker(path) == StoreMarker()
    append_messages(path, 1)
    marker = read_marker(path)
    assert marker is not None and marker.messages == 4
    marker_path(path).write_bytes(b"")
    path.unlink()
    with pytest.raises(StoreMismatchError, match="is missing"):
        SessionDB(path)


def test_a_marker_of_a_later_version_is_understood(tmp_path: Path) -> None:
    """Fields that this version does not know are ignored."""
    path = fill_home(tmp_path / "home", 1, 3)
    marker = read_marker(path)
    values = {**json.loads(marker_path(path).read_text()), "later": 1}
    del values["checksum"]
    values["checksum"] = checksum(json.dumps(values, sort_keys=True).encode())
    marker_path(path).write_text(json.dumps(values))
    assert read_marker(path) == marker != StoreMarker()


@forking
@pytest.mark.parametrize("after", [False, True])
def test_a_repair_that_is_killed_leaves_a_store_that_is_recognised(
    tmp_path: Path, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after the file is replaced: the store in place is opened, and gets the marker."""
    path = fill_home(tmp_path / "home", 2, 5)
    said = read_messages(path)
    place = rebuild._replace

    def die(target: Path, fresh: Path) -> None:
        if after:
            place(target, fresh)
        os._exit(9)

    def repair() -> None:
        monkeypatch.setattr(rebuild, "_replace", die)
        salvage(path, path.with_name("kept"))

    assert in_child(repair) == 9
    with SessionDB(path) as db:
        store_id = db.store_id()
    assert read_messages(path) == said
    marker = read_marker(path)
    assert marker is not None
    assert (marker.store_id, marker.replaced_by) == (store_id, "")


def test_a_file_of_another_program_in_the_place_of_the_store_is_not_taken_apart(tmp_path: Path) -> None:
    """It is readable and has other tables, so it is not our store with a damaged header: a person decides."""
    path = fill_home(tmp_path / "home", 1, 3)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    content = path.read_bytes()
    with pytest.raises(StoreMismatchError, match="is not the store of this home"):
        SessionDB(path)
    (issue,) = [issue for issue in examine(Home.at(path.parent)) if issue.severity == "error"]
    assert issue.repair is None
    assert path.read_bytes() == content


def test_a_store_that_is_replaced_while_it_is_open_is_not_read(tmp_path: Path) -> None:
    """A process that runs for weeks notices it at its next read or write."""
    path = fill_home(tmp_path / "home", 1, 3)
    other = fill_home(tmp_path / "other", 1, 3)
    with SessionDB(path) as db:
        os.replace(other, path)
        for _ in range(2):
            with pytest.raises(StoreMismatchError, match="is not the store of this home"):
                db.get_messages("s0")
        with pytest.raises(StoreMismatchError, match="is not the store of this home"):
            db.append_message("s0", "user", "lost")


def test_rows_of_an_upgraded_store_are_saved_without_its_first_page(tmp_path: Path) -> None:
    """Its columns have another order, which the marker knows, and rows from before a column was added are shorter."""
    path = fill_home(tmp_path / "home", 2, 5)
    with closing(sqlite3.connect(path)) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("ALTER TABLE messages DROP COLUMN token_count")
        connection.execute("UPDATE state_meta SET value = '0' WHERE key = 'memoranda_schema_version'")
        connection.execute("UPDATE schema_version SET version = 0")
    append_messages(path)
    said = read_messages(path)
    HEADER_DAMAGES["first 4 kB zeroed"](path, _SEED)
    assert salvage(path, path.with_name("kept"))["messages"] == len(said) == 15
    assert read_messages(path) == said


def test_a_marker_is_private_and_small(tmp_path: Path) -> None:
    """It contains no text of messages."""
    path = fill_home(tmp_path / "home", 1, 3)
    assert marker_path(path).stat().st_mode & 0o777 == 0o600
    assert marker_path(path).stat().st_size < 2_000
    write_marker(path, StoreMarker("x"))
    assert not list(path.parent.glob(".*.tmp"))
