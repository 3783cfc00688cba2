"""Index files of users on a node lose what other nodes delete, although nobody searches for these users there."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.feed import user_name
from memoranda.memory.record.scope import Scope
from memoranda.search.index import user_indexes
from memoranda.search.index.user_indexes import POSITION_FILE
from memoranda.search.tool import SessionSearchTool
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.position import START
from memoranda.storage.postgres.engine import PostgresEngine
from memoranda.upkeep.forgetting.sessions import delete_sessions
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

USERS = ("ann", "bob", None)


@contextmanager
def _node(url: str, directory: Path) -> Iterator[SessionDB]:
    """A node that runs: it follows what others do."""
    with SessionDB(url, index_directory=directory, user_index_mb=100) as db:
        db.follow_others()
        yield db


@pytest.fixture
def one(postgres_url: str, tmp_path: Path) -> Iterator[SessionDB]:
    """The node on which things are deleted; it has recorded a session of each user."""
    with SessionDB(postgres_url, index_directory=tmp_path / "one", user_index_mb=100) as db:
        for user in USERS:
            db.create_session(f"of {user}", "cli", user_id=user)
            db.append_message(f"of {user}", "user", f"the heron of {user} has zorblatt and plimforth")
            db.create_session(f"more of {user}", "cli", user_id=user)
            db.append_message(f"more of {user}", "user", f"the otter of {user}")
        yield db


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The directory of the other node."""
    return tmp_path / "other"


def _search(db: SessionDB, *users: str | None) -> None:
    """Build the index files of these users."""
    for user in users:
        own = db.scoped(Scope.of(user))
        wait_until(lambda own=own: SessionSearchTool(lambda: own).call({"query": "heron"})["count"])  # type: ignore[misc]


def _build(url: str, directory: Path, *users: str | None) -> None:
    """What a node leaves that has searched for these users, and is off now."""
    with SessionDB(url, index_directory=directory, user_index_mb=100) as db:
        _search(db, *users)


def _bytes(directory: Path) -> bytes:
    """Every byte that a node has."""
    found = b""
    for file in directory.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):
            found += file.read_bytes()
    return found


def _names(directory: Path) -> set[str]:
    return {file.name[:40] for file in directory.glob("*.index.users/*.index.db.*")}


def _position(directory: Path) -> str:
    (file,) = directory.glob(f"*.index.users/{POSITION_FILE}")
    return str(json.loads(file.read_text())["change"])


def _wait_for_position(directory: Path, db: SessionDB) -> None:
    """Wait until a node has followed the last change."""
    head = str(db.head().change)
    wait_until(lambda: list(directory.glob(f"*.index.users/{POSITION_FILE}")) and _position(directory) == head)


def _delete_session(db: SessionDB, directory: Path) -> None:
    delete_sessions(db.scoped(Scope.of("ann")), directory, ["of ann"])


def _redact_message(db: SessionDB, directory: Path) -> None:
    own = db.scoped(Scope.of("ann"))
    (message,) = own.get_messages("of ann")
    own.redact_message(message["id"])


def _delete_session_that_another_user_has_now(db: SessionDB, directory: Path) -> None:
    _delete_session(db, directory)
    db.create_session("of ann", "cli", user_id="cid")


DELETIONS = (_delete_session, _redact_message, _delete_session_that_another_user_has_now)


@pytest.mark.parametrize("delete", DELETIONS)
def test_a_running_node_loses_what_another_deletes(
    one: SessionDB, postgres_url: str, tmp_path: Path, other: Path, delete: Callable[[SessionDB, Path], None]
) -> None:
    """No byte of it is left, the other users' files stay as they are, and the user is found again."""
    with _node(postgres_url, other) as db:
        _search(db, *USERS)
        _wait_for_position(other, one)
        assert _names(other) == {user_name(user) for user in USERS}
        bobs = {file: file.stat().st_mtime_ns for file in other.glob(f"*/{user_name('bob')}.index.db.*")}
        words = (b"zorblatt", b"ann")
        assert all(word in _bytes(other) for word in words)
        delete(one, tmp_path)
        wait_until(lambda: not _words_of_ann(other))
        _wait_for_position(other, one)
        assert {file: file.stat().st_mtime_ns for file in bobs if file.suffix[1:].isdigit()} == {
            file: time for file, time in bobs.items() if file.suffix[1:].isdigit()
        }
        ann = db.scoped(Scope.of("ann"))
        assert SessionSearchTool(lambda: ann).call({"query": "zorblatt"})["count"] == 0
        wait_until(lambda: SessionSearchTool(lambda: ann).call({"query": "otter"})["count"] == 1)


