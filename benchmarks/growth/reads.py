"""What reading a home of Memoranda costs: opening it, listing it, and searching after a search that found nothing."""

import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.growth.store import Memoranda, MemorandaStore
from benchmarks.growth.tasks import Task, resident_megabytes

_LISTS = 30
_SEARCHES_AFTER_A_MISS = 5
_PAUSE = 0.02


def open_once(subject: Memoranda, home: Path) -> dict[str, float]:
    """Open the home and read once, in this new process, loading the package included."""
    started = time.process_time()
    store = subject.open(home)
    store.sessions.get_session("none")
    cpu = time.process_time() - started
    rss = resident_megabytes()
    store.close()
    return {"cpu": cpu, "rss": rss}


def list_sessions(subject: Memoranda, home: Path) -> dict[str, float]:
    """List the latest twenty conversations, as the command and an agent's start do."""
    with closing(subject.open(home)) as store:
        store.sessions.list_sessions_rich(limit=20)
        return {"cpu": median(_thread_cpu(store) for _ in range(_LISTS))}


def _thread_cpu(store: MemorandaStore) -> float:
    before = time.thread_time()
    if len(store.sessions.list_sessions_rich(limit=20)) != 20:
        raise RuntimeError("The list does not have twenty conversations.")
    return time.thread_time() - before


def search_after_misses(subject: Memoranda, home: Path, nothing: list[str], texts: list[str]) -> dict[str, Any]:
    """Time searches right after searches that find nothing: wall time, because waiting for a lock takes no CPU."""
    misses: list[float] = []
    others: list[float] = []
    with closing(subject.open(home)) as store:
        store.search(texts[0])
        for number, word in enumerate(nothing):
            misses.append(_wall(store, word, finds=False))
            for text in texts[number * _SEARCHES_AFTER_A_MISS :][:_SEARCHES_AFTER_A_MISS]:
                others.append(_wall(store, text, finds=True))
                time.sleep(_PAUSE)
    return {"misses": misses, "others": others}


def _wall(store: MemorandaStore, text: str, *, finds: bool) -> float:
    before = time.perf_counter()
    found = store.search(text)
    if bool(found) != finds:
        raise RuntimeError(f"{text!r} found {found}.")
    return time.perf_counter() - before


TASKS: dict[str, Task] = {"open": open_once, "list": list_sessions, "search after misses": search_after_misses}
