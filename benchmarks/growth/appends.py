"""What recording into a large home costs, beside SQLite with the same durability, and how far the index lags behind.

`append` and `lag` add to the home; the benchmark gives them a copy.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.growth.store import Memoranda, MemorandaStore, as_dict
from benchmarks.growth.tasks import Task, read_plan
from benchmarks.sessions.corpus import Message

_APPENDS, _BATCHES, _BATCH = 400, 60, 20
_SESSION = "growth-appends"
# Steady load: a batch of ten, twenty times a second.
_LOAD_BATCH, _LOAD_PAUSE = 10, 0.05
_SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, message_count INTEGER);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
  timestamp REAL);
CREATE INDEX by_session ON messages (session_id, id);
"""


class RawStore:
    """The least that keeps a message durably: a row, an index, and the number of messages of its session."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(_SCHEMA)
        self._db.execute("INSERT INTO sessions VALUES (?, 0)", (_SESSION,))

    def append(self, messages: list[Message]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)",
            [(_SESSION, message.role, message.content, message.timestamp) for message in messages],
        )
        self._db.execute(
            "UPDATE sessions SET message_count = message_count + ? WHERE id = ?", (len(messages), _SESSION)
        )
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


def append(subject: Memoranda, home: Path, plan: str) -> dict[str, Any]:
    """Append single messages and batches to both stores in turn; returns seconds of the caller's CPU per message."""
    source = _typical_messages(plan)
    single: tuple[list[float], list[float]] = ([], [])
    batch: tuple[list[float], list[float]] = ([], [])
    raw_path = home.with_name(f"{home.name}.raw.db")
    with closing(subject.open(home)) as store, closing(RawStore(raw_path)) as raw:
        store.sessions.create_session(_SESSION, "cli")
        for _ in range(_APPENDS):
            message = next(source)
            single[0].append(_thread_cpu(_append_one, store, message))
            single[1].append(_thread_cpu(raw.append, [message]))
        for _ in range(_BATCHES):
            messages = list(islice(source, _BATCH))
            prepared = [as_dict(message) for message in messages]
            batch[0].append(_thread_cpu(store.sessions.append_messages, _SESSION, prepared) / _BATCH)
            batch[1].append(_thread_cpu(raw.append, messages) / _BATCH)
    for path in raw_path.parent.glob(f"{raw_path.name}*"):
        path.unlink()
    return {"single": [median(values) for values in single], "batch": [median(values) for values in batch]}


def _append_one(store: MemorandaStore, message: Message) -> None:
    store.sessions.append_message(_SESSION, message.role, message.content, timestamp=message.timestamp)


def _thread_cpu(call: Callable[..., object], *arguments: object) -> float:
    before = time.thread_time()
    call(*arguments)
    return time.thread_time() - before


def _typical_messages(plan: str) -> Iterator[Message]:
    """Yield what people and the model said in 400 to 800 characters, without end and without what is planted."""
    corpus, messages, _ = read_plan(plan)
    while True:
        for _, conversation in corpus.read(messages):
            for message in conversation.messages:
                if message.role != "tool" and message.tool_calls is None and 400 <= len(message.content) <= 800:
                    yield message


def lag(subject: Memoranda, home: Path, plan: str, seconds: float) -> dict[str, float]:
    """Append steadily, and return for how many seconds at most a message waited to be indexed.

    A message that is appended and not yet indexed is found all the same: a search reads it from the record.
    """
    source = _typical_messages(plan)
    waiting: list[tuple[int, float]] = []
    longest = most = 0.0
    with closing(subject.open(home)) as store:
        session = f"{_SESSION}-lag"
        store.sessions.create_session(session, "cli")
        # An append wakes the follower, which then indexes what an earlier process left.
        store.sessions.append_message(session, "user", "The steady load begins.")
        store.settle()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            batch = [as_dict(message) for message in islice(source, _LOAD_BATCH)]
            store.sessions.append_messages(session, batch)
            progress = store.sessions.index.state()
            waiting.append((progress.head.count, time.monotonic()))
            waiting = [(count, since) for count, since in waiting if count > progress.indexed.count]
            if waiting:
                longest = max(longest, time.monotonic() - waiting[0][1])
                most = max(most, progress.head.count - progress.indexed.count)
            time.sleep(_LOAD_PAUSE)
    return {"seconds": longest, "messages": most}


def reindex(subject: Memoranda, home: Path) -> dict[str, float]:
    """Delete the index and build it from the record; returns seconds of CPU."""
    for path in subject.index_files(home):
        path.unlink()
    with closing(subject.open(home)) as store:
        started = time.process_time()
        store.sessions.index.catch_up()
        store.settle()
        return {"cpu": time.process_time() - started}


TASKS: dict[str, Task] = {"append": append, "lag": lag, "reindex": reindex}
