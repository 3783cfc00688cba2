"""What was acknowledged survives kill -9, many writers and a power cut."""

import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.curated import change_history, health_checks, memory_file
from memoranda.memory.curated.memory_file import ReadableMemoryFile
from memoranda.memory.curated.operations import Add, MemoryReceipt, MemoryRefusal, Operation, Remove, Replace
from memoranda.memory.curated.settings import TARGETS, CuratedSettings, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.durable_files import staged_path
from tests.conftest import Strikes
from tests.forked import Forked, Say, forking
from tests.timing import GIVE_UP

pytestmark = pytest.mark.about_files
JOURNAL = ("journal.jsonl", "journal.marker.json")
ROOMY = CuratedSettings(memory_char_limit=10_000_000, user_char_limit=10_000_000, lock_timeout=120)


def _add_many(directory: Path, name: int, number: int, say: Say) -> None:
    store = MemoryStore(directory, ROOMY)
    store.load_from_disk()
    for fact in range(number):
        outcome = store.add("memory", f"writer {name} fact {fact}")
        assert isinstance(outcome, MemoryReceipt), outcome


@pytest.mark.slow
@forking
def test_sixteen_processes_lose_and_corrupt_nothing(directory: Path, strikes: Strikes) -> None:
    """16 writers make many adds each: every one is there once, in its writer's order, and the journal agrees."""
    adds = strikes(100)
    processes = [Forked(partial(_add_many, directory, number, adds), int(GIVE_UP)) for number in range(16)]
    assert [process.wait() for process in processes] == [0] * 16
    store = MemoryStore(directory, ROOMY)
    entries = store.entries("memory")
    assert sorted(entries) == sorted(f"writer {writer} fact {fact}" for writer in range(16) for fact in range(adds))
    for writer in range(16):
        own = [entry for entry in entries if entry.startswith(f"writer {writer} ")]
        assert own == [f"writer {writer} fact {fact}" for fact in range(adds)]
    assert tuple(store.journal.entries_after("memory") or ()) == entries
    assert [change.number for change in store.journal.changes()] == list(range(1, 16 * adds + 1))


@pytest.mark.slow
def test_threads_with_stores_of_their_own_lose_nothing(directory: Path) -> None:
    """Four stores in one process, each in its thread."""

    def write(name: int) -> bool:
        store = MemoryStore(directory, ROOMY)
        return all(isinstance(store.add("memory", f"thread {name} fact {fact}"), MemoryReceipt) for fact in range(25))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(4))) == [True] * 4
    assert len(MemoryStore(directory, ROOMY).entries("memory")) == 100


@contextmanager
def _killed_before_publishing(directory: Path, target: Target, text: str) -> Iterator[None]:
    """A store whose last writer died between the journal line and the rename."""
    store = MemoryStore(directory, ROOMY)
    with pytest.MonkeyPatch.context() as patch:

        def die(*arguments: Path) -> None:
            raise KeyboardInterrupt

        patch.setattr("memoranda.storage.files.journaled_writer.publish", die)
        patch.setattr("memoranda.storage.files.journaled_writer._recover", lambda *arguments: None)
        with pytest.raises(KeyboardInterrupt):
            store.add(target, text)
    assert os.path.exists(staged_path(store.path(target)))
    yield


@pytest.mark.parametrize("what", ["load", "add", "allow", "purge", "doctor"])
@pytest.mark.parametrize("target", ["memory", "user"])
def test_whoever_comes_next_settles_what_a_killed_writer_left(directory: Path, target: Target, what: str) -> None:
    """The change is void, the file as before, the journal in step with it, whichever way the next one comes in."""
    first = MemoryStore(directory, ROOMY)
    first.add("memory", "one")
    first.add("user", "Ana")
    with _killed_before_publishing(directory, target, "never"):
        store = MemoryStore(directory, ROOMY)
        if what == "load":
            store.load_from_disk()
        elif what == "add":
            store.add("memory", "two")
        elif what == "allow":
            with store.exclusive():
                pass
        elif what == "purge":
            change_history.purge(store)
        else:
            for finding in health_checks.check(directory, ROOMY):
                if finding.repair:
                    finding.repair()
    fresh = MemoryStore(directory, ROOMY)
    assert not os.path.exists(staged_path(fresh.path(target)))
    assert "never" not in fresh.entries(target)
    assert "never" not in [edit.after for change in fresh.journal.changes() for edit in change.edits]
    for name in TARGETS:
        assert fresh.journal.entries_after(name) == list(fresh.entries(name))
        assert isinstance(fresh.add(name, "life continues"), MemoryReceipt)
    assert "outside" not in [change.action for change in fresh.journal.changes()]


def test_what_others_wrote_after_a_kill_is_noticed(directory: Path) -> None:
    """The void line claims to know no more of the file than was known before the killed change."""
    MemoryStore(directory, ROOMY).add("memory", "one")
    with _killed_before_publishing(directory, "memory", "never"):
        (directory / "MEMORY.md").write_text("one glued by a shell")
        store = MemoryStore(directory, ROOMY)
        store.load_from_disk()
        assert isinstance(store.add("memory", "two"), MemoryRefusal)
        assert isinstance(store.add("memory", "two"), MemoryReceipt)
    assert store.journal.entries_after("memory") == ["one glued by a shell", "two"]
    assert [change.action for change in store.journal.changes()] == ["add", "outside", "add"]


def test_a_staged_file_of_an_applied_change_voids_nothing(directory: Path) -> None:
    """A leftover that is equal to the file, or belongs to no journal line, is just removed."""
    store = MemoryStore(directory, ROOMY)
    store.add("memory", "one")
    for leftover in (store.path("memory").read_bytes(), b"something else"):
        Path(staged_path(store.path("memory"))).write_bytes(leftover)
        MemoryStore(directory, ROOMY).load_from_disk()
        assert [change.action for change in store.journal.changes()] == ["add"]
        assert not os.path.exists(staged_path(store.path("memory")))


