"""Jobs that the outbox cannot take are spooled, and loaded by the next process that can write it: nothing is lost."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import CorruptStoreError, StorageError
from memoranda.external.checks import check_outbox
from memoranda.external.delivery import ProviderQueue
from memoranda.external.outbox import spool
from memoranda.external.outbox.jobs import Backlog, NewJob
from memoranda.external.outbox.outbox import Outbox
from tests.api.test_turn import _locked
from tests.conftest import mode
from tests.external.diary import diary_home, told, told_in_time
from tests.external.samples import InMemory, managed
from tests.timing import GIVE_UP, wait_until

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


def _new(text: str, session_id: str = "s", key: str = "") -> NewJob:
    return NewJob("turn", session_id, {"text": text}, {}, key or text)


def _files(home: Path) -> list[str]:
    return sorted(path.name for path in (home / spool.DIRECTORY).glob("*"))


def _delivered(outbox: Outbox, provider: str = "p", scope: str = "") -> list[str]:
    texts = []
    while (job := outbox.claim(provider, scope)) is not None:
        texts.append(job.args["text"])
        outbox.delivered(job)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("used", ["before", "never"])
@pytest.mark.parametrize("how", ["ended", "killed"])
def test_a_process_that_never_reached_the_outbox_loses_nothing(tmp_path: Path, how: str, used: str) -> None:
    """The next one tells the turn, what was written and that the session is over, once, in this order and no more."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session(session_id="s0") as session:
        session.turn("Long ago?").done("Yes.")
    if used == "never":
        # The position in the record is lost.
        (home / "outbox.db").unlink()
        Outbox(home).put("another", "turn", "s", {}, {})
    before = told_in_time(home, ["end", 2])
    with _locked(home):
        process = subprocess.run([sys.executable, "-c", _SESSION, str(home), how], check=False, timeout=GIVE_UP)
    assert process.returncode == (0 if how == "ended" else -signal.SIGKILL)
    assert told(home) == before
    expected: list[list[Any]] = [TURN, WRITE, *([["end", 2]] if how == "ended" else [])]
    with memoranda.open(home) as memory, memory.session(session_id="s2"):
        told_in_time(home, TURN, WRITE)
        if how == "ended":
            wait_until(lambda: told(home)[-1] == ["end", 2])
    assert told(home) == [*before, *expected]
    assert _files(home) == []


