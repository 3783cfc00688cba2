"""Prints the figures as Markdown: one table for Memoranda with its growth, and one per corpus and size with the peers.

python -m benchmarks.growth.table FIGURES.json ...      # of one run or several, later files replace earlier ones
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.growth.bars import BARS, missed_bars
from benchmarks.growth.programs import OURS

Sizes = dict[str, dict[str, dict[str, float]]]


def as_tables(result: dict[str, Any]) -> str:
    """Return all tables, the programs that were skipped, and the bars that are missed."""
    figures: dict[str, Sizes] = result["figures"]
    measured = any(OURS in programs for _, _, programs in _flat(figures))
    tables = [_growth_table(figures)] if measured else []
    tables += [
        _comparison(f"{corpus}, {int(size):,} messages", programs)
        for corpus, size, programs in _flat(figures)
        if set(programs) != {OURS}
    ]
    skipped = [f"{name} is skipped: {reason}." for name, reason in result["missing"].items()]
    missed = [f"- {line}" for line in missed_bars(figures)]
    verdict = "Bars that are missed:\n" + "\n".join(missed) if missed else "Every bar that was measured holds."
    return "\n\n".join([*tables, *skipped, *([verdict] if measured else [])])


def _flat(figures: dict[str, Sizes]) -> list[tuple[str, str, dict[str, dict[str, float]]]]:
    return [(corpus, size, programs) for corpus, sizes in figures.items() for size, programs in sizes.items()]


def _growth_table(figures: dict[str, Sizes]) -> str:
    """Return the figures of Memoranda at every size of every corpus, and their growth from the first to the last."""
    ours = {
        corpus: {size: programs[OURS] for size, programs in sizes.items() if OURS in programs}
        for corpus, sizes in figures.items()
    }
    titles = [
        title for corpus, sizes in ours.items() for title in [*(f"{corpus} {_size(size)}" for size in sizes), "growth"]
    ]
    lines = _head("Memoranda", ["to reach", *titles])
    for measure in _measures(values for sizes in ours.values() for values in sizes.values()):
        bars = [str(bar) for bar in BARS if bar.measure == measure]
        cells = [bars[0] if bars else ""]
        for sizes in ours.values():
            values = [measured.get(measure) for measured in sizes.values()]
            cells += [_number(value, measure) for value in values]
            cells.append(_growth(values))
        lines.append(f"| {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _growth(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{known[-1] / known[0]:.2f}" if len(known) > 1 and known[0] else ""


def _comparison(title: str, programs: dict[str, dict[str, float]]) -> str:
    """Return the measures that any peer has, too."""
    peers = [name for name in programs if name != OURS]
    names = [OURS, *peers] if OURS in programs else peers
    lines = _head(title, names)
    for measure in _measures(programs[name] for name in peers):
        cells = [_number(programs[name].get(measure), measure) for name in names]
        lines.append(f"| {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _measures(figures: Iterable[dict[str, float]]) -> list[str]:
    return list(dict.fromkeys(measure for values in figures for measure in values))


def _head(title: str, columns: list[str]) -> list[str]:
    return [f"| {title} | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]


def _size(size: str) -> str:
    return f"{int(size) // 1000:,}k" if int(size) >= 1000 else size


def _number(value: float | None, measure: str) -> str:
    if value is None:
        return "–"
    if measure.startswith(("hit", "disk")):
        return f"{value:.2f}"
    if "per message" in measure or ("append" in measure and "ms" in measure):
        return f"{value:.3f}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def read_figures(files: Iterable[Path]) -> dict[str, Any]:
    """Return the figures of several runs as one."""
    figures: dict[str, Sizes] = {}
    missing: dict[str, str] = {}
    for file in files:
        result = json.loads(file.read_text("utf-8"))
        missing |= result["missing"]
        for corpus, size, programs in _flat(result["figures"]):
            place = figures.setdefault(corpus, {}).setdefault(size, {})
            for program, measured in programs.items():
                place[program] = place.get(program, {}) | measured
    ordered = {corpus: dict(sorted(sizes.items(), key=lambda item: int(item[0]))) for corpus, sizes in figures.items()}
    return {"figures": ordered, "missing": missing}


if __name__ == "__main__":
    print(as_tables(read_figures(Path(name) for name in sys.argv[1:])))
