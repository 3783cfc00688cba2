"""Prints the figures as tables, one per corpus and program, with the growth from the smallest to the largest size.

python -m benchmarks.growth.table FIGURES.json ...      # of one run or several, later files replace earlier ones
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.growth.bars import missed_bars


def as_tables(result: dict[str, Any]) -> str:
    """Return all tables as Markdown."""
    tables = [
        _table(
            f"{corpus}, {program}", {size: programs[program] for size, programs in sizes.items() if program in programs}
        )
        for corpus, sizes in result["figures"].items()
        for program in dict.fromkeys(name for programs in sizes.values() for name in programs)
    ]
    skipped = [f"{name} is skipped: {reason}." for name, reason in result["missing"].items()]
    missed = [f"- {line}" for line in missed_bars(result["figures"])]
    verdict = "Bars that are missed:\n" + "\n".join(missed) if missed else "Every bar that was measured holds."
    return "\n\n".join([*tables, *skipped, verdict])


def _table(title: str, figures: dict[str, dict[str, float]]) -> str:
    sizes = list(figures)
    lines = [f"| {title} | {' | '.join(f'{int(size):,}' for size in sizes)} | growth |"]
    lines.append("|---|" + "---:|" * (len(sizes) + 1))
    for measure in dict.fromkeys(name for values in figures.values() for name in values):
        values = [figures[size].get(measure) for size in sizes]
        cells = ["–" if value is None else _number(value, measure) for value in values]
        first, last = values[0], values[-1]
        growth = f"{last / first:.2f}" if first and last is not None and len(sizes) > 1 else ""
        lines.append(f"| {measure} | {' | '.join(cells)} | {growth} |")
    return "\n".join(lines)


def _number(value: float, measure: str) -> str:
    if measure.startswith("hit"):
        return f"{value:.2f}"
    if "per message" in measure:
        return f"{value:.3f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def read_figures(files: Iterable[Path]) -> dict[str, Any]:
    """Return the figures of several runs as one."""
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    missing: dict[str, str] = {}
    for file in files:
        result = json.loads(file.read_text("utf-8"))
        missing |= result["missing"]
        for corpus, sizes in result["figures"].items():
            for size, programs in sizes.items():
                for program, measured in programs.items():
                    place = figures.setdefault(corpus, {}).setdefault(size, {})
                    place[program] = place.get(program, {}) | measured
    for corpus, sizes in figures.items():
        figures[corpus] = dict(sorted(sizes.items(), key=lambda item: int(item[0])))
    return {"figures": figures, "missing": missing}


if __name__ == "__main__":
    print(as_tables(read_figures(Path(name) for name in sys.argv[1:])))
