"""A forked process and its parent use the same files, and neither loses what the other writes."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.search.index.follower import Follower
from memoranda.search.index.updater import IndexUpdater
from memoranda.storage.sqlite.database import Database
from tests.forked import Forked, Say, forking, in_child
from tests.timing import GIVE_UP

pytestmark = [forking, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


def _contents(path: Path) -> list[str]:
    """What a new connection finds in the record, after a check of the whole file."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [content for (content,) in connection.execute("SELECT content FROM messages ORDER BY id")]


def _open_files(directory: Path) -> set[str]:
    names = (os.path.realpath(f"/dev/fd/{number}") for number in os.listdir("/dev/fd"))
    return {name for name in names if name.startswith(f"{directory}/")}


def _assert_none(names: set[str]) -> None:
    assert not names


def test_what_a_child_writes_after_its_parent_has_closed_the_file_is_kept(tmp_path: Path) -> None:
    """The last process that closes a file deletes its log, and the child still uses it."""
    path = tmp_path / "state.db"
    reading, writing = os.pipe()
    db = SessionDB(path)
    db.create_session("s", source="cli")
    db.append_message("s", "user", "before the fork")

    def write_twice(say: Say) -> None:
        db.append_message("s", "user", "while the parent has it open")
        say(b"written")
        os.read(reading, 1)
        db.append_message("s", "user", "after the parent closed it")

    child = Forked(write_twice)
    assert child.heard() == b"written"
    db.append_message("s", "user", "of the parent")
    db.close()
    os.write(writing, b"x")
    assert child.wait() == 0
    os.close(reading)
    os.close(writing)
    expected = ["before the fork", "while the parent has it open", "of the parent", "after the parent closed it"]
    assert _contents(path) == expected


