"""Measures what changes as a home grows: what is found, what a search costs, and what recording costs.

    python -m benchmarks.growth --home DIR                        # 10,000 and 100,000 messages, both corpora
    python -m benchmarks.growth --home DIR --sizes 10000,100000,500000 --json FILE

Stores and corpora stay in DIR: a second run measures them again without building them, and an interrupted run
continues. See README.md beside this file.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.curated import report
from benchmarks.growth.corpora import GENERATORS, Corpus
from benchmarks.growth.plan import Plan, make_plan
from benchmarks.growth.programs import OURS, PROGRAMS, Installed, interpreter_of, why_missing
from benchmarks.growth.searches import Figures, measure_searches
from benchmarks.growth.store import Memoranda
from benchmarks.growth.table import as_tables
from benchmarks.growth.upkeep import measure_reads, measure_writes
from benchmarks.sessions.tasks import disk

_LOAD, _SEARCH, _READ, _WRITE = PARTS = ("load", "search", "read", "write")


def prepare(base: Path, name: str, messages: int) -> tuple[Path, Plan]:
    """Return the plan of a corpus at this size, and its file; both are made if they are missing."""
    corpus = Corpus(name, base / "corpora")
    corpus.grow(messages, report)
    path = corpus.directory / f"{name}-{messages}.plan.json"
    if not path.exists():
        plan = make_plan(corpus, messages)
        data = {"corpus": name, "messages": messages, "plan": plan.as_data()}
        path.write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    return path, Plan.from_data(json.loads(path.read_text("utf-8"))["plan"])


def measure_load(program: Installed, corpus: str, messages: int, plan: Path) -> Figures:
    """Load the corpus, or read what that took before."""
    return as_load_figures(program.do("load", program.home(corpus, messages), plan=str(plan)))


def as_load_figures(figures: dict[str, Any]) -> Figures:
    """Return what a load took per message, and the files per byte of text."""
    per_message = 1000 / figures["messages"]
    return {
        "append in batches, ms per message": figures["append"] * per_message,
        "indexing, ms per message": figures["index"] * per_message,
        "disk / text": figures["disk"] / figures["text"],
        "disk / text, record": (figures["disk"] - figures["index_disk"]) / figures["text"],
        "disk / text, index": figures["index_disk"] / figures["text"],
        "text, MB": figures["text"] / 1e6,
    }


def measure_index(program: Installed, home: Path) -> Figures:
    """Build the index of an existing home again, for a version whose record is the same and whose index is another."""
    report("building the index …")
    cpu = program.do("reindex", home)["cpu"]
    saved = home.with_name(f"{home.name}.load.json")
    figures = json.loads(saved.read_text("utf-8"))
    index_disk = sum(path.stat().st_size for path in Memoranda().index_files(home))
    figures |= {"index": cpu, "index_disk": index_disk, "disk": disk(home)}
    saved.write_text(json.dumps(figures), "utf-8")
    return as_load_figures(figures)


def find_programs(names: list[str], given: dict[str, Path], base: Path) -> tuple[list[Installed], dict[str, str]]:
    """Return the programs that can be measured, and why the others cannot."""
    installed: list[Installed] = []
    missing: dict[str, str] = {}
    for name in names:
        python = interpreter_of(name, given)
        reason = why_missing(PROGRAMS[name], python)
        if reason is None and python is not None:
            installed.append(Installed(PROGRAMS[name], python, base))
        else:
            missing[name] = reason or ""
            report(f"{name} is skipped: {reason}")
    return installed, missing


def run(arguments: argparse.Namespace, save: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    base = arguments.home.resolve()
    programs, missing = find_programs(arguments.programs, dict(arguments.python), base)
    figures: dict[str, dict[str, dict[str, Figures]]] = {}
    result = {"python": platform.python_version(), "sizes": arguments.sizes, "figures": figures, "missing": missing}
    for messages in arguments.sizes:
        for name in arguments.corpora:
            plan_file, plan = prepare(base, name, messages)
            for program in programs:
                if messages > (program.program.max_messages or messages):
                    continue
                report(f"{program.name}: {name}, {messages:,} messages …")
                measured = measure_load(program, name, messages, plan_file)
                if program.name == OURS and arguments.reindex:
                    measured |= measure_index(program, program.home(name, messages))
                if _SEARCH in arguments.parts:
                    measured |= measure_searches(program, name, messages, plan, arguments.rounds)
                home, corpus = program.home(name, messages), Corpus(name, base / "corpora")
                if program.name == OURS and _READ in arguments.parts:
                    measured |= measure_reads(program, home, plan)
                if program.name == OURS and _WRITE in arguments.parts:
                    seconds = arguments.load_seconds
                    measured |= measure_writes(program, home, plan_file, corpus, messages, seconds)
                figures.setdefault(name, {}).setdefault(str(messages), {})[program.name] = measured
                save(result)
    return result


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what changes as a home grows.")
    parser.add_argument("--home", type=Path, required=True, metavar="DIR", help="where stores and corpora are kept")
    parser.add_argument("--sizes", type=_integers, default=[10_000, 100_000], help="messages, separated by commas")
    parser.add_argument("--corpora", type=_names(GENERATORS), default=list(GENERATORS), help="mixed, tools")
    parser.add_argument("--programs", type=_names(PROGRAMS), default=list(PROGRAMS), help=", ".join(PROGRAMS))
    parser.add_argument("--parts", type=_names(PARTS), default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument(
        "--python", type=_interpreter, action="append", default=[], metavar="NAME=PATH", help="a peer's interpreter"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each search is asked")
    parser.add_argument("--reindex", action="store_true", help="build the index again before measuring")
    parser.add_argument("--load-seconds", type=float, default=70.0, help="how long the index is put under load")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    return parser.parse_args(arguments)


def _integers(text: str) -> list[int]:
    return sorted(int(number.replace("_", "")) for number in text.split(","))


def _names(known: Any) -> Callable[[str], list[str]]:
    def parse_names(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return names

    return parse_names


def _interpreter(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if name not in PROGRAMS or not path:
        raise argparse.ArgumentTypeError(f"not NAME=PATH with a known name: {text}")
    return name, Path(path)


def main() -> None:
    arguments = parse(sys.argv[1:])

    def save(result: dict[str, Any]) -> None:
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(result, indent=1, ensure_ascii=False), "utf-8")

    try:
        print(as_tables(run(arguments, save)))
    except KeyboardInterrupt:
        raise SystemExit("Interrupted; the same command continues.") from None


if __name__ == "__main__":
    main()
