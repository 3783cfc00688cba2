"""How fast messages are recorded while others search, compared with plain SQLite in the same run.

44 threads of one process append, alone and beside one thread that searches all the time. Plain SQLite does
the same with one lock, alone and beside one thread that computes in Python, because that is what a search is for the
others: it holds Python's global lock, which every call into SQLite gives up and needs again. The runs alternate, so
that all see the same machine.

    .venv/bin/python benchmarks/recording_under_search.py [--dir DIR] [--seconds 4] [--rounds 3]
"""

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.corpus import corpus
from memoranda.home.session_db import SessionDB

WRITERS = 44
CONTENT = "The deployment waits for the migration of the billing tables, which takes about an hour. " * 7
QUERIES = ("How long does the migration take?", "deployment billing", "who reviewed the parser", "database backup")

Append = Callable[[int], object]


def fill(path: Path, count: int) -> None:
    """Write a home with some messages to search in, and index it."""
    with closing(SessionDB(path)) as db:
        for session in corpus(count):
            db.create_session(session.id, "cli")
            db.append_messages(session.id, [{"role": m.role, "content": m.content} for m in session.messages])
        for number in range(WRITERS):
            db.create_session(f"writer-{number}", "cli")
        db.search_messages("migration")


def append_for(append: Append, seconds: float, beside: Callable[[threading.Event], None] | None) -> list[float]:
    """Append with all threads, each as fast as it can, and return how long each append took."""
    started, stopped = threading.Event(), threading.Event()
    durations: list[list[float]] = [[] for _ in range(WRITERS)]

    def write(number: int) -> None:
        started.wait()
        while not stopped.is_set():
            begin = time.perf_counter()
            append(number)
            durations[number].append(time.perf_counter() - begin)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    if beside is not None:
        threads.append(threading.Thread(target=beside, args=(stopped,)))
    for thread in threads:
        thread.start()
    started.set()
    time.sleep(seconds)
    stopped.set()
    for thread in threads:
        thread.join()
    return [duration for some in durations for duration in some]


class PlainSqlite:
    """One connection with one lock, durable as Memoranda is."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, message_count INTEGER)",
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session_id TEXT, content TEXT, time REAL)",
            "CREATE INDEX IF NOT EXISTS by_session ON messages(session_id)",
        ):
            self._connection.execute(statement)
        for number in range(WRITERS):
            self._connection.execute("INSERT OR IGNORE INTO sessions VALUES (?, 0)", (f"writer-{number}",))

    def append(self, number: int) -> None:
        name = f"writer-{number}"
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(
                "INSERT INTO messages (session_id, content, time) VALUES (?, ?, ?)", (name, CONTENT, time.time())
            )
            self._connection.execute("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", (name,))
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def compute(stopped: threading.Event) -> None:
    """Keep Python busy."""
    while not stopped.is_set():
        sum(number * number for number in range(1000))


def measure_threads(directory: Path, seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    plain = PlainSqlite(directory / "plain.db")
    with closing(SessionDB(directory / "state.db")) as db:

        def search(stopped: threading.Event) -> None:
            while not stopped.is_set():
                for query in QUERIES:
                    db.search_messages(query)
                    searches.append(1)

        def append(number: int) -> None:
            db.append_message(f"writer-{number}", "user", CONTENT)

        searches: list[int] = []
        runs: dict[str, tuple[Append, Callable[[threading.Event], None] | None]] = {
            "plain SQLite": (plain.append, None),
            "plain SQLite beside a busy thread": (plain.append, compute),
            "memoranda": (append, None),
            "memoranda beside a search": (append, search),
            "memoranda beside a busy thread": (append, compute),
        }
        durations: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, (write, beside) in runs.items():
                durations[name] += append_for(write, seconds, beside)
        results = {name: summarise(found, seconds * rounds) for name, found in durations.items()}
        results["memoranda beside a search"]["searches_per_second"] = len(searches) / (seconds * rounds)
    plain.close()
    return results


def summarise(durations: list[float], seconds: float) -> dict[str, float]:
    ordered = sorted(durations)
    return {
        "per_second": len(ordered) / seconds,
        "p50_ms": statistics.median(ordered) * 1000,
        "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
        "max_ms": ordered[-1] * 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="a directory on the disk to measure")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each run lasts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=5000, help="how many messages the home has before")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=".recording-", dir=options.dir) as name:
        directory = Path(name)
        fill(directory / "state.db", options.messages)
        results = measure_threads(directory, options.seconds, options.rounds)
    print(f"{os.cpu_count()} cores, {WRITERS} threads, load {os.getloadavg()[0]:.1f}")
    for name, found in results.items():
        print(f"  {name:34}", "  ".join(f"{key} {value:9,.1f}" for key, value in found.items()))


if __name__ == "__main__":
    main()
