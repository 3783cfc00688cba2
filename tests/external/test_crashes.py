"""Processes that die, and processes that share a home: nothing is lost, and nothing arrives twice under one key."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.manager import MemoryManager
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.settings import ProviderSettings
from tests.conftest import Strikes
from tests.external.samples import InMemory
from tests.forked import forking
from tests.timing import GIVE_UP

SETTINGS = ProviderSettings(
    lease_seconds=0.5, first_retry_seconds=0.01, max_retry_seconds=0.05, start_seconds=10, shutdown_seconds=5
)


class FileProvider(InMemory):
    """A memory in a file: one synced line per turn. `honest` leaves out what it has had before, by its key."""

    def __init__(self, path: Path, honest: bool = True) -> None:
        super().__init__()
        self._path = path
        self._honest = honest

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "", **facts: Any) -> None:
        key = facts["idempotency_key"]
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            if self._honest and f"{key} ".encode() in os.read(descriptor, 10_000_000):
                return
            os.write(descriptor, f"{key} {session_id} {user_content}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lines(path: Path) -> list[tuple[str, str, str]]:
    lines = [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []
    return [(key, session, turn) for key, session, turn in lines]


def _manager(home: Path, session_id: str, *, honest: bool = True, lease_seconds: float = 0.5) -> MemoryManager:
    manager = MemoryManager(home, replace(SETTINGS, lease_seconds=lease_seconds))
    assert manager.add_provider(FileProvider(home / "memory.txt", honest))
    manager.initialize_all(session_id)
    return manager


@contextmanager
def _conversation(home: Path, session_id: str) -> Iterator[tuple[int, int]]:
    """A forked process that finishes turns until it is killed, and a pipe that tells how many were acknowledged."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            manager = _manager(home, session_id)
            number = 0
            while True:
                assert manager.sync_all(f"turn-{number}", "answer", session_id)
                os.write(writer, b".")
                number += 1
        finally:
            os._exit(1)
    os.close(writer)
    try:
        yield child, reader
    finally:
        os.close(reader)


@pytest.mark.slow
@forking
def test_many_kills_lose_no_turn_and_deliver_none_twice(tmp_path: Path, strikes: Strikes) -> None:
    """Killed while they deliver: every turn that was acknowledged arrives, once, in the order of its session."""
    chance = random.Random(11)
    counts: dict[str, int] = {}
    with closing(Outbox(tmp_path)) as outbox:
        outbox.put("none", "turn", "s", {}, {})
    for number in range(strikes(200)):
        session_id = f"session-{number}"
        with _conversation(tmp_path, session_id) as (child, pipe):
            os.read(pipe, 1)
            time.sleep(chance.uniform(0, 0.012))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            counts[session_id] = 1 + len(os.read(pipe, 1_000_000))
    last = _manager(tmp_path, "last")
    assert last.drain(GIVE_UP)
    assert last.shutdown_all()
    lines = _lines(tmp_path / "memory.txt")
    assert max(Counter(key for key, _, _ in lines).values()) == 1
    for session_id, count in counts.items():
        turns = [turn for _, session, turn in lines if session == session_id]
        assert turns == [f"turn-{number}" for number in range(len(turns))]
        assert count <= len(turns) <= count + 1


_SHARE = """
import sys
from pathlib import Path
from tests.external.test_crashes import _manager
home, name = Path(sys.argv[1]), sys.argv[2]
manager = _manager(home, f"own-{name}", honest=False, lease_seconds=100)
for number in range(40):
    assert manager.sync_all(f"{name}-{number}", "answer", f"own-{name}")
    assert manager.sync_all(f"{name}-{number}", "answer", "shared")
assert manager.drain(100)
manager.shutdown_all()
"""


@pytest.mark.slow
def test_processes_that_share_a_home_deliver_everything_once(tmp_path: Path) -> None:
    """To a provider that does not look at keys, in the order of each session."""
    processes = [subprocess.Popen([sys.executable, "-c", _SHARE, str(tmp_path), name]) for name in "xyz"]
    assert [process.wait(GIVE_UP) for process in processes] == [0] * 3
    lines = _lines(tmp_path / "memory.txt")
    assert max(Counter(key for key, _, _ in lines).values()) == 1
    for name in "xyz":
        expected = [f"{name}-{number}" for number in range(40)]
        assert [turn for _, session, turn in lines if session == f"own-{name}"] == expected
        assert [turn for _, session, turn in lines if session == "shared" and turn.startswith(name)] == expected
    assert not Outbox(tmp_path).backlog()


_HANG = """
import sys, time
from pathlib import Path
from tests.external.samples import Scripted, managed
from tests.timing import GIVE_UP
hang = lambda *args, **facts: time.sleep(200)
manager = managed(Path(sys.argv[1]), Scripted(sync_turn=hang, shutdown=hang))
assert manager.sync_all("q", "a")
time.sleep(0.1)
began = time.monotonic()
manager.shutdown_all()
assert time.monotonic() - began < GIVE_UP
"""


@pytest.mark.slow
def test_a_process_ends_although_its_provider_hangs(tmp_path: Path) -> None:
    """At once, and the turn is delivered by the next one."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", _HANG, str(tmp_path)], check=True, timeout=GIVE_UP)
    assert time.monotonic() - began < GIVE_UP
    following = _manager(tmp_path, "s1")
    assert following.drain(10)
    assert [turn for _, _, turn in _lines(tmp_path / "memory.txt")] == ["q"]
    assert following.shutdown_all()
