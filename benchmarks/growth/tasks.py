"""The two tasks that every program under measurement is asked to do: load a corpus, and answer searches.

A worker reads one request per line and answers with one line of JSON, in the environment of its program; so this
module needs only the standard library. CPU time counts, because wall time on a shared machine says little.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

from benchmarks.growth.conversation import Conversation
from benchmarks.growth.corpora import Corpus, text_size
from benchmarks.growth.plan import Plan
from benchmarks.sessions.tasks import Clocks, disk

_PART = 5_000


class Store(Protocol):
    """An open store of a program under measurement."""

    def contains(self, conversation: Conversation) -> bool:
        """Whether an interrupted load has stored this conversation."""
        ...

    def create(self, conversation: Conversation) -> None: ...
    def append_all(self, conversation: Conversation) -> None:
        """Append all messages, durable on return if the program is able to."""
        ...

    def end(self, conversation: Conversation) -> None:
        """End the session, if the program knows such a thing."""
        ...

    def settle(self) -> None:
        """Wait until everything appended can be found, and is on the disk."""
        ...

    def search(self, text: str) -> list[str]:
        """Return the ids of the first three sessions, the best first, after making the program's whole answer."""
        ...

    def close(self) -> None: ...


class Subject(Protocol):
    """A program under measurement. A home is the directory of its store; its files are the record or the index."""

    def open(self, home: Path) -> Store: ...
    def index_files(self, home: Path) -> list[Path]:
        """The files that contain only the index."""
        ...


Task = Callable[..., Any]


def serve(subject: Subject, more: dict[str, Task] | None = None) -> None:
    """Answer requests until standard input ends; what the program prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    tasks = TASKS | (more or {})
    for line in sys.stdin:
        request = json.loads(line)
        answer = tasks[request.pop("task")](subject, Path(request.pop("home")), **request)
        print(json.dumps(answer), file=answers, flush=True)


def read_plan(path: str) -> tuple[Corpus, int, Plan]:
    data = json.loads(Path(path).read_text("utf-8"))
    return Corpus(data["corpus"], Path(path).parent), data["messages"], Plan.from_data(data["plan"])


def load(subject: Subject, home: Path, plan: str) -> dict[str, Any]:
    """Load the corpus, in parts; the figures are saved after each part, and an interrupted load continues there."""
    saved = home.with_name(f"{home.name}.load.json")
    figures: dict[str, Any] = {"sessions": 0, "messages": 0, "text": 0, "create": 0.0, "append": 0.0, "index": 0.0}
    with suppress(FileNotFoundError):
        figures = json.loads(saved.read_text("utf-8"))
    corpus, messages, planned = read_plan(plan)
    if figures["messages"] >= messages:
        return figures
    with closing(subject.open(home)) as store:
        for part in _parts(planned.read(corpus, messages), figures["sessions"]):
            _load_part(store, part, figures)
            saved.write_text(json.dumps(figures), "utf-8")
            print(f"{home.name}: {figures['messages']:,} of {messages:,} messages", file=sys.stderr, flush=True)
    figures["text"] = text_size(planned.read(corpus, messages))
    figures["disk"] = disk(home)
    figures["index_disk"] = sum(file.stat().st_size for file in subject.index_files(home))
    saved.write_text(json.dumps(figures), "utf-8")
    return figures


def _parts(conversations: Iterator[Conversation], skip: int) -> Iterator[list[Conversation]]:
    part: list[Conversation] = []
    count = 0
    for number, conversation in enumerate(conversations):
        if number < skip:
            continue
        part.append(conversation)
        count += len(conversation.messages)
        if count >= _PART:
            yield part
            part, count = [], 0
    if part:
        yield part


def _load_part(store: Store, part: list[Conversation], figures: dict[str, Any]) -> None:
    """Load some conversations and wait for the index; adds seconds of CPU to the figures."""
    create = append = 0.0
    start = Clocks.now()
    for conversation in part:
        if store.contains(conversation):
            continue
        create += _thread_cpu(store.create, conversation)
        append += _thread_cpu(store.append_all, conversation)
        create += _thread_cpu(store.end, conversation)
    settle = _thread_cpu(store.settle)
    whole = start.passed()
    figures["create"] += create
    figures["append"] += append
    # What other threads did meanwhile, and what is left to do at the end.
    figures["index"] += whole.process - whole.thread + settle
    figures["sessions"] += len(part)
    figures["messages"] += sum(len(conversation.messages) for conversation in part)


def _thread_cpu(call: Callable[..., object], *arguments: object) -> float:
    before = time.thread_time()
    call(*arguments)
    return time.thread_time() - before


def search(subject: Subject, home: Path, texts: list[str], warm_up: list[str]) -> dict[str, Any]:
    """Ask every text once, after a few others; a process asks few, so that little is answered from its memory."""
    answers = []
    with closing(subject.open(home)) as store:
        for text in warm_up:
            store.search(text)
        for text in texts:
            before = Clocks.now()
            found = store.search(text)
            clocks = before.passed()
            answers.append({"cpu": clocks.process, "wall": clocks.wall, "found": found})
    return {"answers": answers, "rss": resident_megabytes()}


def resident_megabytes() -> float:
    """Return the memory of this process that is not shared with the files it maps, in MB; 0 where unknown."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


TASKS: dict[str, Task] = {"load": load, "search": search}
