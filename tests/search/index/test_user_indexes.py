"""One index file per user: the answers, the limit of the directory, deletions, and processes that are killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.feed import user_name
from memoranda.memory.record.scope import Scope
from memoranda.search.index import user_indexes
from memoranda.search.index.user_indexes import UserIndexes
from memoranda.search.tool import SessionSearchTool
from memoranda.upkeep.forgetting.sessions import delete_sessions
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

_TOPICS = ("heron port", "otter lease", "badger quota", "which port did the heron have?", '"the otter"', "vole")
_USERS = ("ann", "bob", "cid", None)


def _fill(db: SessionDB) -> None:
    """Four users who talk about the same things, interleaved."""
    for number in range(24):
        user, name = _USERS[number % 4], f"s{number}"
        db.create_session(name, "cli", user_id=user, started_at=1e9 + number, title=f"Talk {number} of {user}")
        for step in range(1 + number % 5):
            text = f"{user}: the {('heron', 'otter', 'badger')[(number + step) % 3]} has {_TOPICS[step % 3]} {number}"
            db.append_message(name, ("user", "assistant")[step % 2], text, timestamp=1e9 + 100 * number + step)


@pytest.fixture
def db(postgres_url: str, tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(postgres_url, index_directory=tmp_path / "node", user_index_mb=100) as opened:
        _fill(opened)
        yield opened


def _answers(db: SessionDB, user: str | None) -> list[Any]:
    own = db.scoped(Scope.of(user))
    return [SessionSearchTool(lambda: own).call({"query": query, "limit": 10}) for query in _TOPICS]


def _directory(db: SessionDB) -> Path:
    return db._store_index.users()._directory


def _bytes(directory: Path) -> bytes:
    found = b""
    for file in sorted(directory.iterdir()):
        # A thread may replace the position that it has followed.
        with suppress(FileNotFoundError):
            found += file.read_bytes()
    return found


def _names(directory: Path) -> set[str]:
    return {file.name[:40] for file in directory.glob("*.index.db.*")}


def test_a_user_gets_the_answers_of_a_store_without_the_others(
    db: SessionDB, postgres_url: str, tmp_path: Path
) -> None:
    """Whole answers, with ids, excerpts and confidence; no index of all users is built for them."""
    found = _answers(db, "ann")
    assert sum(answer["count"] for answer in found) > 10
    assert [file.name[:40] for file in _directory(db).iterdir() if file.name[-1].isdigit()] == [user_name("ann")]
    assert not db.index.files
    db.delete_sessions([f"s{number}" for number in range(24) if _USERS[number % 4] != "ann"])
    with SessionDB(postgres_url, index_directory=tmp_path / "other") as alone:
        alone.index.catch_up()
        assert _answers(alone, "ann") == found


def _assert_found(db: SessionDB, query: str, expected: list[str]) -> None:
    """The sessions that a query finds; a writer of another test on the same server may hold the index back for long."""
    wait_until(lambda: [hit.session_id for hit in db.find(query, _filters(db), limit=5).hits] == expected)


@pytest.mark.smoke
def test_an_index_follows_its_user_only(db: SessionDB) -> None:
    """New messages, titles, deleted sessions; and sessions that were given to another user."""
    ann, bob = (db.scoped(Scope.of(user)) for user in ("ann", "bob"))
    for view in (ann, bob):
        assert view.find("heron", _filters(view), limit=5).hits
    ann.append_message("s0", "user", "a wombat arrived")
    bob.append_message("s1", "user", "a wombat left")
    _assert_found(ann, "wombat", ["s0"])
    _assert_found(bob, "wombat", ["s1"])
    db.set_session_title("s4", "About quokkas")
    _assert_found(ann, "quokkas", ["s4"])
    # Nothing in the feed of a user says that a session was deleted, and other users change things, too.
    db.delete_session("s0")
    db.set_session_title("s1", "Something else")
    _assert_found(ann, "wombat", [])
    with db.engine.writing() as connection:
        connection.execute("UPDATE sessions SET user_id = 'bob' WHERE id = 's4'")
        connection.execute("INSERT INTO changes (session_id, from_message) VALUES ('s4', NULL)")
    _assert_found(ann, "quokkas", [])
    _assert_found(bob, "quokkas", ["s4"])


def test_an_append_opens_no_index(db: SessionDB) -> None:
    """Before the first search; after it, a thread indexes what the user says next."""
    ann = db.scoped(Scope.of("ann"))
    ann.append_message("s0", "user", "a wombat arrived")
    assert not db._store_index._users
    _assert_found(ann, "wombat", ["s0"])
    message_id = ann.append_message("s4", "user", "and left")
    wait_until(lambda: ann.index.state().indexed.row >= message_id)


def test_a_deleted_session_is_not_found_while_another_thread_writes_the_index(db: SessionDB) -> None:
    """The file still has it, and the search cannot change the file."""
    ann = db.scoped(Scope.of("ann"))
    ann.append_message("s0", "user", "a wombat arrived")
    assert ann.find("wombat", _filters(ann), limit=5).hits
    locked, done = threading.Event(), threading.Event()

    def write() -> None:
        with ann.index._lock:
            locked.set()
            done.wait(GIVE_UP)

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        assert locked.wait(GIVE_UP)
        db.delete_session("s0")
        found = ann.find("wombat", _filters(ann), limit=5)
        done.set()
        writing.result(GIVE_UP)
    assert not found.hits


def _filters(db: SessionDB) -> Any:
    from memoranda.search.index.postings import Filters

    return Filters(db.scope)


def test_forgotten_words_are_in_no_byte_of_an_index(db: SessionDB, tmp_path: Path) -> None:
    """Whether one user deletes a session, an operator redacts a message, or the text is forgotten for everyone."""
    ann = db.scoped(Scope.of("ann"))
    ann.append_message("s0", "user", "my secret is zorblatt")
    one = ann.append_message("s4", "user", "and quixnorf")
    two = ann.append_message("s8", "user", "and plimforth")
    _answers(db, "ann")
    _answers(db, "bob")
    directory = _directory(db)
    assert all(word in _bytes(directory) for word in (b"zorblatt", b"quixnorf", b"plimforth"))
    delete_sessions(ann, tmp_path, ["s0"])
    assert b"zorblatt" not in _bytes(directory)
    ann.redact_message(one)
    assert b"quixnorf" not in _bytes(directory)
    db.redact_message(two)
    assert b"plimforth" not in _bytes(directory)
    assert not ann.find("quixnorf", _filters(ann), limit=5).hits
    assert ann.find("heron", _filters(ann), limit=5).hits


def test_an_evicted_index_has_none_of_its_bytes_left_and_is_built_again(db: SessionDB) -> None:
    """The user who was searched for longest ago comes first, also if a thread of this process has the file open."""
    expected = {user: _answers(db, user) for user in _USERS}
    directory, indexes = _directory(db), db._store_index.users()
    # The threads would use the files.
    indexes.follower.close()
    db._store_index._upkeep_follower.close()
    for age, user in enumerate(("cid", "ann", None, "bob")):
        for file in directory.glob(f"{user_name(user)}*"):
            os.utime(file, (1e9 - age, 1e9 - age))
    sizes = {user: sum(f.stat().st_size for f in directory.glob(f"{user_name(user)}*")) for user in _USERS}
    indexes._max_bytes = int((sizes["cid"] + sizes["ann"]) / 0.85)
    ann = db.scoped(Scope.of("ann"))
    with ann.index.reading() as reader:
        assert indexes.evict() == 2
        assert _names(directory) == {user_name("cid"), user_name("ann")}
        indexes._max_bytes = 1
        assert indexes.evict() == 2
        assert reader.size().messages > 0
    assert not _names(directory)
    indexes._max_bytes = 10**9
    assert {user: _answers(db, user) for user in _USERS} == expected


def test_searches_of_many_threads_survive_evictions(db: SessionDB, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is complete, although the files are deleted meanwhile, and few of them are open at a time."""
    monkeypatch.setattr(user_indexes, "_MAX_OPEN", 2)
    expected = {user: [row["session_id"] for row in _answers(db, user)[0]["results"]] for user in _USERS}
    stop, indexes = threading.Event(), db._store_index.users()

    def evict() -> None:
        other = UserIndexes(_directory(db), db.engine, 1)
        while not stop.wait(0.01):
            other.evict()

    def search(user: str | None) -> None:
        own = db.scoped(Scope.of(user))
        for _ in range(4):
            found = SessionSearchTool(lambda: own).call({"query": _TOPICS[0], "limit": 10})
            assert [row["session_id"] for row in found["results"]] == expected[user]

    with ThreadPoolExecutor(5) as threads:
        evicting = threads.submit(evict)
        searching = [threads.submit(search, user) for user in _USERS]
        for each in searching:
            each.result(GIVE_UP)
        stop.set()
        evicting.result(GIVE_UP)
    assert len(indexes._opened) <= 2