def _add(directory: Path, name: int, say: Say) -> None:
    """Add entries until killed, and say "." for each that was acknowledged."""
    store = MemoryStore(directory, ROOMY)
    store.load_from_disk()
    for number in count():
        assert isinstance(store.add("memory", f"round {name} fact {number}"), MemoryReceipt)
        say(b".")


@pytest.mark.slow
@forking
def test_many_kills_lose_no_acknowledged_entry(directory: Path, strikes: Strikes) -> None:
    """After each kill -9 the file is whole, holds all that was acknowledged, and nothing is left over."""
    directory.mkdir(parents=True)
    chance = random.Random(5)
    acknowledged: list[str] = []
    for name in range(strikes(200)):
        writer = Forked(partial(_add, directory, name))
        said = writer.heard()
        time.sleep(chance.uniform(0, 0.02))
        said += writer.kill()
        acknowledged += [f"round {name} fact {fact}" for fact in range(len(said))]
        state = memory_file.read(directory / "MEMORY.md")
        assert isinstance(state, ReadableMemoryFile)
        assert set(acknowledged) <= set(state.entries)
        assert MemoryStore(directory).journal.find_loss() == ""
    store = MemoryStore(directory, ROOMY)
    store.load_from_disk()
    assert isinstance(store.add("memory", "the last one"), MemoryReceipt)
    assert tuple(store.journal.entries_after("memory") or ()) == store.entries("memory")
    # A kill in the middle of a write may tear that line. It was not acknowledged, and it is rare.
    assert len(store.journal.damaged_lines()) <= 1
    assert {path.name for path in directory.iterdir()} == {"MEMORY.md", *JOURNAL, ".lock"}


_STEPS = ("open", "write", "fsync", "replace", "close", "unlink", "ftruncate")


def _dies_at(step: int, directory: Path) -> bool:
    """Replace an entry in a forked process that dies right before its n-th system call; False when it got through."""
    child = os.fork()
    if child == 0:
        store = MemoryStore(directory)
        store.load_from_disk()
        left = [step]
        for name in _STEPS:
            real = getattr(os, name)

            def dying(*arguments: object, _real: Any = real, **more: object) -> object:
                left[0] -= 1
                if left[0] == 0:
                    os._exit(9)
                return _real(*arguments, **more)

            setattr(os, name, dying)
        os._exit(0 if isinstance(store.replace("memory", "one", "two"), MemoryReceipt) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.mark.slow
@forking
def test_dying_at_any_step_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    """Between any two system calls of a write: one whole state, a journal that agrees with it, nothing left over."""
    step, seen = 1, set()
    while True:
        directory = tmp_path / str(step)
        MemoryStore(directory).add("memory", "one")
        if not _dies_at(step, directory):
            break
        store = MemoryStore(directory)
        store.load_from_disk()
        entries = store.entries("memory")
        seen.add(entries)
        assert store.journal.find_loss() == ""
        assert entries in (("one",), ("two",))
        assert isinstance(store.add("user", "life continues"), MemoryReceipt)
        assert tuple(store.journal.entries_after("memory") or ()) == entries
        assert store.journal.find_loss() == ""
        assert {path.name for path in directory.iterdir()} == {"MEMORY.md", "USER.md", *JOURNAL, ".lock"}
        assert isinstance(store.add("memory", "three"), MemoryReceipt)
        step += 1
    assert step > 10
    assert seen == {("one",), ("two",)}


class _Disk:
    """A disk that remembers only what was synced: contents by `fsync` of a file, names by `fsync` of a directory."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._contents: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, int]] = {}
        self._really_sync = os.fsync
        patch.setattr(os, "fsync", self._sync)

    def _sync(self, descriptor: int) -> None:
        self._really_sync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self._names[path] = {child.name: child.stat().st_ino for child in path.iterdir()}
        else:
            self._contents[os.fstat(descriptor).st_ino] = path.read_bytes()

    def after_power_cut(self, to: Path) -> None:
        """Lay down what would be found: durable names only, each with its last durable content."""
        self._restore(self._root, to)

    def _restore(self, directory: Path, to: Path) -> None:
        to.mkdir()
        for name, inode in self._names.get(directory, {}).items():
            if directory / name in self._names:
                self._restore(directory / name, to / name)
            else:
                (to / name).write_bytes(self._contents.get(inode, b""))


@pytest.mark.skipif(sys.platform != "linux", reason="follows descriptors through /proc")
def test_a_power_cut_right_after_an_acknowledgement_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents and names were both synced, also those of a home that was just created, and the history with them."""
    base = tmp_path / "disk"
    base.mkdir()
    disk = _Disk(base, monkeypatch)
    store = MemoryStore(base / "home" / "memories")
    steps: list[tuple[Operation, tuple[str, ...]]] = [
        (Add("one"), ("one",)),
        (Add("two"), ("one", "two")),
        (Replace("one", "three"), ("three", "two")),
        (Remove("two"), ("three",)),
        (Remove("three"), ()),
    ]
    for number, (operation, expected) in enumerate(steps, start=1):
        assert isinstance(store.apply("memory", [operation]), MemoryReceipt)
        disk.after_power_cut(tmp_path / f"found-{number}")
        found = MemoryStore(tmp_path / f"found-{number}" / "home" / "memories")
        found.load_from_disk()
        assert found.entries("memory") == expected
        assert len(list(found.journal.changes())) == number
        assert isinstance(found.add("memory", "life continues"), MemoryReceipt)
