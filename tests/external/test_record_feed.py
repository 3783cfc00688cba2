"""What providers are to receive is in the record, and the outbox reads it from there: nothing is lost, each once."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import StorageError
from memoranda.external.delivery import ProviderQueue
from memoranda.external.outbox.jobs import NewJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.recorded_turns import TurnMarks
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.support.home import Home
from tests.api.test_turn import _locked
from tests.external.diary import diary_home, told, told_in_time
from tests.external.samples import InMemory, managed
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

_SESSION = """
import os, signal, sys
import memoranda

memory = memoranda.open(sys.argv[1])
session = memory.session(session_id="s1")
session.turn("How late is it?").done("Four.")
assert session.remember("Tea at four.")["success"]
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
session.end()
memory.close()
"""
TURN = ["turn", "How late is it?", "Four."]
WRITE = ["write", "add", "memory", "Tea at four.", None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    with open_store(Home(tmp_path).state_db) as made:
        made.sessions.create_session("s", "test")
        yield made


def _turn(store: SessionStore, text: str, session_id: str = "s", *, provider: str = "p") -> int:
    """Record a completed turn; its first message."""
    marks = TurnMarks(lambda: store, [provider])
    begin = store.messages.append_message(session_id, "user", text, **marks.mark(None, done=False))
    store.messages.append_message(session_id, "assistant", f"{text}!", **marks.mark(begin, done=True))
    return begin


def _rest(outbox: Outbox) -> list[Any]:
    """Deliver everything; the kind of each job, and its first argument."""
    found = []
    while (job := outbox.claim("p")) is not None:
        found.append((job.kind, next(iter(job.args.values()))))
        outbox.delivered(job)
    return found


def test_several_turns_are_one_delivery_where_a_provider_wants_that(tmp_path: Path, store: SessionStore) -> None:
    """Fewer turns stay after the position until there are enough, something follows them, or the session ends."""
    with closing(Outbox(tmp_path)) as outbox:
        for number in range(5):
            _turn(store, f"turn {number}")
            outbox.catch_up("p", together=3, hold=True)
        assert _rest(outbox) == [("turn", "turn 0\n\nturn 1\n\nturn 2")]
        # As another process does after this one was killed.
        outbox.catch_up("p", together=3)
        assert _rest(outbox) == [("turn", "turn 3\n\nturn 4")]
        _turn(store, "turn 5")
        assert (outbox.catch_up("p", together=3, hold=True), _rest(outbox)) == (0, [])
        outbox.put("p", "session_end", "s", {"messages": []}, {})
        assert [kind for kind, _ in _rest(outbox)] == ["turn", "session_end"]


def test_a_turn_that_is_taken_back_leaves_the_others_of_its_delivery(tmp_path: Path, store: SessionStore) -> None:
    """Each turn is read when it is delivered, with its own messages; turns of other sessions are not between them."""
    store.sessions.create_session("other", "test")
    with closing(Outbox(tmp_path)) as outbox:
        begins = []
        for number in range(4):
            begins.append(_turn(store, f"turn {number}"))
            _turn(store, f"other {number}", "other", provider="another")
        outbox.catch_up("p", together=10)
        store.edits.rewind_to_message("s", begins[3])
        job = outbox.claim("p")
        assert job is not None and job.args["user_content"] == "turn 0\n\nturn 1\n\nturn 2"
        assert [message["content"] for message in job.facts["messages"]][-2:] == ["turn 2", "turn 2!"]
        assert job.key == f"turn:s:{begins[0]}-{begins[3] + 1}"


def test_turns_that_are_queued_together_keep_their_times(tmp_path: Path, store: SessionStore) -> None:
    """A vendor that knows an earlier attempt only by its time would take the second turn for the first."""
    for number in range(3):
        _turn(store, f"turn {number}")
    said = [message["timestamp"] for message in store.messages.get_messages("s") if message["role"] == "assistant"]
    with closing(Outbox(tmp_path)) as outbox:
        assert outbox.catch_up("p") == 3
        assert [job.created for job in outbox.list_jobs("", 10)] == said and len(set(said)) == 3


@pytest.mark.parametrize("used", ["before", "never"])
@pytest.mark.parametrize("how", ["ended", "killed"])
def test_a_process_that_never_reached_the_outbox_loses_nothing(tmp_path: Path, how: str, used: str) -> None:
    """The next one tells the turn, what was written and that the session is over, once, in this order and no more."""
    home = diary_home(tmp_path)
    before: list[list[Any]] = []
    if used == "before":
        with memoranda.open(home) as memory, memory.session(session_id="s0") as session:
            session.turn("Long ago?").done("Yes.")
        before = told_in_time(home, ["end", 2])
    else:
        Outbox(home).put("another", "turn", "s", {}, {})
    with _locked(home):
        process = subprocess.run([sys.executable, "-c", _SESSION, str(home), how], check=False, timeout=GIVE_UP)
    assert process.returncode == (0 if how == "ended" else -signal.SIGKILL)
    assert told(home) == before
    expected: list[list[Any]] = [TURN, WRITE, *([["end", 2]] if how == "ended" else [])]
    with memoranda.open(home) as memory, memory.session(session_id="s2"):
        wait_until(lambda: len(told(home)) >= len(before) + len(expected))
    assert told(home) == [*before, *expected]


def test_what_is_written_outside_a_session_waits_in_the_record(tmp_path: Path) -> None:
    """Also while the outbox is locked, in the order in which it was written."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory:
        Outbox(home).put("another", "turn", "s", {}, {})
        with _locked(home):
            assert memory.remember("First.")["success"]
        assert memory.remember("Second.")["success"]
        with closing(Outbox(home)) as outbox:
            assert outbox.backlog("diary").waiting == 2
        with memory.session():
            told_in_time(home, ["write", "add", "memory", "Second.", None])
    assert [line[3] for line in told(home)] == ["First.", "Second."]
    with closing(sqlite3.connect(home / "state.db")) as connection:
        assert connection.execute("SELECT provider FROM notifications").fetchall() == [("another",)]


