"""The worker process of a benchmark: generates the notes to store, and times one program when asked.

A worker reads one request per line (`measure`, `entries`, `repetitions`, `seed`) and answers with one line of JSON.
It runs in the environment of the program it measures, so this module needs nothing but the standard library. Every
repetition that reads has its own notes, so that a cache of earlier scans gives no advantage.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

DELIMITER = "\n§\n"
LIMIT = 100_000_000
_SUBJECTS = (
    "The billing service",
    "The staging cluster",
    "The nightly import",
    "The search index",
    "The mobile client",
    "The login page",
    "The release pipeline",
    "The reporting job",
    "The image cache",
    "The audit log",
    "The payment gateway",
    "The admin console",
    "The event queue",
    "The metrics collector",
    "The feature flag service",
    "The document store",
)
_FACTS = (
    "is built with {tool} and deployed from the {branch} branch",
    "keeps {number} days of history in {store}",
    "is tested with {tool}; the slow suite takes {number} minutes",
    "reads its settings from {store}, never from a file",
    "was moved from {store} to {tool} in release {number}",
    "retries {number} times before it gives up on {store}",
    "is owned by the {team} team, who review changes within {number} hours",
    "listens on port {number} behind {tool}",
    "needs {number} MB of memory when {store} is cold",
    "writes its dates in UTC, and {team} reads them as local time",
)
_WORDS = {
    "tool": ["Bazel", "Gradle", "pytest", "Vite", "Terraform", "Ansible", "nginx", "Envoy", "Celery", "Playwright"],
    "branch": ["main", "stable", "release", "hotfix", "canary"],
    "store": ["PostgreSQL", "Redis", "SQLite", "Kafka", "Cassandra", "MinIO", "Elasticsearch", "MongoDB"],
    "team": ["platform", "payments", "data", "mobile", "support", "growth"],
}


class Subject(Protocol):
    """A program under measurement. `directory` contains its two memory files, in a temporary home."""

    def directory(self, home: Path) -> Path: ...
    def load(self, home: Path) -> tuple[Any, str]:
        """Return a new store that has read both files, and its frozen text for the system prompt."""
        ...

    def add(self, store: Any, text: str) -> None: ...
    def add_by_tool(self, store: Any, text: str) -> str:
        """Call the `memory` tool as a model does; return the JSON text that the model receives."""
        ...

    def remove(self, store: Any, text: str) -> None: ...
    def scan(self, text: str) -> bool:
        """Whether the scan that guards a write finds anything."""
        ...


def notes(count: int, seed: int) -> list[str]:
    """Return different ordinary engineering notes of 60 to 100 characters, the same ones for the same seed."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        words = {name: rng.choice(choices) for name, choices in _WORDS.items()}
        fact = rng.choice(_FACTS).format(number=rng.randint(2, 9999), **words)
        text = f"{rng.choice(_SUBJECTS)} {fact}."
        if 60 <= len(text) <= 100:
            found[text] = None
    return list(found)


def serve(subject: Subject) -> None:
    """Answer requests until standard input ends; what the program prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for measure in MEASURES:
        _measure(subject, measure, entries=10, repetitions=2, seed=0)
    for line in sys.stdin:
        print(json.dumps(_measure(subject, **json.loads(line))), file=answers, flush=True)


def _measure(subject: Subject, measure: str, entries: int, repetitions: int, seed: int) -> list[float]:
    with TemporaryDirectory() as home:
        return MEASURES[measure](subject, Path(home), entries, range(seed, seed + repetitions))


def _load(subject: Subject, home: Path, entries: int, seeds: range) -> list[float]:
    durations = []
    for seed in seeds:
        kept = _fill(subject.directory(home), entries, seed)
        start = time.perf_counter()
        _, prompt = subject.load(home)
        durations.append(time.perf_counter() - start)
        _require(set(kept) <= set(prompt.split("\n")), "the prompt does not show every note")
    return durations


def _add(subject: Subject, home: Path, entries: int, seeds: range) -> list[float]:
    return _time_adds(subject, home, entries, seeds, subject.add)


def _add_by_tool(subject: Subject, home: Path, entries: int, seeds: range) -> list[float]:
    return _time_adds(subject, home, entries, seeds, subject.add_by_tool)


def _count_syncs(subject: Subject, home: Path, entries: int, seeds: range) -> list[float]:
    """Count how often one add waits for the disk, which decides its duration on a disk that really flushes."""
    counts: list[float] = []

    def add(store: Any, text: str) -> None:
        real, count = os.fsync, 0

        def counting(fd: Any) -> None:
            nonlocal count
            count += 1
            real(fd)

        os.fsync = counting
        try:
            subject.add(store, text)
        finally:
            os.fsync = real
        counts.append(count)

    _time_adds(subject, home, entries, seeds, add)
    return counts


def _time_adds(
    subject: Subject, home: Path, entries: int, seeds: range, add: Callable[[Any, str], object]
) -> list[float]:
    """Time adding one note to a store of that size; removing it again is not timed."""
    *kept, first = notes(entries + 1, seeds.start)
    _write(subject.directory(home), kept)
    store, _ = subject.load(home)
    # The first write to an existing file is not timed, because Memoranda also journals the entries it finds there.
    subject.add(store, first)
    subject.remove(store, first)
    durations = []
    for seed in seeds:
        text = f"{notes(1, seed)[0]} Seen in run {seed}."
        start = time.perf_counter()
        answer = add(store, text)
        durations.append(time.perf_counter() - start)
        stored = (subject.directory(home) / "MEMORY.md").read_text("utf-8").split(DELIMITER)
        _require(stored == [*kept, text], f"the file does not contain what was added ({answer})")
        subject.remove(store, text)
    return durations


def _scan(subject: Subject, home: Path, entries: int, seeds: range) -> list[float]:
    durations = []
    for seed in seeds:
        texts = notes(entries, seed)
        start = time.perf_counter()
        found = [text for text in texts if subject.scan(text)]
        durations.append(time.perf_counter() - start)
        _require(not found, f"the scan finds something in ordinary notes: {found[:3]}")
    return durations


def _fill(directory: Path, entries: int, seed: int) -> list[str]:
    """Write MEMORY.md with this many notes, and USER.md with a tenth of that."""
    everything = notes(entries + entries // 10, seed)
    _write(directory, everything[:entries], everything[entries:])
    return everything


def _write(directory: Path, memory: list[str], user: list[str] | None = None) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "MEMORY.md").write_text(DELIMITER.join(memory), "utf-8")
    (directory / "USER.md").write_text(DELIMITER.join(user or []), "utf-8")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise RuntimeError(f"Not a fair measurement: {problem}.")


MEASURES: dict[str, Callable[[Subject, Path, int, range], list[float]]] = {
    "load": _load,
    "add, store": _add,
    "add": _add_by_tool,
    "scan": _scan,
    "syncs": _count_syncs,
}
