"""Compares sessions and search with Hermes Agent, at 10,000 and 100,000 messages, and prints a table of ratios.

Each program runs in worker processes of its own environment (`ours.py`, `hermes.py`), on the same corpus
(`corpus.py`) and the same file system, one after the other and never at the same time.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.curated import PEER, PEER_VERSION, PeerMissingError, Worker, find_peer, report, start_worker
from benchmarks.sessions.corpus import corpus
from benchmarks.sessions.queries import NO_MATCH, Query, queries
from benchmarks.sessions.table import as_table
from benchmarks.sessions.tasks import CONTINUE

SIZES, QUICK_SIZES = (10_000, 100_000), (2_000, 10_000)
# Rounds in which the programs take turns, calls counted per round (after one that is not), and processes that open.
LOAD_ROUNDS, SEARCH_ROUNDS, SEARCH_CALLS, OPENINGS = 5, 6, 2, 15
# The large loads are done in this many parts, in turn, because the speed of the machine changes from minute to minute.
PARTS = 40
# Messages that are appended one at a time with the index complete in between.
SLOW = 100
OURS, THEIRS = "ours", "hermes"


@dataclass(frozen=True, slots=True)
class Program:
    """One side: its name, the interpreter of its environment, its worker, and the directory of its stores."""

    name: str
    python: Path
    worker: str
    base: Path

    def home(self, label: object) -> Path:
        return self.base / f"{self.name}-{label}"

    @contextmanager
    def start_worker(self) -> Iterator[Worker]:
        with start_worker(self.python, self.worker, self.base) as worker:
            yield worker

    def do(self, task: str, home: Path, **arguments: Any) -> Any:
        """Run one task in a separate process."""
        with self.start_worker() as worker:
            return worker.ask(task=task, home=str(home), **arguments)


def load(programs: list[Program], messages: int, part_size: int) -> dict[str, dict[str, Any]]:
    """Load the corpus into a store of each program, in turn and part by part; returns what that took."""
    report(f"{messages:,} messages, one at a time …")
    figures: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        workers = {program.name: stack.enter_context(program.start_worker()) for program in programs}
        for program in programs:
            shutil.rmtree(program.home(messages), ignore_errors=True)
            workers[program.name].ask(
                task="load", home=str(program.home(messages)), messages=messages, part_size=part_size
            )
        while len(figures) < len(workers):
            for name, worker in workers.items():
                if name not in figures and (answer := worker.ask(task=CONTINUE)):
                    figures[name] = answer
    return figures


def best_load(programs: list[Program], messages: int) -> dict[str, dict[str, Any]]:
    """Return the best of several loads of both programs: other work only adds time. The last stores are kept."""
    rounds = [load(programs, messages, messages) for _ in range(LOAD_ROUNDS)]
    return {
        program.name: {key: min(figures[program.name][key] for figures in rounds) for key in rounds[0][program.name]}
        for program in programs
    }


def measure(programs: list[Program], sizes: tuple[int, int]) -> dict[str, Any]:
    """Measure everything; returns data by measure, size and program."""
    small, large = sizes
    asked = queries(corpus(small))
    result: dict[str, Any] = {"sizes": sizes, "queries": [asdict(query) for query in asked]}
    result["load"] = {str(small): best_load(programs, small), str(large): load(programs, large, large // PARTS)}
    report("batches …")
    result["batches"] = {
        program.name: program.do("load in batches", program.home("batches"), messages=small) for program in programs
    }
    result["search"] = {str(size): search(programs, size, asked) for size in sizes}
    result["browse"] = browse(programs, large)
    result["open"] = {program.name: measure_openings(program, large) for program in programs}
    # The last, because it adds to the stores.
    report("slow appends …")
    result["slowly"] = {
        program.name: program.do("append slowly", program.home(large), messages=SLOW) for program in programs
    }
    result["unfair"] = find_unfair(result)
    return result


def search(programs: list[Program], size: int, asked: list[Query]) -> dict[str, list[dict[str, Any]]]:
    """Return, for each program and query, the durations of all rounds and what was found."""
    report(f"search in {size:,} messages …")
    texts = [query.text for query in asked]
    rounds: dict[str, list[list[dict[str, Any]]]] = {program.name: [] for program in programs}
    for _ in range(SEARCH_ROUNDS):
        for program in programs:
            rounds[program.name].append(program.do("search", program.home(size), texts=texts, repetitions=SEARCH_CALLS))
    return {name: [_merge_rounds(answers) for answers in zip(*found, strict=True)] for name, found in rounds.items()}


def browse(programs: list[Program], size: int) -> dict[str, dict[str, Any]]:
    report(f"browse {size:,} messages …")
    rounds: dict[str, list[dict[str, Any]]] = {program.name: [] for program in programs}
    for _ in range(SEARCH_ROUNDS):
        for program in programs:
            rounds[program.name].append(program.do("browse", program.home(size), repetitions=SEARCH_CALLS))
    return {name: _merge_rounds(tuple(answers)) for name, answers in rounds.items()}


def _merge_rounds(answers: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """Merge the durations of several rounds; everything else is as in the first."""
    durations = {clock: [value for answer in answers for value in answer[clock]] for clock in ("cpu", "wall")}
    return answers[0] | durations


def measure_openings(program: Program, large: int) -> dict[str, dict[str, Any]]:
    """Open the large store and an empty one in new processes, in turn."""
    report(f"{program.name}: opening …")
    homes = {"empty": program.home("empty"), "large": program.home(large)}
    program.do("open", homes["empty"])
    rounds = [{name: program.do("open", home) for name, home in homes.items()} for _ in range(OPENINGS)]
    return {name: _merge_rounds(tuple(answers[name] for answers in rounds)) for name in homes}


def find_unfair(result: dict[str, Any]) -> list[str]:
    """List the queries that do not find what their class promises, and empty results of browsing."""
    wrong = []
    for size, sides in result["search"].items():
        for name, answers in sides.items():
            for query, answer in zip(result["queries"], answers, strict=True):
                if bool(answer["found"]) == (query["kind"] == NO_MATCH):
                    wrong.append(f"{name} at {size}: {query['text']!r} ({query['kind']}) found {answer['found']}")
    return wrong + [f"{name}: browse shows nothing" for name, answer in result["browse"].items() if not answer["found"]]


def run(peer_python: Path | None, quick: bool, base: Path | None) -> dict[str, Any]:
    with TemporaryDirectory(dir=base) as folder:
        programs = [Program(OURS, Path(sys.executable), "sessions.ours", Path(folder))]
        if peer_python:
            programs.append(Program(THEIRS, peer_python, "sessions.hermes", Path(folder)))
        return measure(programs, QUICK_SIZES if quick else SIZES) | {"quick": quick}


def main() -> None:
    parser = argparse.ArgumentParser(description=f"Measure sessions and search against {PEER} {PEER_VERSION}.")
    parser.add_argument("--peer-python", type=Path, metavar="PATH", help="use this environment of the peer")
    parser.add_argument("--quick", action="store_true", help="2,000 and 10,000 messages, for a first look")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="create all stores below this directory")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    try:
        peer_python = find_peer(arguments.peer_python)
    except PeerMissingError as error:
        report(f"{error}\nWithout the peer there is nothing to compare with; these are only our figures.")
        peer_python = None
    result = run(peer_python, arguments.quick, arguments.dir)
    print(json.dumps(result, indent=1, ensure_ascii=False) if arguments.json else as_table(result))
    if result["unfair"]:
        raise SystemExit("Not a fair measurement:\n" + "\n".join(result["unfair"]))


if __name__ == "__main__":
    main()