def test_a_killed_build_is_completed_by_the_next_search(postgres_url: str, tmp_path: Path) -> None:
    """Killed at any moment, the file is either continued or replaced, and the answer is that of a whole index."""
    script = """
import sys
from pathlib import Path
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.index import search_index
search_index.BATCH = 50
db = SessionDB(sys.argv[1], index_directory=Path(sys.argv[2]), user_index_mb=100).scoped(Scope.of("ann"))
print("ready", flush=True)
db.index.catch_up(limit=10_000)
print("done", flush=True)
"""
    with SessionDB(postgres_url, index_directory=tmp_path / "whole", user_index_mb=100) as db:
        for number in range(40):
            db.create_session(f"s{number}", "cli", user_id="ann", started_at=1e9 + number)
            db.append_messages(
                f"s{number}",
                [
                    {"role": "user", "content": f"the heron {step} of {number}", "timestamp": 1e9 + 100 * number + step}
                    for step in range(25)
                ],
            )
        expected = _answers(db, "ann")
    for attempt in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", script, postgres_url, str(tmp_path / "node")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with SessionDB(postgres_url, index_directory=tmp_path / "node", user_index_mb=100) as db:
        assert _answers(db, "ann") == expected
        assert db.scoped(Scope.of("ann")).index.state().complete


