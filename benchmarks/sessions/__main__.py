"""Sessions and search against Hermes Agent, at 10,000 and 100,000 messages, as a table of ratios.

Each program runs in worker processes of its own environment (`ours.py`, `hermes.py`), on the same corpus
(`corpus.py`) and the same file system, one after the other and never at once.
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

from benchmarks.curated import PEER, PEER_VERSION, PeerMissingError, Worker, find_peer, tell, working
from benchmarks.sessions.corpus import corpus
from benchmarks.sessions.queries import NO_MATCH, Query, queries
from benchmarks.sessions.table import as_table
from benchmarks.sessions.tasks import CONTINUE

SIZES, QUICK_SIZES = (10_000, 100_000), (2_000, 10_000)
# Rounds in which the programs take turns, calls kept per round (one more is made first), and fresh processes that open.
LOAD_ROUNDS, SEARCH_ROUNDS, SEARCH_CALLS, OPENINGS = 5, 6, 2, 15
# The large loads are done in so many parts, by turns: the speed of the machine changes from minute to minute.
PARTS = 40
# Messages that are appended one at a time with the index complete in between.
SLOW = 100
OURS, THEIRS = "ours", "hermes"


@dataclass(frozen=True, slots=True)
class Program:
    """One side: its name, the interpreter of its environment, its worker, and where its stores are made."""

    name: str
    python: Path
    worker: str
    base: Path

    def home(self, what: object) -> Path:
        return self.base / f"{self.name}-{what}"

    @contextmanager
    def working(self) -> Iterator[Worker]:
        with working(self.python, self.worker, self.base) as worker:
            yield worker

    def do(self, task: str, home: Path, **arguments: Any) -> Any:
        """One task in a process of its own."""
        with self.working() as worker:
            return worker.ask(task=task, home=str(home), **arguments)


def load(programs: list[Program], messages: int, part_size: int) -> dict[str, dict[str, Any]]:
    """A store with the corpus for each program, and what making it took. They take turns, part by part."""
    tell(f"{messages:,} messages, one at a time …")
    figures: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        workers = {each.name: stack.enter_context(each.working()) for each in programs}
        for each in programs:
            shutil.rmtree(each.home(messages), ignore_errors=True)
            workers[each.name].ask(task="load", home=str(each.home(messages)), messages=messages, part_size=part_size)
        while len(figures) < len(workers):
            for name, worker in workers.items():
                if name not in figures and (answer := worker.ask(task=CONTINUE)):
                    figures[name] = answer
    return figures


def best_load(programs: list[Program], messages: int) -> dict[str, dict[str, Any]]:
    """The best of several loads of both programs: other work only ever adds. The last stores are kept."""
    rounds = [load(programs, messages, messages) for _ in range(LOAD_ROUNDS)]
    return {
        each.name: {key: min(figures[each.name][key] for figures in rounds) for key in rounds[0][each.name]}
        for each in programs
    }


def measure(programs: list[Program], sizes: tuple[int, int]) -> dict[str, Any]:
    """Everything, as data: by measure, size and program."""
    small, large = sizes
    asked = queries(corpus(small))
    result: dict[str, Any] = {"sizes": sizes, "queries": [asdict(query) for query in asked]}
    result["load"] = {str(small): best_load(programs, small), str(large): load(programs, large, large // PARTS)}
    tell("batches …")
    result["batches"] = {
        each.name: each.do("load in batches", each.home("batches"), messages=small) for each in programs
    }
    result["search"] = {str(size): search(programs, size, asked) for size in sizes}
    result["browse"] = browse(programs, large)
    result["open"] = {each.name: openings(each, large) for each in programs}
    # The last, because it adds to the stores.
    tell("slow appends …")
    result["slowly"] = {each.name: each.do("append slowly", each.home(large), messages=SLOW) for each in programs}
    result["unfair"] = unfair(result)
    return result


def search(programs: list[Program], size: int, asked: list[Query]) -> dict[str, list[dict[str, Any]]]:
    """Per program and query the durations of all rounds, and what was found."""
    tell(f"search in {size:,} messages …")
    texts = [query.text for query in asked]
    rounds: dict[str, list[list[dict[str, Any]]]] = {each.name: [] for each in programs}
    for _ in range(SEARCH_ROUNDS):
        for each in programs:
            rounds[each.name].append(each.do("search", each.home(size), texts=texts, repetitions=SEARCH_CALLS))
    return {name: [_joined(answers) for answers in zip(*found, strict=True)] for name, found in rounds.items()}


def browse(programs: list[Program], size: int) -> dict[str, dict[str, Any]]:
    tell(f"browse {size:,} messages …")
    rounds: dict[str, list[dict[str, Any]]] = {each.name: [] for each in programs}
    for _ in range(SEARCH_ROUNDS):
        for each in programs:
            rounds[each.name].append(each.do("browse", each.home(size), repetitions=SEARCH_CALLS))
    return {name: _joined(tuple(answers)) for name, answers in rounds.items()}


def _joined(answers: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The durations of several rounds together; everything else as in the first."""
    durations = {clock: [value for answer in answers for value in answer[clock]] for clock in ("cpu", "wall")}
    return answers[0] | durations


def openings(program: Program, large: int) -> dict[str, dict[str, Any]]:
    """Fresh processes that open the large store and an empty one, in turn."""
    tell(f"{program.name}: opening …")
    homes = {"empty": program.home("empty"), "large": program.home(large)}
    program.do("open", homes["empty"])
    rounds = [{name: program.do("open", home) for name, home in homes.items()} for _ in range(OPENINGS)]
    return {name: _joined(tuple(answers[name] for answers in rounds)) for name in homes}


def unfair(result: dict[str, Any]) -> list[str]:
    """Queries that do not find what their class promises, and browsing that shows nothing."""
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
    parser.add_argument("--dir", type=Path, metavar="DIR", help="make all stores below this folder")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    try:
        peer_python = find_peer(arguments.peer_python)
    except PeerMissingError as error:
        tell(f"{error}\nWithout the peer there is nothing to compare with; these are only our figures.")
        peer_python = None
    result = run(peer_python, arguments.quick, arguments.dir)
    print(json.dumps(result, indent=1, ensure_ascii=False) if arguments.json else as_table(result))
    if result["unfair"]:
        raise SystemExit("Not a fair measurement:\n" + "\n".join(result["unfair"]))


if __name__ == "__main__":
    main()
