"""Many processes and threads share one index."""

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.record.store import SessionStore, open_store
from memoranda.search.index import generations, search_index
from memoranda.search.index.follower import Follower
from memoranda.search.index.search_index import SearchIndex
from tests.conftest import Strikes
from tests.examples import is_full_run
from tests.forked import forking, in_child
from tests.search.index.conftest import ids
from tests.timing import GIVE_UP, wait_until

_CATCH_UP = """
import sys
from pathlib import Path
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.index import search_index
from memoranda.memory.record.store import SessionStore, open_store
search_index.BATCH = 7
home = Path(sys.argv[1])
index = SearchIndex(home / "index.db", open_store(home / "state.db").feed)
print("ready", flush=True)
sys.stdin.readline()
while True:
    state = index.catch_up(limit=7)
    if state.complete and state.problem is None:
        break
"""


def _start(home: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", _CATCH_UP, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    return child


def _go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def _fill(sessions: SessionStore, count: int) -> list[int]:
    made: list[int] = []
    for name in range(count // 50):
        sessions.sessions.create_session(f"s{name}", "cli", title=f"Badger {name}")
        made += sessions.messages.append_messages(
            f"s{name}", [{"role": "user", "content": f"badger n{n} 数据库 in getBadgerName"} for n in range(50)]
        )
    return made


def _whole(home: Path, sessions: SessionStore, made: list[int]) -> None:
    """Each message is indexed exactly once, whatever the counters say, and they say the same."""
    index = SearchIndex(home / "index.db", sessions.feed)
    assert sorted(ids(index, "badger")) == sorted(made + [0] * (len(made) // 50))
    assert sorted(ids(index, "数据库")) == made
    with index.reading() as reader:
        assert reader.size()[:2] == (len(made), len(made) // 50)
    (file,) = index.files
    index.close()
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*), count(DISTINCT message) FROM docs WHERE message > 0").fetchone() == (
        len(made),
        len(made),
    )
    assert connection.execute("SELECT count(*) FROM dead").fetchone() == (0,)
    connection.close()


@pytest.mark.slow
def test_processes_that_catch_up_at_once_index_each_message_once(tmp_path: Path, sessions: SessionStore) -> None:
    """They take turns, and none does what another has done."""
    made = _fill(sessions, 400)
    children = [_start(tmp_path) for _ in range(3)]
    for child in children:
        _go(child)
    for child in children:
        child.communicate(timeout=GIVE_UP)
        assert child.returncode == 0
    _whole(tmp_path, sessions, made)


def _catch_up_until(home: Path, statement: int) -> None:
    """Catch up in small steps, and be killed at a certain statement to the index."""
    left = itertools.count(statement - 1, -1)
    connect = generations.connect

    def connect_watched(*arguments: Any) -> sqlite3.Connection:
        connection = connect(*arguments)
        connection.set_trace_callback(lambda _: None if next(left) else os.kill(os.getpid(), signal.SIGKILL))
        return connection

    generations.connect = connect_watched  # type: ignore[assignment]
    search_index.BATCH = 7
    index = SearchIndex(home / "index.db", open_store(home / "state.db").feed)
    while not index.catch_up(limit=7).complete:
        pass


@pytest.mark.slow
@forking
def test_a_process_killed_while_it_catches_up_leaves_a_whole_index(tmp_path: Path, sessions: SessionStore) -> None:
    """At whatever statement: rows and cursor move together, so the next one continues in the same file.

    Every fourth is tried, and all of them in a full run.
    """
    made = _fill(sessions, 1_000)
    with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
        index.catch_up(limit=1)
    files = index.files
    # A child refuses what its parent has open.
    sessions.close()
    for statement in range(1, 100, 1 if is_full_run() else 4):
        assert in_child(partial(_catch_up_until, tmp_path, statement)) == -signal.SIGKILL
    with open_store(tmp_path / "state.db") as opened:
        _whole(tmp_path, opened, made)
    assert index.files == files


@pytest.mark.slow
def test_threads_search_while_others_append_and_compact(tmp_path: Path, sessions: SessionStore) -> None:
    """Every search finds what was acknowledged before it began."""
    sessions.sessions.create_session("s", "cli")
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    acknowledged: list[int] = []
    done = threading.Event()
    failures: list[str] = []

    def append() -> None:
        while not done.is_set():
            acknowledged.append(sessions.messages.append_message("s", "user", "an otter"))

    def search() -> None:
        while not done.is_set():
            before = list(acknowledged)
            found = set(ids(index, "otters"))
            if not found.issuperset(before):
                failures.append(f"{set(before) - found} were not found")

    def compact() -> None:
        while not done.wait(0.1):
            index.compact()

    threads = [threading.Thread(target=work) for work in (append, search, search, compact)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ids(index, "otter") == acknowledged[::-1]
    index.close()


def _wait_for(index: SearchIndex, message: int) -> None:
    wait_until(lambda: index.state().indexed.count >= message)


def _followers() -> set[threading.Thread]:
    """Those of other tests in this process may not have been closed."""
    return {thread for thread in threading.enumerate() if thread.name == "memoranda-index"}


def test_a_follower_indexes_in_the_background(sessions: SessionStore, index: SearchIndex) -> None:
    """It starts with the first nudge, and runs until it is closed."""
    before = _followers()
    follower = Follower(lambda: index)
    sessions.sessions.create_session("s", "cli")
    for _ in range(2):
        made = sessions.messages.append_message("s", "user", "newt")
        follower.nudge()
        _wait_for(index, made)
    follower.close()
    assert _followers() <= before
    follower.nudge()
    assert _followers() <= before


def test_a_follower_that_was_never_nudged_closes(index: SearchIndex) -> None:
    """There is no thread to stop."""
    before = _followers()
    follower = Follower(lambda: index)
    assert _followers() <= before
    follower.close()
    follower.nudge()
    assert _followers() <= before


def test_a_follower_closes_quickly(sessions: SessionStore, index: SearchIndex) -> None:
    """Even while it waits for more to gather."""
    follower = Follower(lambda: index)
    follower.nudge()
    before = time.monotonic()
    follower.close()
    assert time.monotonic() - before < GIVE_UP


def test_a_follower_outlives_trouble(
    sessions: SessionStore, index: SearchIndex, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error is logged, and the next nudge tries again."""
    monkeypatch.setattr("memoranda.search.index.follower._PAUSE_AFTER_PROBLEM", 0.01)
    monkeypatch.setattr("memoranda.search.index.follower.GATHER", 0.01)
    troubles = [OSError("trouble")]
    honest = index.catch_up

    def catch_up(*, limit: int | None = None) -> object:
        if troubles:
            raise troubles.pop()
        return honest(limit=limit)

    monkeypatch.setattr(index, "catch_up", catch_up)
    follower = Follower(lambda: index)
    sessions.sessions.create_session("s", "cli")
    made = sessions.messages.append_message("s", "user", "newt")
    follower.nudge()
    while troubles:
        time.sleep(0.01)
    follower.nudge()
    _wait_for(index, made)
    follower.close()
    assert "could not follow" in caplog.text


_REPLACE_THE_FILE = """
import sys, threading
from pathlib import Path
from memoranda.search.index import search_index
from memoranda.search.index.postings import Filters, Word
from memoranda.search.index.search_index import SearchIndex
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store
home = Path(sys.argv[1])
index = SearchIndex(home / "index.db", open_store(home / "state.db").feed)
other = SearchIndex(home / "index.db", open_store(home / "state.db").feed)
index.catch_up()
sys.setswitchinterval(1e-6)
search_index._LOCK_TIMEOUT = 0.0
stop = threading.Event()
def search():
    with index.reading() as reader:
        assert len(reader.postings(Word("badger"), Filters(Scope.everyone()), 10)) == 10
def repeat(action):
    while not stop.is_set():
        action()
threads = [threading.Thread(target=repeat, args=(action,)) for action in (index.check, search, search)]
for thread in threads:
    thread.start()
for n in range(int(sys.argv[2])):
    other.compact()
    index.catch_up()
stop.set()
for thread in threads:
    thread.join()
print("done")
"""


@pytest.mark.slow
def test_threads_survive_that_the_file_is_replaced(tmp_path: Path, strikes: Strikes) -> None:
    """No thread closes a connection that another one uses, which would crash the process."""
    with open_store(tmp_path / "state.db") as sessions:
        _fill(sessions, 50)
    child = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _REPLACE_THE_FILE, str(tmp_path), str(strikes(200))],
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert (child.returncode, child.stdout) == (0, "done\n"), child.stderr