def _words_of_ann(directory: Path) -> bool:
    return any(b"zorblatt" in _bytes_of(file) for file in directory.glob(f"*/{user_name('ann')}*"))


def _bytes_of(file: Path) -> bytes:
    with suppress(FileNotFoundError):
        return file.read_bytes()
    return b""


def test_a_text_that_is_forgotten_for_everyone_leaves_the_other_node(
    one: SessionDB, postgres_url: str, other: Path
) -> None:
    """Every byte of its home is read."""
    with _node(postgres_url, other) as db:
        _search(db, *USERS)
        assert b"plimforth" in _bytes(other)
        for user in USERS:
            (message,) = one.get_messages(f"of {user}")
            one.redact_message(message["id"], "[forgotten]")
        wait_until(lambda: b"plimforth" not in _bytes(other))
        assert _names(other) == {user_name(user) for user in USERS}


@pytest.mark.parametrize("delete", DELETIONS)
def test_a_node_that_was_off_loses_it_when_it_starts(
    one: SessionDB, postgres_url: str, tmp_path: Path, other: Path, delete: Callable[[SessionDB, Path], None]
) -> None:
    """It continues from the position that it had before."""
    with _node(postgres_url, other) as db:
        _search(db, *USERS)
        _wait_for_position(other, one)
    delete(one, tmp_path)
    assert _words_of_ann(other)
    with _node(postgres_url, other):
        wait_until(lambda: not _words_of_ann(other))
        _wait_for_position(other, one)


def test_files_without_a_position_are_all_compared(one: SessionDB, postgres_url: str, other: Path) -> None:
    """Also those of a user of whom the record has nothing any more, and that no change names."""
    _build(postgres_url, other, *USERS)
    for file in other.glob(f"*.index.users/{POSITION_FILE}"):
        file.unlink()
    with one.engine.writing() as connection:
        for table in ("messages", "sessions"):
            connection.execute(f"DELETE FROM {table} WHERE user_id = 'bob'")
    one.delete_session("of ann")
    with _node(postgres_url, other):
        _wait_for_position(other, one)
        assert _names(other) == {user_name("ann"), user_name(None)}
        assert not _words_of_ann(other)


@pytest.mark.smoke
def test_files_of_a_user_without_sessions_are_deleted(one: SessionDB, postgres_url: str, other: Path) -> None:
    """When the last session is gone, nothing of the user stays."""
    with _node(postgres_url, other) as db:
        _search(db, *USERS)
        one.delete_sessions(["of ann", "more of ann"])
        wait_until(lambda: _names(other) == {user_name("bob"), user_name(None)})


def test_an_update_that_comes_too_late_leaves_no_file(one: SessionDB, postgres_url: str, other: Path) -> None:
    """A search had asked for it, and meanwhile the last session was deleted, with the files."""
    with SessionDB(postgres_url, index_directory=other, user_index_mb=100) as db:
        _search(db, "ann", "bob")
        indexes = db._store_index.users()
        one.delete_sessions(["of ann", "more of ann"])
        for user in ("ann", "bob"):
            indexes._queue.add(user, doubtful=True)
            indexes.remove(user_name(user))
            indexes._queue.catch_up()
        assert _names(other) == {user_name("bob")}


_KILLED = """
import os, signal, sys
from pathlib import Path
from memoranda.search.index import user_indexes
from memoranda.home.session_db import SessionDB

def die(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)

owner, _, name = sys.argv[3].partition(".")
setattr({"upkeep": user_indexes.UserIndexUpkeep, "indexes": user_indexes.UserIndexes}[owner], name, die)
db = SessionDB(sys.argv[1], index_directory=Path(sys.argv[2]), user_index_mb=100)
db.follow_others()
import threading
threading.Event().wait(300)
"""


