"""Draws the growth curves as an SVG picture from the figures that the benchmark wrote.

    python -m benchmarks.growth.picture FIGURES.json --output docs/pictures/growth.svg

One panel per measure, one line per program and corpus, sizes on a logarithmic scale. The picture has a background,
and other colours where the reader prefers dark ones.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.growth.table import read_figures

_PANELS = (
    ("hit@3, question", "Notes found by a question, hit@3", "", False),
    ("question, 8 to 12 words, p50, ms", "Question, CPU p50, ms", "ms", True),
    ("five plain words, p50, ms", "Five words, CPU p50, ms", "ms", True),
    ("phrase, p50, ms", "Phrase, CPU p50, ms", "ms", True),
    ("list_sessions_rich(20), CPU, ms", "Latest 20 conversations, CPU, ms", "ms", True),
    ("disk / text", "Disk / text", "×", False),
)
_COLORS = {
    "memoranda": "#c2410c",
    "memoranda before": "#9a8c7c",
    "fts5": "#2563eb",
    "tantivy-ours": "#15803d",
    "hermes": "#9333ea",
    "mem0": "#0e7490",
}
_NAMES = {"tantivy-ours": "tantivy, our tokens", "fts5": "SQLite FTS5", "hermes": "Hermes 0.19", "mem0": "Mem0"}
_DASHES = {"mixed": "", "tools": "5 4"}
_COLUMNS = 3
_WIDTH, _HEIGHT = 290, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 22, 34, 30
_MARGIN, _LEGEND = 14, 46
_STYLE = """
text{font:11px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#333}.h{font-weight:600;font-size:12px}
.b{fill:#fff}.g{stroke:#ddd}.l{fill:none;stroke-width:2}.e{text-anchor:end}.m{text-anchor:middle}
@media (prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#1b1d21}.g{stroke:#3a3d44}.l,circle{filter:brightness(1.5)}}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """The values of one program on one corpus, by size."""

    program: str
    corpus: str
    points: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps a value to a coordinate, linearly or by its logarithm."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)


def lines_of(figures: dict[str, Any], measure: str) -> list[Line]:
    """Return one line per program and corpus that has the measure at two sizes or more."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for corpus, sizes in figures.items():
        for size, programs in sizes.items():
            for program, measures in programs.items():
                if program in _COLORS and measures.get(measure) is not None:
                    found.setdefault((program, corpus), []).append((int(size), measures[measure]))
    return [Line(program, corpus, sorted(points)) for (program, corpus), points in found.items()]


def draw(figures: dict[str, Any]) -> str:
    """Return the picture as SVG."""
    panels = [(panel, lines_of(figures, panel[0])) for panel in _PANELS]
    shown = [(panel, lines) for panel, lines in panels if lines]
    rows = math.ceil(len(shown) / _COLUMNS)
    width = 2 * _MARGIN + _COLUMNS * _WIDTH
    height = 2 * _MARGIN + _LEGEND + rows * _HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        "<title>What changes from 10,000 to 500,000 messages</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="b" width="{width}" height="{height}" rx="6"/>',
        *_legend([line for _, lines in shown for line in lines]),
    ]
    for number, ((_, title, unit, logarithmic), lines) in enumerate(shown):
        left = _MARGIN + number % _COLUMNS * _WIDTH
        top = _MARGIN + _LEGEND + number // _COLUMNS * _HEIGHT
        parts += [f'<g transform="translate({left} {top})">', *_panel(title, unit, logarithmic, lines), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _legend(lines: list[Line]) -> Iterator[str]:
    left, middle = _MARGIN + 8, _MARGIN + 12
    for program in [name for name in _COLORS if any(line.program == name for line in lines)]:
        name = _NAMES.get(program, program)
        yield f'<line class="l" x1="{left}" x2="{left + 18}" y1="{middle}" y2="{middle}" stroke="{_COLORS[program]}"/>'
        yield f'<text x="{left + 23}" y="{middle + 4}">{escape(name)}</text>'
        left += 40 + round(6.2 * len(name))
    left, middle = _MARGIN + 8, middle + 18
    for corpus in sorted({line.corpus for line in lines}):
        dash = f' stroke-dasharray="{_DASHES[corpus]}"' if _DASHES.get(corpus) else ""
        yield f'<line class="l" x1="{left}" x2="{left + 26}" y1="{middle}" y2="{middle}" stroke="#888"{dash}/>'
        yield f'<text x="{left + 31}" y="{middle + 4}">corpus {escape(corpus)}</text>'
        left += 120


def _panel(title: str, unit: str, logarithmic: bool, lines: list[Line]) -> Iterator[str]:
    values = [value for line in lines for _, value in line.points]
    sizes = sorted({size for line in lines for size, _ in line.points})
    low, high = _range(values, logarithmic)
    across = Scale(sizes[0], max(sizes[-1], sizes[0] + 1), _LEFT, _WIDTH - _RIGHT, True)
    up = Scale(low, high, _HEIGHT - _BOTTOM, _TOP, logarithmic)
    yield f'<text class="h" x="{_LEFT}" y="20">{escape(title)}</text>'
    for value in _ticks(low, high, logarithmic):
        y = round(up.place(value), 1)
        yield f'<line class="g" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="e" x="{_LEFT - 5}" y="{y + 4}">{value:g}{unit if unit == "×" else ""}</text>'
    for size in sizes:
        label = f"{size // 1000:,}k"
        yield f'<text class="m" x="{across.place(size):.0f}" y="{_HEIGHT - _BOTTOM + 16}">{label}</text>'
    for line in sorted(lines, key=lambda line: line.program == "memoranda"):
        color, dash = _COLORS[line.program], _DASHES.get(line.corpus, "")
        places = [(across.place(size), up.place(value)) for size, value in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        yield f'<polyline class="l" stroke="{color}"{dashes} points="{path}"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>' for x, y in places)


def _range(values: list[float], logarithmic: bool) -> tuple[float, float]:
    """Return limits a little outside of the values; a linear scale starts at 0."""
    if not logarithmic:
        return 0.0, max(1.0, max(values) * 1.05)
    return min(values) / 1.3, max(values) * 1.3


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        steps = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
        ticks = [value for value in steps if low <= value <= high]
        return ticks if len(ticks) <= 7 else [value for value in ticks if f"{value:e}"[0] == "1"]
    step = next(step for step in (0.2, 0.5, 1, 2, 5, 10) if high / step <= 7)
    return [step * number for number in range(int(high / step) + 1)]


def with_before(figures: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with those of an earlier version as a program of its own."""
    for corpus, sizes in before.items():
        for size, programs in sizes.items():
            if "memoranda" in programs:
                place = figures.setdefault(corpus, {}).setdefault(size, {})
                place["memoranda before"] = programs["memoranda"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the growth curves.")
    parser.add_argument("figures", type=Path, nargs="+", help="what runs of the benchmark wrote with --json")
    parser.add_argument("--before", type=Path, help="the same of an earlier version")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    figures = read_figures(arguments.figures)["figures"]
    if arguments.before:
        figures = with_before(figures, read_figures([arguments.before])["figures"])
    arguments.output.write_text(draw(figures), "utf-8")


if __name__ == "__main__":
    main()
