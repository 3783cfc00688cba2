"""The programs under measurement: the interpreter of each, its worker, and why one cannot be measured."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.curated import Worker, start_worker

OURS, FTS5, TANTIVY, TANTIVY_OURS, HERMES, MEM0 = "memoranda", "fts5", "tantivy", "tantivy-ours", "hermes", "mem0"


@dataclass(frozen=True, slots=True)
class Program:
    """A program: its worker, what must be importable, and the largest corpus it is given."""

    name: str
    worker: str
    package: str
    arguments: tuple[str, ...] = ()
    max_messages: int | None = None


PROGRAMS = {
    program.name: program
    for program in (
        Program(OURS, "growth.ours", "memoranda"),
        Program(FTS5, "growth.fts5", "sqlite3"),
        Program(TANTIVY, "growth.tantivy_worker", "tantivy"),
        Program(TANTIVY_OURS, "growth.tantivy_worker", "tantivy", ("--our-tokens",)),
        # More would take hours: their loads slow down as the store grows.
        Program(HERMES, "growth.hermes", "hermes_state", max_messages=100_000),
        Program(MEM0, "growth.mem0", "mem0", max_messages=10_000),
    )
}


@dataclass(frozen=True, slots=True)
class Installed:
    """A program with the interpreter of its environment, and the directory of its stores."""

    program: Program
    python: Path
    base: Path

    @property
    def name(self) -> str:
        return self.program.name

    def home(self, corpus: str, messages: int) -> Path:
        return self.base / self.name / f"{corpus}-{messages}"

    @contextmanager
    def start_worker(self) -> Iterator[Worker]:
        self.base.mkdir(parents=True, exist_ok=True)
        with start_worker(self.python, self.program.worker, self.base, *self.program.arguments) as worker:
            yield worker

    def do(self, task: str, home: Path, **arguments: Any) -> Any:
        """Run one task in a separate process."""
        with self.start_worker() as worker:
            return worker.ask(task=task, home=str(home), **arguments)


def why_missing(program: Program, python: Path | None) -> str | None:
    """Return why the program cannot be measured; None if it can."""
    if python is None:
        return f"no environment is given (--python {program.name}=PATH)"
    if not python.exists():
        return f"{python} does not exist"
    check = [str(python), "-c", f"import {program.package}"]
    if subprocess.run(check, capture_output=True, check=False).returncode != 0:
        return f"{python} has no package {program.package}"
    return None


def interpreter_of(name: str, given: dict[str, Path]) -> Path | None:
    """Return the interpreter for a program; both ways to use tantivy share one environment."""
    if name in (OURS, FTS5):
        return given.get(name, Path(sys.executable))
    return given.get(name, given.get(TANTIVY) if name == TANTIVY_OURS else None)
