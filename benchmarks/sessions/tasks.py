"""The tasks that a worker measures: loading a corpus, searching it, listing it, opening it.

A worker reads one request per line (`task` and its arguments) and answers with one line of JSON. It runs in the
environment of the program it measures, so this module needs only the standard library. CPU time and wall time are both
measured; CPU time counts, because wall time on a shared machine and its disk says little about a program.
"""

import gc
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any, NamedTuple, Protocol

from benchmarks.sessions.corpus import Message, Session, corpus

# How often the reference work is done before each part of a load.
REFERENCE_RUNS = 20
# Asks for the next part of a task that is done in parts.
CONTINUE = "continue"


class Store(Protocol):
    """An open store of the program under measurement."""

    def create(self, session: Session) -> None:
        """Create the session, with its title."""
        ...

    def append(self, session_id: str, message: Message) -> None:
        """Append one message, durable on return."""
        ...

    def append_all(self, session: Session) -> None:
        """Append all messages of the session in one commit."""
        ...

    def settle(self) -> None:
        """Wait until everything appended is in the search index."""
        ...

    def discover(self, query: str) -> str:
        """Call the `session_search` tool with this query; return the JSON text that a model receives."""
        ...

    def browse(self) -> str:
        """Call the `session_search` tool without arguments."""
        ...

    def touch(self) -> None:
        """Make the cheapest read, so that opening leaves no work for later."""
        ...

    def close(self) -> None: ...


class Subject(Protocol):
    """A program under measurement. A home is the directory of its store."""

    def open(self, home: Path) -> Store: ...


class Clocks(NamedTuple):
    """CPU seconds of this thread and of the whole process, and wall time in seconds."""

    thread: float
    process: float
    wall: float

    @classmethod
    def now(cls) -> "Clocks":
        """The thread's clock is read last here and first in `passed`: reading the others takes time too."""
        wall, process = time.perf_counter(), time.process_time()
        return cls(time.thread_time(), process, wall)

    def passed(self) -> "Clocks":
        """Return the time since then."""
        thread = time.thread_time()
        process, wall = time.process_time(), time.perf_counter()
        return Clocks(thread - self.thread, process - self.process, wall - self.wall)