@pytest.mark.slow
def test_what_is_written_outside_a_session_is_kept_too(tmp_path: Path) -> None:
    """In the order in which it was written."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory:
        Outbox(home).put("another", "turn", "s", {}, {})
        with _locked(home):
            assert memory.remember("First.")["success"]
        assert len(_files(home)) == 1
        assert memory.remember("Second.")["success"]
        assert _files(home) == []
        with memory.session():
            told_in_time(home, ["write", "add", "memory", "Second.", None])
    assert [line[3] for line in told(home)] == ["First.", "Second."]


@pytest.mark.slow
def test_a_session_loads_what_it_spooled_as_soon_as_it_can(tmp_path: Path) -> None:
    """By itself, in order, and before what comes after it; meanwhile it counts as waiting."""
    provider = InMemory()
    manager = managed(tmp_path, provider)
    assert manager.notify.turn_finished("0", "a")
    assert manager.drain(GIVE_UP)
    with _locked(tmp_path):
        assert manager.notify.memory_written("add", "memory", "1")
        assert manager.notify.memory_written("add", "memory", "2")
        assert len(_files(tmp_path)) == 2
        assert manager.backlog().waiting == 2
        assert not manager.drain(0.1)
    assert manager.notify.memory_written("add", "memory", "3")
    assert manager.drain(10)
    assert [each[3] for each in provider.told] == ["a", "1", "2", "3"]
    assert manager.shutdown()


def test_files_are_private_and_for_one_provider_and_user(tmp_path: Path) -> None:
    """What one user said is not taken in for another."""
    outbox = Outbox(tmp_path)
    for provider, scope in (("p", ""), ("p", "ana"), ("q", "")):
        outbox.spool(provider, scope, _new(f"{provider}{scope}"))
    assert {mode(path) for path in (tmp_path / spool.DIRECTORY).iterdir()} == {0o600}
    assert mode(tmp_path / spool.DIRECTORY) == 0o700
    assert [outbox.backlog(*whose).waiting for whose in ((), ("p",), ("p", "ana"), ("r",))] == [3, 2, 1, 0]
    assert outbox.claim("p", "ana") is None
    outbox.load_spooled("p", "ana")
    assert _delivered(outbox, scope="ana") == ["pana"]
    assert outbox.backlog() == Backlog(waiting=2)
    assert outbox.has_spooled("p") and not outbox.has_spooled("p", "ana")


def test_a_file_that_was_loaded_and_not_removed_is_queued_once(tmp_path: Path) -> None:
    """As after a kill between the two."""
    outbox = Outbox(tmp_path)
    outbox.spool("p", "", _new("x"))
    (file,) = (tmp_path / spool.DIRECTORY).iterdir()
    content = file.read_bytes()
    outbox.load_spooled("p")
    file.write_bytes(content)
    outbox.load_spooled("p")
    assert _files(tmp_path) == []
    assert _delivered(outbox) == ["x"]


def test_what_a_living_process_spooled_is_for_it_to_deliver(tmp_path: Path) -> None:
    """Whichever process loads it; a job without a lease is for the first that claims it."""
    first, second = Outbox(tmp_path), Outbox(tmp_path)
    first.spool("p", "", _new("held", "a"))
    first.spool("p", "", _new("free", "b"), leased=False)
    second.load_spooled("p")
    assert _delivered(second) == ["free"]
    assert _delivered(first) == ["held"]


def _load_spooled(home: str, start: Any) -> None:
    with closing(Outbox(Path(home))) as outbox:
        start.wait()
        outbox.load_spooled("p")


@pytest.mark.slow
def test_several_that_load_the_spool_at_once_queue_everything_once(tmp_path: Path) -> None:
    """Two hundred things, four processes."""
    outbox = Outbox(tmp_path)
    outbox.put("another", "turn", "s", {}, {})
    for number in range(200):
        outbox.spool("p", "", _new(f"{number:03}"), leased=False)
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    processes = [context.Process(target=_load_spooled, args=(str(tmp_path), start)) for _ in range(4)]
    for process in processes:
        process.start()
    start.set()
    for process in processes:
        process.join(GIVE_UP)
    assert [process.exitcode for process in processes] == [0] * 4
    delivered = _delivered(outbox)
    assert Counter(delivered).most_common(1)[0][1] == 1
    assert delivered == [f"{number:03}" for number in range(200)]


def test_a_file_that_cannot_be_read_blocks_nothing_and_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said in the log, once, and by the doctor."""
    outbox = Outbox(tmp_path)
    for text in ("x", "y", "z"):
        outbox.spool("p", "", _new(text))
    first, second, _ = sorted((tmp_path / spool.DIRECTORY).iterdir())
    first.write_text("{")
    second.write_text(json.dumps({"unknown": 1}))
    outbox.load_spooled("p")
    assert _delivered(outbox) == ["z"]
    assert not outbox.has_spooled("p")
    assert _files(tmp_path) == [f"{first.name}.unreadable", f"{second.name}.unreadable"]
    assert caplog.text.count("cannot be read and is skipped") == 2
    assert [finding.path.name for finding in check_outbox(tmp_path, ("p",))] == _files(tmp_path)


def test_what_not_even_the_disk_takes_waits_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what comes after it waits behind it, until the outbox can be written."""

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    Outbox(tmp_path).put("another", "turn", "s", {}, {})
    queue = ProviderQueue(Outbox(tmp_path, wait=0.05), lambda text: text)
    queue.provider = "p"
    with _locked(tmp_path):
        assert queue.put(_new("1"))
        with monkeypatch.context() as patch:
            patch.setattr(spool, "write_private", full)
            assert not queue.put(_new("2"))
        assert not queue.put(_new("3"))
    assert (queue.unsaved, queue.flushed, len(_files(tmp_path))) == (2, False, 1)
    queue.flush()
    assert (queue.unsaved, queue.flushed) == (0, True)
    assert _delivered(queue.outbox) == ["1", "2", "3"]


def test_what_cannot_be_written_as_json_blocks_nothing(tmp_path: Path) -> None:
    """It is refused, and what comes after it is queued."""
    itself: list[Any] = []
    itself.append(itself)
    queue = ProviderQueue(Outbox(tmp_path), lambda text: text)
    queue.provider = "p"
    with pytest.raises((StorageError, RecursionError)):
        queue.put(NewJob("turn", "s", {"text": itself}, {}))
    assert queue.put(_new("x"))
    assert _delivered(queue.outbox) == ["x"]


def test_a_damaged_outbox_is_said_and_loses_nothing(tmp_path: Path) -> None:
    """What comes while it is damaged is there when it has been repaired."""
    (tmp_path / "outbox.db").write_bytes(b"no database" * 100)
    queue = ProviderQueue(Outbox(tmp_path), lambda text: text)
    queue.provider = "p"
    with pytest.raises(CorruptStoreError):
        queue.put(_new("x"))
    (tmp_path / "outbox.db").unlink()
    queue.flush()
    assert _delivered(queue.outbox) == ["x"]


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


@pytest.mark.slow
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
