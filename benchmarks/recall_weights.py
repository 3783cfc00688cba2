"""Shows whether the weights that were chosen on question sets help on sets on which they were not chosen.

    python -m benchmarks.recall_weights --data DIR

Every combination of a few round values is measured on every set. For each set, the combination that is best on the
other sets (mean gain of recall@5 over none of these signals) is then applied to it: what it gains there was not fitted.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.recall import Ask, interval, open_home, read_sets, score
from memoranda.search import ranking
from memoranda.search.legs import term_fetcher

_ENGLISH = ("locomo", "lme_pool", "beam100k", "engineering", "instructions")
# The weights, where they are, and the values tried; with the first values the signals decide nothing.
_VALUES: tuple[tuple[Any, str, tuple[float, ...]], ...] = (
    (ranking, "RELATED", (0.001, 0.2, 0.4, 0.6)),
    (term_fetcher, "STANDING", (0.001, 0.2, 0.3)),
)


class OpenSet(NamedTuple):
    """A set with the homes of its stores, which stay open for all combinations."""

    name: str
    questions: list[tuple[dict[str, Any], Ask]]


def open_sets(sets: Iterable[dict[str, Any]], stack: ExitStack) -> Iterator[OpenSet]:
    for data in sets:
        homes = {store["id"]: stack.enter_context(open_home(data, store)) for store in data["stores"]}
        yield OpenSet(data["name"], [(question, homes[question["store"]]) for question in data["queries"]])


def measure_with(values: tuple[float, ...], sets: list[OpenSet]) -> dict[str, list[float]]:
    """The recall@5 of every question of each set, with these weights."""
    before = [getattr(module, name) for module, name, _ in _VALUES]
    try:
        for (module, name, _), value in zip(_VALUES, values, strict=True):
            setattr(module, name, value)
        return {
            opened.name: [score(question, ask(question["q"], None))["recall@5"] for question, ask in opened.questions]
            for opened in sets
        }
    finally:
        for (module, name, _), value in zip(_VALUES, before, strict=True):
            setattr(module, name, value)


def gain(found: list[float], base: list[float]) -> list[float]:
    return [100 * (new - old) for new, old in zip(found, base, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory with *.json.gz sets")
    arguments = parser.parse_args()
    combinations = list(product(*(values for _, _, values in _VALUES)))
    found: dict[tuple[float, ...], dict[str, list[float]]] = {}
    with ExitStack() as stack:
        chosen = (data for data in read_sets(arguments.data, None) if data["name"] in _ENGLISH)
        sets = list(open_sets(chosen, stack))
        for values in combinations:
            found[values] = measure_with(values, sets)
            print(values, {name: f"{mean(some):.4f}" for name, some in found[values].items()}, file=sys.stderr)
    names = [opened.name for opened in sets]
    base = found[combinations[0]]
    gains = {values: {name: gain(found[values][name], base[name]) for name in names} for values in combinations}
    means = {values: {name: mean(some) for name, some in by_name.items()} for values, by_name in gains.items()}
    print(f"| set | {' | '.join(name for _, name, _ in _VALUES)} | gain with these, not fitted | 95 % |")
    print(f"|---|{'---:|' * len(_VALUES)}---:|---|")
    for name in names:
        best = max(combinations, key=lambda values: mean(means[values][other] for other in names if other != name))
        low, high = interval(gains[best][name])
        cells = [name, *map(str, best), f"{means[best][name]:+.2f}", f"{low:+.2f} to {high:+.2f}"]
        print(f"| {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
