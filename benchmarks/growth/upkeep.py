"""Measures what only Memoranda is asked to do: opening, listing, appending, lag, exporting, deleting and pruning."""

import shutil
from pathlib import Path
from statistics import median

from benchmarks.curated import report
from benchmarks.growth.commands import measure_deletion, measure_export
from benchmarks.growth.corpora import Corpus
from benchmarks.growth.plan import WORDS, Plan
from benchmarks.growth.programs import Installed
from benchmarks.growth.searches import Figures

_OPENINGS, _PROCESSES = 7, 3


def measure_reads(program: Installed, home: Path, plan: Plan) -> Figures:
    """Measure what does not change the home, in new processes."""
    report("opening, listing, searching after misses …")
    openings = [program.do("open", home) for _ in range(_OPENINGS)]
    texts = [search.text for search in plan.searches if search.kind == WORDS]
    rounds = [program.do("search after misses", home, nothing=plan.nothing, texts=texts) for _ in range(_PROCESSES)]
    return {
        "open and first read, CPU, ms": 1000 * median(opening["cpu"] for opening in openings),
        "RSS after opening, MB": median(opening["rss"] for opening in openings),
        "list_sessions_rich(20), CPU, ms": 1000 * program.do("list", home)["cpu"],
        "search after a miss, median, wall, ms": 1000 * median(wall for each in rounds for wall in each["others"]),
        "search after a miss, slowest, wall, ms": 1000 * max(wall for each in rounds for wall in each["others"]),
        "search that finds nothing, slowest, wall, ms": 1000 * max(wall for each in rounds for wall in each["misses"]),
    }


def measure_writes(
    program: Installed, home: Path, plan_file: Path, corpus: Corpus, messages: int, load_seconds: float
) -> Figures:
    """Measure what changes the home, in a copy that is deleted afterwards."""
    copy = home.with_name(f"{home.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy)
    try:
        report("appending …")
        appends = program.do("append", copy, plan=str(plan_file))
        report(f"a steady load of {load_seconds:g} s …")
        lag = program.do("lag", copy, plan=str(plan_file), seconds=load_seconds)
        report("exporting, deleting, pruning …")
        return (
            _as_ratios(appends)
            | {"index lag under load, s": lag["seconds"], "index lag under load, messages": lag["messages"]}
            | measure_export(copy)
            | measure_deletion(copy, corpus, messages)
        )
    finally:
        shutil.rmtree(copy)


def _as_ratios(appends: dict[str, list[float]]) -> Figures:
    (single, raw_single), (batch, raw_batch) = appends["single"], appends["batch"]
    return {
        "single append, CPU, ms": 1000 * single,
        "single append / raw SQLite": single / raw_single,
        "batch append, CPU, ms per message": 1000 * batch,
        "batch append / raw SQLite": batch / raw_batch,
    }
