"""A process that forks while its threads use a memory: no child harms it, and none hangs at its end."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import StorageError
from memoranda.memory.curated.operations import MemoryRefusal
from tests.forked import forking, in_child
from tests.timing import GIVE_UP

_ROUNDS, _TURNS = 3, 5
_SCRIPT = """
import os, signal, sys, threading, warnings
import memoranda
from memoranda.errors import StorageError

warnings.simplefilter("ignore")
root, rounds, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def use(name, memory):
    with memory.session(source="cli") as session:
        for number in range(turns):
            with session.turn(f"{name} asks {number}") as turn:
                turn.done(f"{name} hears {number}")
            memory.search(name)

# A child waits for it.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
children = []
for number in range(rounds):
    with memoranda.open(root) as memory:
        threads = [threading.Thread(target=use, args=(f"{side}{number}", memory)) for side in ("left", "right")]
        for thread in threads:
            thread.start()
        for _ in range(4):
            process = os.fork()
            if process == 0:
                signal.alarm(60)
                # It ends after its parent has closed the home and opened it again.
                signal.sigwait([signal.SIGUSR1])
                try:
                    memory.search("left")
                except StorageError:
                    # Leaves the block, which closes the memory, and the interpreter drops all that it has.
                    sys.exit(0)
                sys.exit(1)
            children.append(process)
        for thread in threads:
            thread.join()
with memoranda.open(root) as memory:
    use("after", memory)
    for process in children:
        os.kill(process, signal.SIGUSR1)
    use("beside", memory)
    for process in children:
        assert os.waitpid(process, 0)[1] == 0, "a child failed, or hangs"
    use("last", memory)
"""


@pytest.mark.slow
def test_children_that_end_like_any_program_do_not_harm_the_memory_of_their_parent(tmp_path: Path) -> None:
    """The process forks while its threads write and search; the children end while it has the home open again."""
    arguments = [str(tmp_path), str(_ROUNDS), str(_TURNS)]
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments], capture_output=True, text=True, timeout=GIVE_UP * 4, check=False
    )
    assert ended.returncode == 0, ended.stderr
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = sorted(content for (content,) in connection.execute("SELECT content FROM messages"))
    names = ("after", "beside", "last", *(f"{side}{number}" for side in ("left", "right") for number in range(_ROUNDS)))
    assert found == sorted(
        f"{name} {verb} {turn}" for name in names for verb in ("asks", "hears") for turn in range(_TURNS)
    )


@forking
def test_a_child_that_uses_an_open_home_is_told_to_open_it_after_the_fork(tmp_path: Path) -> None:
    """Every call of the memory and of a session; closing them does nothing, and the parent continues."""
    with memoranda.open(tmp_path) as memory, memory.session(source="cli") as session:
        session.record("user", "A heron at the pond")
        curated = memory.curated

        def use() -> None:
            for call in (
                lambda: memory.search("heron"),
                lambda: memory.remember("Likes herons."),
                lambda: memory.entries("memory"),
                lambda: memory.session(source="cli").__enter__(),
                lambda: session.record("user", "of the child"),
            ):
                with pytest.raises(StorageError, match="Open Memoranda after the fork"):
                    call()
            refused = curated.add("memory", "of the child")
            assert isinstance(refused, MemoryRefusal) and "Open Memoranda after the fork" in refused.message
            memory.close()

        assert in_child(use) == 0
        session.record("user", "Another heron")
        assert memory.remember("Likes herons.")["success"]
        assert memory.entries("memory") == ("Likes herons.",)
        assert len(memory.search("another")["results"]) == 1
