"""Formats the figures as Markdown tables, with the ratio of the two programs and the target of each figure."""

from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.sessions.tasks import percentile

# Two runs of the same opening differ by this much.
NOISE = 0.1


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both programs. `min_ratio` and `max_ours` are the targets for the ratio and for our figure."""

    measure: str
    size: int
    unit: str
    ours: float
    peer: float | None
    min_ratio: float | None = None
    max_ours: float | None = None

    def line(self, with_target: bool) -> str:
        ratio = self.peer / self.ours if self.peer is not None and self.ours else None
        cells = [self.measure, f"{self.size:,}", self._figure(self.ours), self._figure(self.peer), _format_ratio(ratio)]
        if with_target:
            cells += self._target(ratio)
        return f"| {' | '.join(cells)} |"

    def _figure(self, value: float | None) -> str:
        if value is None:
            return "-"
        return f"{value:.2f} ×" if self.unit == "×" else f"{value * 1000:,.3f} ms"

    def _target(self, ratio: float | None) -> list[str]:
        if self.min_ratio is not None and ratio is not None:
            return [f"ratio at least {self.min_ratio:g}", _verdict(ratio >= self.min_ratio)]
        if self.max_ours is not None:
            return [f"ours at most {self.max_ours:g} ×", _verdict(round(self.ours, 2) <= self.max_ours)]
        return ["", ""]


def as_table(result: dict[str, Any]) -> str:
    small, large = result["sizes"]
    rows = [*_append_rows(result, small, 5, 3), *_append_rows(result, large, 20, 8)]
    rows += [*_slow_rows(result, large), *_batch_rows(result, small)]
    rows += [*_search_rows(result, small), *_search_rows(result, large, 5, 10)]
    rows += [*_browse_rows(result, large), *_open_rows(result, large)]
    # The targets are for the full sizes.
    with_targets = not result["quick"]
    sessions = result["load"][str(large)]["ours"]["sessions"]
    lines = [
        *_head(["", "messages", "memoranda", "hermes", "ratio", *(["target", "met"] if with_targets else [])]),
        *[row.line(with_targets) for row in rows],
        "",
        f"Discover by class of query, CPU at {large:,} messages ({sessions:,} sessions), median and 95th percentile:",
        "",
        *_head(["queries", "memoranda p50", "hermes p50", "ratio", "memoranda p95", "hermes p95", "ratio"]),
        *_class_lines(result, large),
        "",
        "The ratio is hermes / memoranda: above 1 ours is better.",
    ]
    return "\n".join(lines)


def _head(cells: list[str]) -> list[str]:
    return [f"| {' | '.join(cells)} |", "|---" + "|---:" * (len(cells) - 1) + "|"]


def _append_rows(result: dict[str, Any], size: int, min_ratio: float, min_ratio_together: float) -> list[Row]:
    figures = result["load"][str(size)]

    def row(measure: str, key: str, min_ratio: float | None = None) -> Row:
        return Row(measure, size, "ms", figures["ours"][key], _peer_figure(figures, key), min_ratio)

    def share(measure: str, part: str, whole: str, max_ours: float) -> Row:
        ours, peer = ((side[part] / side[whole] if side else None) for side in (figures["ours"], figures.get("hermes")))
        assert ours is not None
        return Row(measure, size, "×", ours, peer, max_ours=max_ours)

    return [
        row("append, caller's CPU", "cpu", min_ratio),
        row("append, caller's CPU, last tenth", "last"),
        share("append, last tenth / first tenth", "last", "first", 1.3),
        row("append and index, CPU", "together_cpu", min_ratio_together),
        row("append and index, wall", "together_wall"),
        row("append, wall, median", "wall_p50"),
        row("append, wall, 95th percentile", "wall_p95"),
        row("append, wall, longest", "wall_max"),
        row("reference work in between, CPU", "pace"),
        share("disk / raw text", "disk", "raw", 1.7),
    ]


def _slow_rows(result: dict[str, Any], size: int) -> list[Row]:
    figures, key = result["slowly"], "together_cpu"
    return [Row("append and index, one by one, CPU", size, "ms", figures["ours"][key], _peer_figure(figures, key))]


def _batch_rows(result: dict[str, Any], size: int) -> list[Row]:
    figures, name = result["batches"], "a session in one commit"
    return [
        Row(f"{name}, caller's CPU per message", size, "ms", figures["ours"]["cpu"], _peer_figure(figures, "cpu")),
        Row(f"{name}, wall per message", size, "ms", figures["ours"]["wall"], _peer_figure(figures, "wall")),
    ]


def _search_rows(result: dict[str, Any], size: int, half: float | None = None, tail: float | None = None) -> list[Row]:
    answers = result["search"][str(size)]
    ours, peer = (_durations(answers.get(name), "cpu") for name in ("ours", "hermes"))
    ours_wall, peer_wall = (_durations(answers.get(name), "wall") for name in ("ours", "hermes"))
    return [
        _percentiles("discover, CPU, median", size, ours, peer, 50, half),
        _percentiles("discover, CPU, 95th percentile", size, ours, peer, 95, tail),
        _percentiles("discover, wall, median", size, ours_wall, peer_wall, 50),
        _percentiles("discover, wall, 95th percentile", size, ours_wall, peer_wall, 95),
    ]


def _percentiles(
    measure: str, size: int, ours: list[float], peer: list[float], percent: int, min_ratio: float | None = None
) -> Row:
    return Row(measure, size, "ms", percentile(ours, percent), percentile(peer, percent) if peer else None, min_ratio)


def _durations(answers: list[dict[str, Any]] | None, clock: str) -> list[float]:
    return [value for answer in answers or [] for value in answer[clock]]


def _browse_rows(result: dict[str, Any], size: int) -> list[Row]:
    ours, peer = result["browse"]["ours"], result["browse"].get("hermes")
    return [
        Row("browse, CPU", size, "ms", median(ours["cpu"]), median(peer["cpu"]) if peer else None, 20),
        Row("browse, wall", size, "ms", median(ours["wall"]), median(peer["wall"]) if peer else None),
    ]


def _open_rows(result: dict[str, Any], size: int) -> list[Row]:
    """Use the best of many openings: longer ones were slowed down by other work on the machine."""
    rows = []
    for clock, name in (("cpu", "CPU"), ("wall", "wall")):
        empty, large = (
            {side: min(stores[store][clock]) for side, stores in result["open"].items()} for store in ("empty", "large")
        )
        share = {side: large[side] / empty[side] for side in large}
        rows += [
            Row(f"open an empty store, {name}", 0, "ms", empty["ours"], empty.get("hermes")),
            Row(f"open a large store, {name}", size, "ms", large["ours"], large.get("hermes")),
            Row(f"open, large / empty, {name}", size, "×", share["ours"], share.get("hermes"), max_ours=1.0 + NOISE),
        ]
    return rows


def _class_lines(result: dict[str, Any], size: int) -> list[str]:
    lines = []
    kinds = [query["kind"] for query in result["queries"]]
    for kind in dict.fromkeys(kinds):
        cells = [f"{kind} ({kinds.count(kind)})"]
        for percent in (50, 95):
            ours, peer = (_of_kind(result, size, name, kind, percent) for name in ("ours", "hermes"))
            assert ours is not None
            ratio = peer / ours if peer is not None else None
            cells += [f"{ours * 1000:,.2f} ms", "-" if peer is None else f"{peer * 1000:,.2f} ms", _format_ratio(ratio)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _of_kind(result: dict[str, Any], size: int, name: str, kind: str, percent: int) -> float | None:
    answers = result["search"][str(size)].get(name)
    if answers is None:
        return None
    chosen = [answer for query, answer in zip(result["queries"], answers, strict=True) if query["kind"] == kind]
    return percentile(_durations(chosen, "cpu"), percent)


def _peer_figure(figures: dict[str, Any], key: str) -> float | None:
    return figures["hermes"][key] if "hermes" in figures else None


def _format_ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _verdict(passed: bool) -> str:
    return "yes" if passed else "NO"
