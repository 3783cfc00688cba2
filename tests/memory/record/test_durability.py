"""What was acknowledged survives kill -9 and many writers, in order; no caller waits for ever."""

import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from memoranda.errors import LockTimeoutError
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.sqlite.engine import SqliteEngine
from tests.conftest import Strikes
from tests.forked import Forked, Say, forking
from tests.memory.record.conftest import ask
from tests.timing import GIVE_UP, HANG

_APPEND_MANY = """
import sys
from memoranda.memory.record.store import SessionStore, open_store
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open_store(path, wait=60) as store:
    store.sessions.create_session(f"own {name}", "cli")
    store.sessions.create_session("shared", "cli")
    for number in range(count):
        store.messages.append_message(f"own {name}", "user", f"{name} says {number}")
        print(store.messages.append_message("shared", "user", f"{name} says {number}"), flush=True)
"""


def _start(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _APPEND_MANY, str(path), name, str(count)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_eight_processes_neither_lose_nor_mix_up_messages(path: Path) -> None:
    """They open a store that does not exist yet, and append to separate sessions and to a shared one."""
    processes = [_start(path, str(number), 50) for number in range(8)]
    answers = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    with open_store(path) as store:
        shared = store.messages.get_messages("shared")
        assert sorted(row["id"] for row in shared) == sorted(int(number) for answer in answers for number in answer)
        for name in range(8):
            expected = [f"{name} says {number}" for number in range(50)]
            assert [row["content"] for row in store.messages.get_messages(f"own {name}")] == expected
            assert [row["content"] for row in shared if row["content"].startswith(f"{name} ")] == expected
        assert store.maintenance.miscounted_sessions() == []
        assert store.maintenance.check_integrity() == []
        session = store.sessions.get_session("shared")
        assert session is not None
        assert session["message_count"] == 400


@pytest.mark.slow
def test_threads_share_a_store(store: SessionStore) -> None:
    """With readers and writers in one process, every append is stored and every read is consistent."""
    store.sessions.create_session("s", "cli")
    errors: list[BaseException] = []

    def write(name: int) -> None:
        try:
            for number in range(30):
                store.messages.append_messages("s", [{"role": "user", "content": f"{name} {number}"}] * 2)
        except BaseException as error:
            errors.append(error)
            raise

    def read() -> None:
        try:
            while any(writer.is_alive() for writer in writers):
                exported = store.messages.get_messages("s")
                assert len(exported) % 2 == 0
        except BaseException as error:
            errors.append(error)
            raise

    writers = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in [*writers, *readers]:
        thread.start()
    for thread in [*writers, *readers]:
        thread.join()
    assert errors == []
    session = store.sessions.get_session("s")
    assert session is not None
    assert session["message_count"] == len(store.messages.get_messages("s")) == 240


def _append(path: Path, name: int, say: Say) -> None:
    """Append until killed, and say "." for each message that was acknowledged."""
    store = open_store(path, wait=60)
    store.sessions.create_session(f"round {name}", "cli")
    for number in count():
        if name % 2:
            store.messages.append_message(f"round {name}", "user", f"message {number}")
        else:
            store.messages.append_messages(f"round {name}", [{"role": "user", "content": f"message {number}"}])
        say(b".")


@pytest.mark.slow
@forking
def test_many_kills_lose_no_acknowledged_message(path: Path, strikes: Strikes) -> None:
    """After each kill -9 the session has every acknowledged message in order, and at most one more."""
    chance = random.Random(5)
    open_store(path).close()
    counts: dict[int, int] = {}
    for name in range(strikes(200)):
        writer = Forked(partial(_append, path, name))
        said = writer.heard()
        time.sleep(chance.uniform(0, 0.01))
        counts[name] = len(said + writer.kill())
        if name % 20 == 19:
            with open_store(path) as store:
                assert len(store.messages.get_messages(f"round {name}")) >= counts[name]
    with open_store(path) as store:
        for name, acknowledged in counts.items():
            found = [row["content"] for row in store.messages.get_messages(f"round {name}")]
            assert found == [f"message {number}" for number in range(len(found))]
            assert acknowledged <= len(found) <= acknowledged + 1
        assert store.maintenance.miscounted_sessions() == []
        assert store.maintenance.check_integrity() == []
        store.messages.append_message("round 0", "user", "life continues")
    assert {file.name for file in path.parent.iterdir()} == {"state.db", "state.marker.json"}


def test_a_commit_is_synced(store: SessionStore) -> None:
    """In a write-ahead log with full syncing, which no writer turns off."""
    assert isinstance(store.engine, SqliteEngine)
    writer = store.engine._writer
    assert writer is not None
    assert store.maintenance.journal == "wal"
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert writer.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert writer.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    assert writer.execute("PRAGMA secure_delete").fetchone() == (1,)


@contextmanager
def _hold_lock(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_waiting_for_a_writer_is_bounded_and_loses_nothing(path: Path) -> None:
    """A clear error after the time that was given, nothing written; then everything works again."""
    with open_store(path, wait=0.3) as store:
        store.sessions.create_session("s", "cli")
        with _hold_lock(path):
            began = time.monotonic()
            with pytest.raises(LockTimeoutError, match="locked"):
                store.messages.append_message("s", "user", "refused")
            # The default is ten seconds.
            assert 0.25 < time.monotonic() - began < 9
        assert store.messages.append_message("s", "user", "taken")
        assert [row["content"] for row in store.messages.get_messages("s")] == ["taken"]
        assert store.maintenance.miscounted_sessions() == []


def test_a_write_waits_for_another_writer(path: Path) -> None:
    """The message is stored as soon as the lock is free."""
    with open_store(path, wait=20) as store:
        store.sessions.create_session("s", "cli")
        with _hold_lock(path) as other:
            thread = threading.Thread(target=store.messages.append_message, args=("s", "user", "waited"))
            thread.start()
            time.sleep(0.2)
            assert store.messages.get_messages("s") == []
            other.execute("COMMIT")
            thread.join(GIVE_UP)
        assert [row["content"] for row in store.messages.get_messages("s")] == ["waited"]


def test_readers_do_not_wait_for_a_writer(path: Path) -> None:
    """Every kind of read answers at once from the last commit, and a store can be opened."""
    with open_store(path, wait=HANG) as store:
        store.sessions.create_session("s", "cli", title="T")
        number = store.messages.append_message("s", "user", "committed")
        with _hold_lock(path) as other:
            other.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'not', 1)")
            began = time.monotonic()
            assert [row["content"] for row in store.messages.get_messages("s")] == ["committed"]
            assert len(store.listing.list_sessions_rich()) == 1
            assert store.conversations.window_around(number, 3) is not None
            assert store.titles.resolve_session_by_title("T") == "s"
            with open_store(path, wait=HANG) as second:
                assert second.messages.last_message_id() == number
            assert time.monotonic() - began < GIVE_UP


def test_writers_do_not_wait_for_a_reader(path: Path) -> None:
    """A reader in the middle of a long read sees its own state; appends continue and the log stays small."""
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM messages").fetchone()
            for number in range(20):
                store.messages.append_message("s", "user", f"{number}")
            assert reader.execute("SELECT count(*) FROM messages").fetchone() == (0,)
        assert len(store.messages.get_messages("s")) == 20


@pytest.mark.slow
def test_the_log_is_copied_back_by_itself(path: Path) -> None:
    """It does not grow with everything that is appended, and no append pays for it."""
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        for _ in range(70):
            store.messages.append_messages("s", [{"role": "user", "content": "x" * 100_000}] * 10)
        deadline = time.monotonic() + GIVE_UP
        while path.stat().st_size < 40_000_000 and time.monotonic() < deadline:
            store.messages.append_message("s", "user", "more")
        assert path.stat().st_size > 40_000_000
    assert not Path(f"{path}-wal").exists()


def test_closing_any_other_use_of_the_file_drops_no_lock(store: SessionStore, path: Path) -> None:
    """A second store on the same file in this process comes and goes while the first is writing."""
    store.sessions.create_session("s", "cli")
    with store.engine.writing() as connection:
        connection.execute("UPDATE sessions SET model = 'm'")
        with open_store(path, wait=0.1) as second:
            assert second.sessions.get_session("s") is not None
            with pytest.raises(LockTimeoutError):
                second.messages.append_message("s", "user", "x")
        # Another process must still find the lock held.
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
            "try: c.execute('BEGIN IMMEDIATE')\nexcept sqlite3.OperationalError: sys.exit(7)"
        )
        assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 7
    assert ask(path, "SELECT model FROM sessions") == [{"model": "m"}]
