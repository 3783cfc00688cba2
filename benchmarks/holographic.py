"""Measures how well the holographic memory answers by entity, compared with chance, and what a call costs.

Facts are generated: fifty people with names that share their parts, facts about one of them, facts about two, and
distractors about no person or about a namesake. They are stored as text, so the figures include finding the names.
Those sentences are regular. One task is harder: names as people type them (only a part, or with a wrong letter).
`fact_recall.py` measures recall for questions in other words, `contradictions.py` how well contradictions are found.
`python benchmarks/holographic.py` prints tables; run it with a Python that has numpy to see both kinds of arithmetic.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from memoranda.external.holographic import algebra
from memoranda.external.holographic.contradictions import find_contradictions
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.retrieval import FactFilter, Retriever

DEPTH = 4
SEEDS = (1, 2)
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_FIRST = ("Ana", "Bruno", "Chidi", "Dora", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jelena")
_LAST = ("Kovac", "Novak", "Okafor", "Marin", "Horvat", "Silva", "Tanaka", "Weber", "Larsen", "Moreau")
_ONE = (
    "{a} keeps the notes of the {thing} in a paper folder",
    "{a} is responsible for the {thing} since spring",
    "{a} reviews every change of the {thing} on Tuesdays",
    "According to the wiki, {a} wrote the first version of the {thing}",
    "The {thing} was tested by {a} last month",
    "{a} wants the {thing} to be quieter",
)
_TWO = (
    "{a} and {b} maintain the {thing} together",
    "{a} handed the {thing} over to {b}",
    "{a} asked {b} about the {thing}",
    "The {thing} was planned by {a} with {b}",
    "{a} pairs with {b} on the {thing}",
)
_IMPERSONAL = (
    "The {thing} is tested on Tuesdays by whoever is free",
    "Every change of the {thing} needs a review and a note in the wiki",
    "The first version of the {thing} was written in spring",
    "Somebody should hand the {thing} over before the summer",
    "Somebody called {first} asked about the {thing}",
    "A Mr {last} maintains the {thing} elsewhere",
)
_THINGS = tuple(
    f"{kind} {part}"
    for kind in ("billing", "search", "login", "audit", "backup", "image", "metrics", "payment", "mail", "export")
    for part in ("service", "page", "queue", "index", "report", "worker", "table", "gateway")
)


@dataclass(frozen=True)
class Generated:
    """The generated facts, each with the names that it is about."""

    names: tuple[str, ...]
    facts: tuple[tuple[str, frozenset[str]], ...]

    def pairs(self) -> list[tuple[str, str]]:
        """Return every pair of names that share a fact."""
        return sorted({(min(about), max(about)) for _, about in self.facts if len(about) == 2})


def generate(seed: int, facts: int = 400, names: int = 50) -> Generated:
    """Generate facts: a quarter about two people, an eighth about no person, the rest about one."""
    rng = random.Random(seed)
    people = rng.sample([f"{first} {last}" for first in _FIRST for last in _LAST], names)
    made: dict[str, frozenset[str]] = {}
    number = 0

    def thing() -> str:
        nonlocal number
        number += 1
        return f"{rng.choice(_THINGS)} {number}" if facts > 1000 else rng.choice(_THINGS)

    def fill(count: int, shapes: tuple[str, ...], who: Callable[[], tuple[str, ...]]) -> None:
        wanted = len(made) + count
        while len(made) < wanted:
            about = who()
            text = rng.choice(shapes).format(
                thing=thing(), first=rng.choice(_FIRST), last=rng.choice(_LAST),
                **dict(zip("ab", about, strict=False)),
            )  # fmt: skip
            made.setdefault(text, frozenset(about))

    together = [(people[index], people[(index + 1) % names]) for index in range(0, names, 2)]
    for pair in together:
        fill(facts // 4 // len(together), _TWO, lambda pair=pair: pair)  # type: ignore[misc]
    fill(facts // 8, _IMPERSONAL, tuple)
    for index in range(facts - len(made)):
        fill(1, _ONE, lambda index=index: (people[index % names],))  # type: ignore[misc]
    order = list(made.items())
    rng.shuffle(order)
    return Generated(tuple(people), tuple(order))


@contextmanager
def filled_store(generated: Generated, dimension: int = 1024) -> Iterator[FactStore]:
    """Yield a throw-away store with all the facts."""
    with (
        TemporaryDirectory(dir=_MEMORY) as directory,
        filled_store_at(Path(directory), [text for text, _ in generated.facts], dimension) as store,
    ):
        yield store


@contextmanager
def filled_store_at(home: Path, texts: list[str], dimension: int = 1024) -> Iterator[FactStore]:
    store = FactStore(home, dimension=dimension)
    try:
        for text in texts:
            store.add(text)
        yield store
    finally:
        store.close()


def precision(store: FactStore, generated: Generated) -> dict[str, float]:
    """Return the precision at 4 of probe, reason and related; a missing result counts as wrong."""
    ask = Retriever(store)
    filters = FactFilter(limit=DEPTH)
    about = dict(generated.facts)

    def share(texts: list[str], names: set[str]) -> float:
        return sum(names <= about[text] for text in texts) / DEPTH

    def neighbours(name: str) -> float:
        true = {other for people in about.values() if name in people for other in people} - {name}
        found = [neighbour.name for neighbour in ask.related(name, filters)[0]][: len(true)]
        return sum(other in true for other in found) / len(true) if true else 1.0

    probes = [share([found.fact.content for found in ask.probe(name, filters)], {name}) for name in generated.names]
    reasons = [
        share([found.fact.content for found in ask.reason(pair, filters)], set(pair)) for pair in generated.pairs()
    ]
    related = [share([f.fact.content for f in ask.related(name, filters)[1]], {name}) for name in generated.names]
    return {
        "probe": mean(probes),
        "reason": mean(reasons),
        "related (facts)": mean(related),
        "related (entities)": mean(map(neighbours, generated.names)),
    }


def probe_typed_names(store: FactStore, generated: Generated, seed: int = 0) -> dict[str, float]:
    """Return the precision at 4 of probe for a name with a letter wrong, missing or swapped, and for a last name."""
    rng = random.Random(seed)
    ask, filters, about = Retriever(store), FactFilter(limit=DEPTH), dict(generated.facts)

    def precision_of(name: str, typed: str) -> float:
        meant = {other for other in generated.names if typed in other} or {name}
        texts = [found.fact.content for found in ask.probe(typed, filters)]
        return sum(bool(meant & about[text]) for text in texts) / DEPTH

    def misspell(name: str) -> str:
        index = rng.randrange(1, len(name) - 2)
        kind = rng.choice(("wrong", "missing", "swapped"))
        if kind == "wrong":
            return name[:index] + rng.choice("aeiourst") + name[index + 1 :]
        if kind == "missing":
            return name[:index] + name[index + 1 :]
        return name[:index] + name[index + 1] + name[index] + name[index + 2 :]

    return {
        "probe, misspelt name": mean(precision_of(name, misspell(name)) for name in generated.names),
        "probe, last name": mean(precision_of(name, name.split()[1]) for name in generated.names),
    }


def chance_level(generated: Generated) -> dict[str, float]:
    """Return the share of right facts among all facts, which is the precision of a random choice."""
    total = len(generated.facts)
    single = mean(sum(name in about for _, about in generated.facts) / total for name in generated.names)
    both = mean(sum(set(pair) <= about for _, about in generated.facts) / total for pair in generated.pairs())
    return {
        "probe": single, "reason": both, "related (facts)": single, "related (entities)": 1 / len(generated.names)
    }  # fmt: skip


def measure_costs(facts: int) -> dict[str, float]:
    """Return the median CPU time per call in milliseconds."""
    generated = generate(SEEDS[0], facts)
    started = time.process_time()
    with filled_store(generated) as store:
        adding = 1000 * (time.process_time() - started) / facts
        ask, filters = Retriever(store), FactFilter(limit=10)
        names, pairs = generated.names, generated.pairs()
        return {
            "add": adding,
            "search": _median(lambda turn: ask.search(f"who tested the {_THINGS[turn]}", filters)),
            "probe": _median(lambda turn: ask.probe(names[turn], filters)),
            "probe, misspelt": _median(lambda turn: ask.probe(names[turn] + "x", filters)),
            "related": _median(lambda turn: ask.related(names[turn], filters)),
            "reason": _median(lambda turn: ask.reason(pairs[turn], filters)),
            "contradict": _median(lambda turn: find_contradictions(store), turns=3),
        }


def _median(call: Callable[[int], object], turns: int = 15) -> float:
    times = []
    for turn in range(turns):
        started = time.process_time()
        call(turn)
        times.append(1000 * (time.process_time() - started))
    return sorted(times)[turns // 2]


def _without_numpy() -> None:
    algebra.fast_arithmetic = cache(lambda: None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--sizes", type=int, nargs="*", default=[400, 5000])
    options = parser.parse_args()
    for seed in SEEDS:
        generated = generate(seed)
        with filled_store(generated, options.dimension) as store:
            reached = precision(store, generated)
            typed = probe_typed_names(store, generated, seed)
        level = chance_level(generated)
        print(f"\n{len(generated.facts)} facts, {len(generated.names)} entities, seed {seed}: precision at {DEPTH}")
        for question, value in reached.items():
            print(f"  {question:20} {value:.3f}   chance {level[question]:.3f}")
        for question, value in typed.items():
            print(f"  {question:20} {value:.3f}")
    kinds = ["numpy", "pure Python"] if algebra.fast_arithmetic() is not None else ["pure Python"]
    for kind in kinds:
        if kind == "pure Python":
            _without_numpy()
        for size in options.sizes:
            figures = "  ".join(f"{name} {value:.1f}" for name, value in measure_costs(size).items())
            print(f"\n{size} facts, {kind}, ms of CPU per call: {figures}")


if __name__ == "__main__":
    main()