@pytest.mark.slow
def test_a_fork_leaves_the_log_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the last connection would empty it, with several syncs, at every fork of the host program."""
    # The thread that follows the record would open it again after the fork.
    monkeypatch.setattr(Follower, "nudge", lambda follower, **how: None)
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", source="cli")
        db.append_message("s", "user", "before the fork")
        before = [(tmp_path / name).read_bytes() for name in ("state.db", "state.db-wal")]
        assert in_child(lambda: None) == 0
        assert _open_files(tmp_path) == set()
        assert [(tmp_path / name).read_bytes() for name in ("state.db", "state.db-wal")] == before
        assert in_child(lambda: db.append_message("s", "user", "of the child")) == 0
        db.append_message("s", "user", "of the parent")
    assert _contents(tmp_path / "state.db") == ["before the fork", "of the child", "of the parent"]


@pytest.mark.slow
def test_a_child_inherits_no_open_file_of_the_home(tmp_path: Path) -> None:
    """SQLite would count locks on such a file that the child does not have."""
    with memoranda.open(tmp_path) as memory, memory.session(source="cli") as session:
        session.record("user", "A heron at the pond")
        memory.remember("Likes herons.")
        assert memory.search("heron")
        assert any(name.endswith(".db") for name in _open_files(tmp_path))
        assert in_child(lambda: _assert_none(_open_files(tmp_path))) == 0
        session.record("user", "Another heron")
        assert len(memory.search("another")["results"]) == 1


@pytest.mark.parametrize("transaction", ["reading", "writing"])
def test_a_child_that_is_forked_inside_a_transaction_refuses_the_file(tmp_path: Path, transaction: str) -> None:
    """It cannot lock the file, so an error is better than a write that may be lost; the parent continues."""
    path = tmp_path / "data.db"

    def refuse(do: Callable[[], object]) -> None:
        with pytest.raises(StorageError, match="when it forked this one"):
            do()

    def use() -> None:
        refuse(lambda: Database(path, application_id=1))
        refuse(lambda: database.write(lambda connection: connection.execute("INSERT INTO t VALUES (2)")))

    with closing(Database(path, application_id=1)) as database:
        database.write(lambda connection: connection.execute("CREATE TABLE t (a)"))
        with getattr(database, transaction)() as connection:
            assert in_child(use) == 0
            connection.execute("SELECT * FROM t")
        database.write(lambda connection: connection.execute("INSERT INTO t VALUES (1)"))
        with database.reading() as connection:
            assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_child_of_such_a_fork_uses_other_files(tmp_path: Path) -> None:
    """Only the files that its parent had open are refused."""

    def use() -> None:
        with SessionDB(tmp_path / "other.db") as db:
            db.create_session("s", source="cli")

    with closing(Database(tmp_path / "data.db", application_id=1)) as database, database.reading():
        assert in_child(use) == 0


@pytest.mark.slow
def test_nothing_is_lost_while_many_processes_fork_and_close(tmp_path: Path) -> None:
    """Children write while their parent writes, forks, closes and opens the same file."""
    path, rounds, writes = tmp_path / "state.db", 6, 30
    SessionDB(path).close()

    def write(name: str, db: SessionDB) -> None:
        db.create_session(name, source="cli")
        for number in range(writes):
            db.append_message(name, "user", f"{name} {number}")
            if number % 10 == 0:
                db.search_messages(name)

    def fork(name: str, db: SessionDB) -> Forked:
        return Forked(lambda say: write(name, db))

    children = []
    for number in range(rounds):
        with SessionDB(path) as db:
            thread = threading.Thread(target=write, args=(f"parent{number}", db))
            thread.start()
            children += [fork(f"child-{side}{number}", db) for side in "ab"]
            thread.join(GIVE_UP)
    assert [child.wait() for child in children] == [0] * len(children)
    names = [f"{kind}{number}" for number in range(rounds) for kind in ("parent", "child-a", "child-b")]
    assert sorted(_contents(path)) == sorted(f"{name} {number}" for name in names for number in range(writes))
    with SessionDB(path) as db:
        assert db.index.catch_up().complete
        assert all(db.search_messages(name, limit=1) for name in names)


@pytest.mark.slow
def test_a_fork_waits_for_all_databases_together_and_not_for_each(tmp_path: Path) -> None:
    """A thread that keeps several transactions open holds up the host program for about a second.

    The child of that fork uses every other file, and refuses these with an error instead of losing what it writes.
    """
    databases = [SessionDB(tmp_path / str(number) / "state.db") for number in range(3)]
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as open_transactions:
            for db in databases:
                open_transactions.enter_context(db.engine.writing())
            holding.set()
            release.wait(GIVE_UP)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(GIVE_UP)

    def use() -> None:
        with SessionDB(tmp_path / "other" / "state.db") as other:
            other.create_session("s", source="cli")
        for db in databases:
            with pytest.raises(StorageError, match="when it forked this one"):
                db.create_session("s", source="cli")

    began = time.monotonic()
    child = Forked(lambda say: use())
    waited = time.monotonic() - began
    assert child.wait() == 0
    release.set()
    thread.join()
    # Each of them waited ten seconds before.
    assert waited < 5
    for db in databases:
        db.close()


@pytest.mark.slow
def test_a_child_that_is_forked_during_a_long_index_build_uses_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexing commits what it has when a fork waits, so that the child can open record and index itself."""
    db = SessionDB(tmp_path / "state.db")
    db.create_session("s", source="cli")
    db.append_messages("s", [{"role": "user", "content": f"the heron says {number}"} for number in range(2000)])
    started, follow = threading.Event(), IndexUpdater.follow

    def slow_follow(updater: IndexUpdater, limit: int) -> bool:
        started.set()
        time.sleep(limit / 1000)
        return follow(updater, limit)

    monkeypatch.setattr(IndexUpdater, "follow", slow_follow)
    thread = threading.Thread(target=db.index.catch_up)
    thread.start()
    assert started.wait(GIVE_UP)

    def use(say: Say) -> None:
        db.append_message("s", "user", "from the child")
        say((db.index.catch_up().problem or "none").encode())

    began = time.monotonic()
    child = Forked(use)
    waited = time.monotonic() - began
    # The parent indexes, too, and one of the two waits for the other.
    assert child.rest() in (b"none", b"another process is using it")
    assert waited < 5
    thread.join(GIVE_UP)
    db.close()
    assert "from the child" in _contents(tmp_path / "state.db")
