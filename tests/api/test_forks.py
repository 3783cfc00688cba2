"""A process that forks while its threads use the memory: none of them hangs, and every acknowledged message is kept."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from tests.forked import forking, held_by_another_thread, in_child
from tests.timing import GIVE_UP

_ROUNDS, _TURNS = 3, 5
_SIDES = ("left", "right", "first", "second")
_SCRIPT = """
import os, signal, sys, threading, warnings
import memoranda

warnings.simplefilter("ignore")
root, rounds, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def use(name, memory):
    with memory.session(source="cli") as session:
        for number in range(turns):
            with session.turn(f"{name} asks {number}") as turn:
                turn.done(f"{name} hears {number}")
            memory.search(name)

def fork(name, memory):
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        use(name, memory)
        os._exit(0)
    return process

# Loads every module that a session needs: a process that is forked while a thread loads one could never load it.
with memoranda.open(root) as memory:
    use("before", memory)
children = []
for number in range(rounds):
    with memoranda.open(root) as memory:
        threads = [threading.Thread(target=use, args=(f"{side}{number}", memory)) for side in ("left", "right")]
        for thread in threads:
            thread.start()
        children += [fork(f"{side}{number}", memory) for side in ("first", "second")]
        for thread in threads:
            thread.join()
for process in children:
    assert os.waitpid(process, 0)[1] == 0, "a child failed, or hangs"
"""

# Prints the modules of the package that are loaded after the first thread of a memory has started.
_LATE_MODULES = """
import sys, threading
import memoranda

def loaded():
    return {name for name in sys.modules if name.startswith("memoranda.")}

def start(thread):
    early.append(loaded())
    begin(thread)

early, begin = [], threading.Thread.start
threading.Thread.start = start
with memoranda.open(sys.argv[1]) as memory, memory.session(source="cli") as session:
    with session.turn("Which bird stands at the pond?") as turn:
        turn.done("A heron.")
    memory.search("heron")
print(*sorted(loaded() - early[0]))
"""


@pytest.mark.slow
@forking
def test_threads_and_forked_processes_use_one_memory(tmp_path: Path) -> None:
    """The process forks while its threads open stores, write and search."""
    arguments = [str(tmp_path), str(_ROUNDS), str(_TURNS)]
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments], capture_output=True, text=True, timeout=GIVE_UP * 4, check=False
    )
    assert ended.returncode == 0, ended.stderr
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = sorted(content for (content,) in connection.execute("SELECT content FROM messages"))
    assert found == sorted(
        f"{name} {verb} {turn}"
        for name in ("before", *(f"{side}{number}" for side in _SIDES for number in range(_ROUNDS)))
        for verb in ("asks", "hears")
        for turn in range(_TURNS)
    )


@forking
def test_a_child_opens_what_a_thread_was_opening(tmp_path: Path) -> None:
    """It does not wait for that thread, which exists only in the parent."""

    def use() -> None:
        with memory.session(source="cli") as session:
            session.record("user", "A heron in the child")

    with memoranda.open(tmp_path) as memory:
        with held_by_another_thread(memory.services._opening):
            assert in_child(use, longest=20) == 0
        assert memory.search("heron")["results"]


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["", pytest.param("holographic", marks=pytest.mark.slow)])
def test_a_session_loads_its_modules_before_its_first_background_thread(tmp_path: Path, provider: str) -> None:
    """A process that is forked while a thread loads a module could never load it. Only a provider loads its own."""
    script = _LATE_MODULES
    if provider:
        (tmp_path / "config.yaml").write_text(f"memory:\n  provider: {provider}\n")
        script = f"import memoranda.external.{provider}\n{script}"
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert [name for name in ended.stdout.split() if not name.startswith("memoranda.external.")] == []
