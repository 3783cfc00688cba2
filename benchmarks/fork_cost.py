"""Measures how long a fork takes in a program that has a home open, beside the same fork without one.

    python benchmarks/fork_cost.py

`after use` is the first fork after a turn and a search, `idle` one after that; then a thread appends all the time, and
a thread builds the index of 20,000 messages. Every child that is forked over a home appends a message; all of them must
be in the record at the end. Milliseconds: the median of the CPU time of this thread, which does not depend on what else
the machine does, and the median and the worst of the time that passed.
"""

import os
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import memoranda

_FORKS = 15
_MESSAGES = 20_000


def fork(in_child: Callable[[], object] = lambda: None) -> tuple[float, float]:
    """Fork, let the child do something; how many milliseconds the fork held up this thread: CPU, and in all."""
    began, began_cpu = time.perf_counter(), time.thread_time()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            in_child()
            code = 0
        finally:
            os._exit(code)
    took = (time.thread_time() - began_cpu) * 1000, (time.perf_counter() - began) * 1000
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, "a child failed"
    return took


def show(name: str, taken: list[tuple[float, float]]) -> None:
    cpu, passed = zip(*taken, strict=True)
    print(f"{name:32} {statistics.median(cpu):8.2f} {statistics.median(passed):8.2f} {max(passed):8.2f}", flush=True)


def use(memory: memoranda.Memory) -> None:
    with memory.session(source="cli") as session, session.turn("Where is the heron?") as turn:
        turn.done("At the pond.")
    memory.search("heron")


def append_in_child(memory: memoranda.Memory) -> tuple[float, float]:
    return fork(lambda: memory.sessions.append_message("forks", "user", "from a child"))


def measure_idle(memory: memoranda.Memory) -> int:
    after_use, idle = [], []
    for _ in range(_FORKS):
        use(memory)
        # The thread that indexes has ended its work.
        time.sleep(0.6)
        after_use.append(append_in_child(memory))
        idle.append(append_in_child(memory))
    show("after use", after_use)
    show("idle", idle)
    return 2 * _FORKS


def measure_beside(memory: memoranda.Memory, name: str, work: Callable[[], object]) -> int:
    """Fork while a thread works."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.is_set():
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    taken = []
    for _ in range(_FORKS):
        time.sleep(0.05)
        taken.append(append_in_child(memory))
    ended.set()
    thread.join()
    show(name, taken)
    return _FORKS


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)
    print(f"{'':32} {'CPU':>8} {'median':>8} {'worst':>8}")
    show("without a home", [fork() for _ in range(_FORKS)])
    with TemporaryDirectory() as directory, memoranda.open(Path(directory)) as memory:
        for name in ("forks", "thread", "large"):
            memory.sessions.create_session(name, "cli")
        forked = measure_idle(memory)
        forked += measure_beside(
            memory, "a thread appends", lambda: memory.sessions.append_message("thread", "user", "the heron waits")
        )
        texts = [{"role": "user", "content": f"the heron says {number}"} for number in range(_MESSAGES)]
        memory.sessions.append_messages("large", texts)
        forked += measure_beside(memory, "a thread builds the index", memory.sessions.index.compact)
        assert len(memory.sessions.get_messages("forks")) == forked, "a message of a child is lost"


if __name__ == "__main__":
    main()