def test_the_thread_builds_the_index_of_a_user_with_many_messages(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search does not wait for it: it reads the record, says so, and the next one finds the whole index."""
    monkeypatch.setattr(user_indexes, "MAX_BUILD", 0)
    monkeypatch.setattr("memoranda.search.index.unindexed_scan.MAX_READ_ALL", 0)
    ann = db.scoped(Scope.of("ann"))
    first = ann.find("heron", _filters(ann), limit=5)
    assert first.hits and first.note and "0 % of the messages are indexed" in first.note
    wait_until(lambda: ann.index.state().complete)
    assert ann.find("heron", _filters(ann), limit=5).note is None


def test_what_killed_processes_left_is_removed(db: SessionDB) -> None:
    """A log without its database, and a build that was abandoned; nothing else in the directory."""
    _answers(db, "ann")
    directory = _directory(db)
    name = f"{user_name('eve')}.index.db.17"
    left = [directory / f"{name}-wal", directory / f"{name}-shm", directory / f"{name}.building"]
    for file in (*left, directory / "notes.txt"):
        file.write_text("words")
        os.utime(file, (1e9, 1e9))
    db._store_index.users().purge("ann")
    assert not any(file.exists() for file in left)
    assert (directory / "notes.txt").exists()
    assert db._store_index.users().exists("ann")