def serve(subject: Subject) -> None:
    """Answer requests until standard input ends; what the program prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    underway: Iterator[Any] = iter(())
    for line in sys.stdin:
        request = json.loads(line)
        task = request.pop("task")
        if task == CONTINUE:
            answer = next(underway)
        else:
            answer = TASKS[task](subject, Path(request.pop("home")), **request)
            if isinstance(answer, Iterator):
                underway, answer = answer, None
        print(json.dumps(answer), file=answers, flush=True)


def load(subject: Subject, home: Path, messages: int, part_size: int) -> Iterator[dict[str, Any] | None]:
    """Append the corpus one message at a time, each durable before the next, and wait for the index.

    The load is done in parts, so that the other program can take turns; the last answer contains the figures.
    """
    sessions = _corpus(messages)
    calls: list[Clocks] = []
    parts: list[Clocks] = []
    subtracted: list[Clocks] = []
    paces: list[Clocks] = []
    with _open_store(subject, home) as store:
        for part in _in_parts(sessions, part_size):
            paces += _time_reference_work()
            start = Clocks.now()
            for session in part:
                subtracted.append(_time_call(store.create, session))
                calls += [_time_call(store.append, session.id, message) for message in session.messages]
            # Other work of this thread is excluded: creating sessions, and waiting for the index.
            waited = _time_call(store.settle)
            parts.append(start.passed())
            subtracted.append(waited._replace(wall=0))
            yield None
    yield _appends(calls) | {
        "together_cpu": (sum(clocks.process for clocks in parts) - sum(clocks.thread for clocks in subtracted))
        / messages,
        "together_wall": (sum(clocks.wall for clocks in parts) - sum(clocks.wall for clocks in subtracted)) / messages,
        "pace": median(clocks.thread for clocks in paces),
        "disk": disk(home),
        "raw": sum(message.raw_size for session in sessions for message in session.messages),
        "sessions": len(sessions),
    }


def _in_parts(sessions: list[Session], size: int) -> Iterator[list[Session]]:
    """Yield the sessions in order, `size` messages at a time."""
    part: list[Session] = []
    for session in sessions:
        part.append(session)
        if sum(len(loaded.messages) for loaded in part) >= size:
            yield part
            part = []
    if part:
        yield part


def append_slowly(subject: Subject, home: Path, messages: int) -> dict[str, Any]:
    """Append to an existing store, and wait for the index after every message, so that each is indexed alone."""
    sessions = [
        replace(session, id=f"slow-{session.id}", title=f"slow {session.title}") for session in _corpus(messages)
    ]
    excluded = 0.0
    with _open_store(subject, home) as store:
        start = Clocks.now()
        for session in sessions:
            excluded += _time_call(store.create, session).thread
            for message in session.messages:
                store.append(session.id, message)
                excluded += _time_call(store.settle).thread
        together = start.passed()
    return {"together_cpu": (together.process - excluded) / messages}


def _appends(calls: list[Clocks]) -> dict[str, Any]:
    """Return seconds per append: mean CPU of all, of the first and the last tenth, and percentiles of wall time."""
    tenth = len(calls) // 10
    wall = sorted(call.wall for call in calls)
    return {
        "cpu": fmean(call.thread for call in calls),
        "process_cpu": fmean(call.process for call in calls),
        "first": fmean(call.thread for call in calls[:tenth]),
        "last": fmean(call.thread for call in calls[-tenth:]),
        "wall": fmean(wall),
        "wall_p50": wall[len(wall) // 2],
        "wall_p95": wall[len(wall) * 95 // 100],
        "wall_max": wall[-1],
    }


def load_in_batches(subject: Subject, home: Path, messages: int) -> dict[str, Any]:
    """Append the corpus one session at a time, a session in one commit."""
    sessions = _corpus(messages)
    calls: list[Clocks] = []
    with _open_store(subject, home) as store:
        for session in sessions:
            store.create(session)
            calls.append(_time_call(store.append_all, session))
    return {
        "cpu": sum(call.thread for call in calls) / messages,
        "wall": sum(call.wall for call in calls) / messages,
        "wall_max": max(call.wall for call in calls),
    }


def search(subject: Subject, home: Path, texts: list[str], repetitions: int) -> list[dict[str, Any]]:
    """Time every query `repetitions` times, after one call that is not timed; return times and results."""
    answers: list[dict[str, Any]] = []
    with _open_store(subject, home) as store:
        for text in texts:
            answer = _require_success(store.discover(text))
            calls = [_time_call(store.discover, text) for _ in range(repetitions)]
            found = [result["session_id"] for result in answer["results"]]
            size = len(json.dumps(answer, ensure_ascii=False))
            answers.append(_cpu_and_wall(calls) | {"found": found, "size": size})
    return answers


def browse(subject: Subject, home: Path, repetitions: int) -> dict[str, Any]:
    with _open_store(subject, home) as store:
        answer = _require_success(store.browse())
        calls = [_time_call(store.browse) for _ in range(repetitions)]
    return _cpu_and_wall(calls) | {"found": [result["session_id"] for result in answer["results"]]}


def open_once(subject: Subject, home: Path) -> dict[str, Any]:
    """Open a store and read once, in a new process that has opened another store, so that imports do not count."""
    _open(subject, home.with_name(f"{home.name}-first"))
    return _cpu_and_wall([_open(subject, home)])


def _open(subject: Subject, home: Path) -> Clocks:
    start = Clocks.now()
    store = subject.open(home)
    store.touch()
    taken = start.passed()
    store.close()
    return taken


def disk(home: Path) -> int:
    """Return the bytes of all files in a home: the databases and the files beside them."""
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def percentile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _require_success(answer: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(answer)
    if not data["success"]:
        raise RuntimeError(f"session_search failed: {data['error']}")
    return data


def _time_reference_work() -> list[Clocks]:
    """Time the reference work several times, while the program does nothing."""
    return [_time_call(_reference_work) for _ in range(REFERENCE_RUNS)]


def _reference_work() -> None:
    """Do work that is always the same and belongs to neither program: its time shows how busy the machine is."""
    words = [f"word{number % 97}" for number in range(2_000)]
    if len(json.loads(json.dumps(words))) != len(re.findall(r"\w+", " ".join(words))):
        raise RuntimeError("The reference work failed.")


def _cpu_and_wall(calls: list[Clocks]) -> dict[str, Any]:
    return {"cpu": [call.process for call in calls], "wall": [call.wall for call in calls]}


def _time_call(call: Callable[..., object], *arguments: object) -> Clocks:
    before = Clocks.now()
    call(*arguments)
    return before.passed()


def _corpus(messages: int) -> list[Session]:
    """Return the corpus, hidden from the garbage collector, because an agent has no heap of this size."""
    sessions = corpus(messages)
    gc.collect()
    gc.freeze()
    return sessions


@contextmanager
def _open_store(subject: Subject, home: Path) -> Iterator[Store]:
    store = subject.open(home)
    try:
        yield store
    finally:
        store.close()


TASKS: dict[str, Callable[..., Any]] = {
    "load": load,
    "load in batches": load_in_batches,
    "append slowly": append_slowly,
    "search": search,
    "browse": browse,
    "open": open_once,
}
