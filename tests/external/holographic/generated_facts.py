"""Generated facts: fifty people with names that share their parts, and how precisely they are found by name."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

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
    "The {thing} is tested on Tuesdays by everybody who is free",
    "Every change of the {thing} needs a review and a note in the wiki",
    "The first version of the {thing} was written in spring",
    "The {thing} should change hands before the summer",
    "A person called {first} asked about the {thing}",
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


def chance_level(generated: Generated) -> dict[str, float]:
    """Return the share of right facts among all facts, which is the precision of a random choice."""
    total = len(generated.facts)
    single = mean(sum(name in about for _, about in generated.facts) / total for name in generated.names)
    both = mean(sum(set(pair) <= about for _, about in generated.facts) / total for pair in generated.pairs())
    return {
        "probe": single, "reason": both, "related (facts)": single, "related (entities)": 1 / len(generated.names)
    }  # fmt: skip
