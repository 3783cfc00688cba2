"""The bars that Memoranda has to reach in a large home, and which of them the figures miss."""

from dataclasses import dataclass
from typing import Any

from benchmarks.growth.plan import QUESTION, WORDS
from benchmarks.growth.programs import OURS


@dataclass(frozen=True, slots=True)
class Bar:
    """What a measure must not exceed at the largest size, or must reach if `at_least`."""

    measure: str
    limit: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


BARS = (
    Bar("hit@3, question", 0.98, at_least=True),
    Bar("hit@3, words", 0.98, at_least=True),
    Bar("hit@3, question, in cron sessions", 0.98, at_least=True),
    Bar("hit@3, words, in cron sessions", 0.98, at_least=True),
    Bar(f"{QUESTION}, p50, ms", 5),
    Bar(f"{QUESTION}, p95, ms", 15),
    Bar(f"{WORDS}, p50, ms", 5),
    Bar(f"{WORDS}, p95, ms", 15),
    Bar("indexing, ms per message", 0.1),
    Bar("disk / text", 1.55),
    Bar("export, RSS, MB", 100),
    Bar("single append / raw SQLite", 2.5),
    Bar("batch append / raw SQLite", 3),
    Bar("index lag under load, s", 5),
    Bar("delete a conversation, words in the files after", 0),
    Bar("prune a tenth, words in the files after", 0),
    Bar("prune a tenth, disk after / before", 0.95),
)
MAX_GROWTH = 1.5
# What must not grow with the home by more than that.
FLAT = (
    f"{QUESTION}, p50, ms",
    f"{WORDS}, p50, ms",
    "indexing, ms per message",
    "disk / text",
    "export, RSS, MB",
    "list_sessions_rich(20), CPU, ms",
    "open and first read, CPU, ms",
    "single append, CPU, ms",
    "batch append, CPU, ms per message",
    "delete a conversation, CPU, s",
)


def missed_bars(figures: dict[str, Any]) -> list[str]:
    """Return a line for each bar that is missed at the largest size, and for each measure that grows too much."""
    lines = []
    for corpus, sizes in figures.items():
        ours = {size: programs[OURS] for size, programs in sizes.items() if OURS in programs}
        if not ours:
            continue
        small, large = min(ours, key=int), max(ours, key=int)
        values, before = ours[large], ours[small]
        for bar in BARS:
            if (value := values.get(bar.measure)) is not None and not bar.holds(value):
                lines.append(f"{corpus}, {int(large):,} messages: {bar.measure} is {value:.3g}, to reach: {bar}")
        for measure in FLAT if small != large else ():
            if before.get(measure) and measure in values and values[measure] > MAX_GROWTH * before[measure]:
                growth = values[measure] / before[measure]
                lines.append(
                    f"{corpus}: {measure} grows {growth:.2f} times from {int(small):,} to {int(large):,} messages"
                )
    return lines