def test_a_session_delivers_what_it_recorded_as_soon_as_it_can(tmp_path: Path) -> None:
    """By itself, in order, and before what comes after it."""
    provider = InMemory()
    manager = managed(tmp_path, provider)
    assert manager.sync_all("0", "a")
    assert manager.drain(GIVE_UP)
    with _locked(tmp_path):
        assert manager.on_memory_write("add", "memory", "1")
        assert manager.on_memory_write("add", "memory", "2")
        assert not manager.drain(0.1)
    assert manager.on_memory_write("add", "memory", "3")
    assert manager.drain(10)
    assert [each[3] for each in provider.told] == ["a", "1", "2", "3"]
    assert manager.shutdown_all()


def test_a_provider_that_was_away_gets_each_turn_once_in_order(tmp_path: Path, store: SessionStore) -> None:
    """A thousand turns of two conversations, read in one step."""
    store.sessions.create_session("t", "test")
    expected: dict[str, list[str]] = {"s": [], "t": []}
    for number in range(1_000):
        session_id = "st"[number % 2]
        _turn(store, f"{number}", session_id)
        expected[session_id].append(f"{number}")
    with closing(Outbox(tmp_path)) as outbox:
        assert outbox.catch_up("p") == 1_000
        received: dict[str, list[str]] = {"s": [], "t": []}
        while (job := outbox.claim("p")) is not None:
            received[job.session_id].append(job.args["user_content"])
            outbox.delivered(job)
        assert outbox.catch_up("p") == 0
    assert received == expected