@pytest.mark.parametrize("killed_in", ["upkeep._write_position", "indexes.forget_deleted", "indexes.remove"])
def test_a_killed_node_loses_nothing_of_its_work(
    one: SessionDB, postgres_url: str, other: Path, killed_in: str
) -> None:
    """Between reading the changes, removing words and storing the position: the next start completes it."""
    with _node(postgres_url, other) as db:
        _search(db, *USERS)
        _wait_for_position(other, one)
    before = _position(other)
    one.delete_sessions(["of ann", "of bob", "more of bob"])
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, postgres_url, str(other), killed_in], check=False, timeout=GIVE_UP
    )
    assert killed.returncode == -signal.SIGKILL
    assert _position(other) == before
    with _node(postgres_url, other):
        wait_until(lambda: not _words_of_ann(other) and user_name("bob") not in _names(other))
        _wait_for_position(other, one)


def test_an_idle_node_asks_once_and_for_no_user(
    one: SessionDB, postgres_url: str, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement for each time that it wakes up, however many users have files."""
    with _node(postgres_url, other) as db:
        _search(db, *USERS)
        _wait_for_position(other, one)
        upkeep = db._store_index._open_upkeep()
        statements: list[str] = []
        execute_alone, reading = PostgresEngine._execute_alone, PostgresEngine.reading

        def count(engine: PostgresEngine, statement: str, values: object) -> object:
            if threading.current_thread() is threading.main_thread():
                statements.append(statement)
            return execute_alone(engine, statement, values)  # type: ignore[arg-type]

        def refuse(engine: PostgresEngine) -> object:
            assert threading.current_thread() is not threading.main_thread(), "the node has read more"
            return reading(engine)

        wait_until(lambda: upkeep._known == upkeep._changes.heads())
        monkeypatch.setattr(PostgresEngine, "_execute_alone", count)
        monkeypatch.setattr(PostgresEngine, "reading", refuse)
        for _ in range(3):
            assert upkeep.catch_up().complete
        # More only while a transaction of another test on the same server is in progress.
        assert len(statements) == 3 or any("xid8" in each for each in statements)
        assert not any("user_id" in each for each in statements)


def test_the_time_of_an_update_is_not_the_time_of_a_use(one: SessionDB, postgres_url: str, other: Path) -> None:
    """Otherwise a user whom nobody searches for would never be evicted."""
    with _node(postgres_url, other) as db:
        _search(db, "ann")
        _wait_for_position(other, one)
    (file,) = (each for each in other.glob(f"*/{user_name('ann')}.index.db.*") if each.suffix[1:].isdigit())
    os.utime(file, (1e9, 1e9))
    one.delete_session("of ann")
    with _node(postgres_url, other):
        _wait_for_position(other, one)
        assert not _words_of_ann(other)
        newest = max(other.glob(f"*/{user_name('ann')}.index.db.*"))
        assert newest.stat().st_mtime == 1e9


@pytest.mark.parametrize("stored", [{"store": "another", "change": "1"}, {"store": None, "change": f"{2**62}-1"}])
def test_files_of_another_state_of_the_record_are_deleted(
    one: SessionDB, postgres_url: str, other: Path, stored: dict[str, str | None]
) -> None:
    """A record that was replaced, or restored from an older copy."""
    _build(postgres_url, other, *USERS)
    (directory,) = other.glob("*.index.users")
    (directory / POSITION_FILE).write_text(json.dumps(stored | {"store": stored["store"] or one.store_id()}))
    with _node(postgres_url, other):
        _wait_for_position(other, one)
        assert not _names(other)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"store": "a"}', '{"store": "a", "change": "x"}'])
def test_a_damaged_position_is_no_position(one: SessionDB, postgres_url: str, other: Path, content: str) -> None:
    """All files are compared, and it is written again."""
    _build(postgres_url, other, "ann")
    one.delete_session("of ann")
    (directory,) = other.glob("*.index.users")
    (directory / POSITION_FILE).write_text(content)
    with _node(postgres_url, other):
        wait_until(lambda: not _words_of_ann(other))
        wait_until(lambda: (directory / POSITION_FILE).read_text().startswith('{"store"'))


def test_a_file_that_cannot_be_read_is_deleted(one: SessionDB, postgres_url: str, other: Path) -> None:
    """A damaged one may have the words of a deleted session."""
    with _node(postgres_url, other) as db:
        _search(db, "ann", "bob")
        _wait_for_position(other, one)
    (file,) = (each for each in other.glob(f"*/{user_name('bob')}.index.db.*") if each.suffix[1:].isdigit())
    file.write_bytes(b"zorblatt" * 4096)
    one.delete_session("of ann")
    with _node(postgres_url, other):
        _wait_for_position(other, one)
        assert _names(other) == {user_name("ann")}


def test_one_process_of_a_node_does_the_work(one: SessionDB, postgres_url: str, other: Path) -> None:
    """The others leave it to the one that has the lock, and try again when it is gone."""
    _build(postgres_url, other, "ann")
    (directory,) = other.glob("*.index.users")
    for file in directory.glob(POSITION_FILE):
        file.unlink()
    with SessionDB(postgres_url, index_directory=other, user_index_mb=100) as db:
        upkeep = db._store_index._open_upkeep()
        with FileLock(directory / "followed.lock", timeout=GIVE_UP):
            assert upkeep.catch_up().complete
            assert not (directory / POSITION_FILE).exists()
        wait_until(lambda: upkeep.catch_up().complete and (directory / POSITION_FILE).exists())


def test_the_position_waits_for_a_build_in_progress(
    one: SessionDB, postgres_url: str, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have read the record before the deletion; an abandoned one is deleted."""
    _build(postgres_url, other, "ann")
    (directory,) = other.glob("*.index.users")
    building = directory / f"{user_name('ann')}.index.db.17.building"
    building.write_bytes(b"zorblatt")
    for file in directory.glob(POSITION_FILE):
        file.unlink()
    with SessionDB(postgres_url, index_directory=other, user_index_mb=100) as db:
        upkeep = db._store_index._open_upkeep()
        assert upkeep.catch_up().complete
        assert building.exists() and not (directory / POSITION_FILE).exists()
        monkeypatch.setattr(user_indexes, "_MAX_USER_BUILD_SECONDS", -1.0)
        assert upkeep.catch_up().complete
        assert not building.exists() and (directory / POSITION_FILE).exists()


def test_the_indexes_of_all_users_and_of_items_follow_too(one: SessionDB, postgres_url: str, other: Path) -> None:
    """An operator's search has built them, and no search of a user updates them."""
    items = one.scoped(Scope.of("ann")).items
    items.put(("notes",), "k", {"text": "the quixnorf"})
    with _node(postgres_url, other) as db:
        _search(db, "bob")
        db.index.catch_up()
        db.item_index.catch_up()
        wait_until(lambda: b"zorblatt" in _bytes(other) and b"quixnorf" in _bytes(other))
        one.delete_sessions([f"of {user}" for user in USERS])
        items.delete(("notes",), "k")
        wait_until(lambda: b"zorblatt" not in _bytes(other) and b"quixnorf" not in _bytes(other))


def test_a_process_that_only_searches_follows_deletions_too(one: SessionDB, postgres_url: str, other: Path) -> None:
    """It does not watch the record, but looks once in a while, while users are searched for."""
    _build(postgres_url, other, "ann", "bob")
    one.delete_session("of ann")
    with SessionDB(postgres_url, index_directory=other, user_index_mb=100) as db:
        _search(db, "bob")
        wait_until(lambda: not _words_of_ann(other))


def test_only_a_store_that_sees_everyone_reads_the_changes_of_all(one: SessionDB) -> None:
    """The changes say whose sessions they are."""
    from memoranda.errors import SessionError
    from memoranda.memory.record.feed import ChangedSessions

    everyone = ChangedSessions(one.engine, Scope.everyone(), None)
    one.delete_session("of bob")
    one.set_session_title("of ann", "A title")
    expected = {("of bob", None, False, True), ("of ann", "ann", True, False)}
    wait_until(lambda: {tuple(each[1:]) for each in everyone.changed_after(START, 100)} == expected)
    own = ChangedSessions(one.engine, Scope.of("ann"), None)
    for call in (own.heads, lambda: own.changed_after(START, 1)):
        with pytest.raises(SessionError):
            call()
