"""What a worker measures when it is asked: loading a corpus, searching it, listing it, opening it.

A worker reads one request per line (`task` and its arguments) and answers with one line of JSON. It runs in the
environment of the program it measures, so this module needs nothing but the standard library. CPU time counts, because
wall time on a shared machine and its disk says little about a program; both are taken.
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
PACES = 20
# Asks for the next part of a task that is done in parts.
CONTINUE = "continue"


class Store(Protocol):
    """An open store of the program under measurement."""

    def create(self, session: Session) -> None:
        """Begin the session, with its title."""
        ...

    def append(self, session_id: str, message: Message) -> None:
        """One message, durable on return."""
        ...

    def append_all(self, session: Session) -> None:
        """All messages of the session in one commit."""
        ...

    def settle(self) -> None:
        """Wait until everything appended is in the search index."""
        ...

    def discover(self, query: str) -> str:
        """The `session_search` tool with this query, up to the JSON text that a model is sent."""
        ...

    def browse(self) -> str:
        """The `session_search` tool without arguments."""
        ...

    def touch(self) -> None:
        """The cheapest read there is, so that nothing of opening is left for later."""
        ...

    def close(self) -> None: ...


class Subject(Protocol):
    """A program under measurement. A home is a folder that holds its store."""

    def open(self, home: Path) -> Store: ...


class Clocks(NamedTuple):
    """CPU seconds of this thread and of the whole process, and seconds that passed."""

    thread: float
    process: float
    wall: float

    @classmethod
    def now(cls) -> "Clocks":
        """The thread's clock is read last here and first in `passed`: reading the others takes time too."""
        wall, process = time.perf_counter(), time.process_time()
        return cls(time.thread_time(), process, wall)

    def passed(self) -> "Clocks":
        """What has passed since."""
        thread = time.thread_time()
        process, wall = time.process_time(), time.perf_counter()
        return Clocks(thread - self.thread, process - self.process, wall - self.wall)


def serve(subject: Subject) -> None:
    """Answer requests until standard input ends; whatever the program prints goes to standard error."""
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

    It is done in parts, so that another program can take its turn in between; the last answer has the figures.
    """
    sessions = _corpus(messages)
    calls: list[Clocks] = []
    parts: list[Clocks] = []
    subtracted: list[Clocks] = []
    paces: list[Clocks] = []
    with _opened(subject, home) as store:
        for part in _in_parts(sessions, part_size):
            paces += _paces()
            start = Clocks.now()
            for session in part:
                subtracted.append(_timed(store.create, session))
                calls += [_timed(store.append, session.id, message) for message in session.messages]
            # What this thread does besides appending is left out: making sessions, and asking for the index.
            waited = _timed(store.settle)
            parts.append(start.passed())
            subtracted.append(waited._replace(wall=0))
            yield None
    yield _appends(calls) | {
        "together_cpu": (sum(clocks.process for clocks in parts) - sum(clocks.thread for clocks in subtracted))
        / messages,
        "together_wall": (sum(clocks.wall for clocks in parts) - sum(clocks.wall for clocks in subtracted)) / messages,
        "pace": median(each.thread for each in paces),
        "disk": disk(home),
        "raw": sum(message.raw_size for session in sessions for message in session.messages),
        "sessions": len(sessions),
    }


def _in_parts(sessions: list[Session], size: int) -> Iterator[list[Session]]:
    """The sessions in order, so many messages at a time."""
    part: list[Session] = []
    for session in sessions:
        part.append(session)
        if sum(len(each.messages) for each in part) >= size:
            yield part
            part = []
    if part:
        yield part


def append_slowly(subject: Subject, home: Path, messages: int) -> dict[str, Any]:
    """Append to a store that is there, and wait for the index after every message: nothing is indexed together."""
    sessions = [replace(each, id=f"slow-{each.id}", title=f"slow {each.title}") for each in _corpus(messages)]
    besides = 0.0
    with _opened(subject, home) as store:
        start = Clocks.now()
        for session in sessions:
            besides += _timed(store.create, session).thread
            for message in session.messages:
                store.append(session.id, message)
                besides += _timed(store.settle).thread
        together = start.passed()
    return {"together_cpu": (together.process - besides) / messages}


def _appends(calls: list[Clocks]) -> dict[str, Any]:
    """Seconds per append: means of CPU over all, over the first and the last tenth, and how wall time spreads."""
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
    with _opened(subject, home) as store:
        for session in sessions:
            store.create(session)
            calls.append(_timed(store.append_all, session))
    return {
        "cpu": sum(call.thread for call in calls) / messages,
        "wall": sum(call.wall for call in calls) / messages,
        "wall_max": max(call.wall for call in calls),
    }


def search(subject: Subject, home: Path, texts: list[str], repetitions: int) -> list[dict[str, Any]]:
    """Every query so many times, and once before for nothing; how much each found."""
    answers: list[dict[str, Any]] = []
    with _opened(subject, home) as store:
        for text in texts:
            answer = _succeeded(store.discover(text))
            calls = [_timed(store.discover, text) for _ in range(repetitions)]
            found = [result["session_id"] for result in answer["results"]]
            size = len(json.dumps(answer, ensure_ascii=False))
            answers.append(_both(calls) | {"found": found, "size": size})
    return answers


def browse(subject: Subject, home: Path, repetitions: int) -> dict[str, Any]:
    with _opened(subject, home) as store:
        answer = _succeeded(store.browse())
        calls = [_timed(store.browse) for _ in range(repetitions)]
    return _both(calls) | {"found": [result["session_id"] for result in answer["results"]]}


def open_once(subject: Subject, home: Path) -> dict[str, Any]:
    """Open a store, as far as one read, in a fresh process that has opened another before: imports do not count."""
    _open(subject, home.with_name(f"{home.name}-first"))
    return _both([_open(subject, home)])


def _open(subject: Subject, home: Path) -> Clocks:
    start = Clocks.now()
    store = subject.open(home)
    store.touch()
    taken = start.passed()
    store.close()
    return taken


def disk(home: Path) -> int:
    """Bytes of all files in a home: the databases and whatever lies beside them."""
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def percentile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _succeeded(answer: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(answer)
    if not data["success"]:
        raise RuntimeError(f"session_search failed: {data['error']}")
    return data


def _paces() -> list[Clocks]:
    """The reference work some times, while the program does nothing."""
    return [_timed(_reference_work) for _ in range(PACES)]


def _reference_work() -> None:
    """Always the same, and of neither program: how long it takes says how busy the machine is."""
    words = [f"word{number % 97}" for number in range(2_000)]
    if len(json.loads(json.dumps(words))) != len(re.findall(r"\w+", " ".join(words))):
        raise RuntimeError("The reference work went wrong.")


def _both(calls: list[Clocks]) -> dict[str, Any]:
    return {"cpu": [call.process for call in calls], "wall": [call.wall for call in calls]}


def _timed(call: Callable[..., object], *arguments: object) -> Clocks:
    before = Clocks.now()
    call(*arguments)
    return before.passed()


def _corpus(messages: int) -> list[Session]:
    """The corpus, out of sight of the garbage collector: an agent has no such heap."""
    sessions = corpus(messages)
    gc.collect()
    gc.freeze()
    return sessions


@contextmanager
def _opened(subject: Subject, home: Path) -> Iterator[Store]:
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