def test_a_lost_outbox_loses_no_delivery(tmp_path: Path, store: SessionStore) -> None:
    """What waited in it is read from the record again, and what was delivered comes again with its key."""
    _turn(store, "delivered")
    with closing(Outbox(tmp_path)) as outbox:
        outbox.catch_up("p")
        assert _rest(outbox) == [("turn", "delivered")]
        _turn(store, "waiting")
        outbox.put("p", "memory_write", "s", {"content": "written"}, {}, leased=False)
        assert outbox.backlog("p").waiting == 2
    (tmp_path / "home.db").unlink()
    with closing(Outbox(tmp_path)) as outbox:
        outbox.catch_up("p")
        assert _rest(outbox) == [("turn", "delivered"), ("turn", "waiting"), ("memory_write", "written")]


def test_turns_and_notifications_keep_their_order(tmp_path: Path, store: SessionStore) -> None:
    """Although they are rows of two tables, and the end of a session has the messages of that moment."""
    with closing(Outbox(tmp_path)) as outbox:
        outbox.record("p", "", NewJob("session_switch", "s", {"new_session_id": "s"}, {}, "1"))
        _turn(store, "first")
        outbox.record("p", "", NewJob("memory_write", "s", {"content": "note"}, {}, "2"))
        _turn(store, "second")
        outbox.record("p", "", NewJob("session_end", "s", {}, {}, "3"))
        _turn(store, "third")
        assert outbox.catch_up("p") == 6
        kinds = _rest(outbox)
    assert [kind for kind, _ in kinds] == ["session_switch", "turn", "memory_write", "turn", "session_end", "turn"]
    assert [message["content"] for message in kinds[4][1]] == ["first", "first!", "second", "second!"]


def test_what_was_taken_back_or_forgotten_is_not_delivered(tmp_path: Path, store: SessionStore) -> None:
    """Although it was in the outbox already; the rest of its session is."""
    store.sessions.create_session("t", "test")
    with closing(Outbox(tmp_path)) as outbox:
        _turn(store, "kept")
        undone = _turn(store, "undone")
        _turn(store, "deleted", "t")
        outbox.put("p", "session_end", "t", {}, {})
        assert outbox.backlog("p").waiting == 4
        store.edits.rewind_to_message("s", undone)
        store.deletion.delete_session("t")
        assert _rest(outbox) == [("turn", "kept")]
        assert not outbox.backlog()


def test_a_notification_that_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    """A value that contains itself; what comes after it is recorded."""
    itself: list[Any] = []
    itself.append(itself)
    queue = ProviderQueue(Outbox(tmp_path), lambda text: text)
    queue.provider = "p"
    with pytest.raises((StorageError, RecursionError)):
        queue.put(NewJob("turn", "s", {"text": itself}, {}))
    queue.put(NewJob("turn", "s", {"text": "x"}, {}))
    assert not queue.flushed
    queue.flush()
    assert queue.flushed
    assert _rest(queue.outbox) == [("turn", "x")]


def test_credentials_reach_neither_the_record_nor_a_provider(tmp_path: Path) -> None:
    """The result of a delegate is text like any other."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session() as session:
        session.external.delegated(f"Use {token}", "Done.")
        wait_until(lambda: bool(told(home)))
    assert token not in str(told(home)) and told(home)[0][2] == "Done."
    assert token.encode() not in b"".join(path.read_bytes() for path in home.glob("*.db*"))


_HOLD = """
import sys, time
from pathlib import Path
from memoranda.external.outbox.outbox import Outbox
outbox = Outbox(Path(sys.argv[1]))
outbox.put("p", "turn", "s", {"text": "x"}, {})
assert outbox.claim("p") is not None
print("held", flush=True)
time.sleep(200)
"""


def test_what_a_killed_process_held_is_free_at_once(tmp_path: Path) -> None:
    """Not after half a minute; while it lives no other process gets it."""
    outbox = Outbox(tmp_path)
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert outbox.claim("p") is None
        assert (outbox.seconds_until_due("p") or 0) > 20
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: outbox.claim("p") is not None)
    job = outbox.claim("p")
    assert job is not None
    assert job.args == {"text": "x"}
