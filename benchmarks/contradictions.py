"""Counts how many contradicting facts are found, and how many compatible facts are wrongly suspected.

`contradictions.txt` has the pairs, in several domains. The rule was last changed with the first three parts in view,
also the one that had been held out. The `sealed` pairs were written before that change by the person who made it and
remembered some of them, so their count flatters too; they are short plain sentences.
`python benchmarks/contradictions.py` prints all counts; `--show` also prints the wrong answers in the half for
development.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, get_args

from memoranda.external.holographic.contradictions import find_contradictions
from memoranda.external.holographic.fact_store import FactStore

_PAIRS = Path(__file__).with_name("contradictions.txt")
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

Part = Literal["development", "held out", "afterwards", "sealed"]
PARTS: tuple[Part, ...] = get_args(Part)


class Pair(NamedTuple):
    contradicting: bool
    domain: str
    texts: tuple[str, str]


class PairCounts(NamedTuple):
    """How many of the contradicting pairs were found, and how many of the others were suspected."""

    found: int
    contradicting: int
    suspected: int
    compatible: int
    wrong: tuple[Pair, ...]

    def __str__(self) -> str:
        return (
            f"found {self.found} of {self.contradicting} ({self.found / self.contradicting:.0%}), "
            f"suspected {self.suspected} of {self.compatible} ({self.suspected / self.compatible:.0%})"
        )


def read_pairs(part: Part) -> list[Pair]:
    """Return every second pair of each kind, or the pairs that were written afterwards."""
    lines = [line.split("|") for line in _PAIRS.read_text("utf-8").splitlines() if line[:1] in ("!", "=")]
    marks = {"afterwards": ("!!", "=="), "sealed": ("!!!", "===")}.get(part, ("!", "="))
    start, step = {"development": (0, 2), "held out": (1, 2)}.get(part, (0, 1))
    return [
        Pair(mark.startswith("!"), domain.strip(), (first.strip(), second.strip()))
        for wanted in marks
        for mark, domain, first, second in [line for line in lines if line[0].strip() == wanted][start::step]
    ]


def has_contradiction(texts: tuple[str, ...]) -> bool:
    """Whether the rule finds a contradiction in a store with only these facts."""
    with TemporaryDirectory(dir=_MEMORY) as directory:
        store = FactStore(Path(directory))
        try:
            for text in texts:
                store.add(text)
            return bool(find_contradictions(store))
        finally:
            store.close()


def count(part: Part) -> PairCounts:
    results = [(pair, has_contradiction(pair.texts)) for pair in read_pairs(part)]
    true = [suspected for pair, suspected in results if pair.contradicting]
    false = [suspected for pair, suspected in results if not pair.contradicting]
    wrong = tuple(pair for pair, suspected in results if pair.contradicting is not suspected)
    return PairCounts(sum(true), len(true), sum(false), len(false), wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--part", choices=PARTS, action="append")
    options = parser.parse_args()
    for part in options.part or PARTS:
        counted = count(part)
        print(f"{part:12} {counted}")
        if options.show and part == "development":
            for pair in counted.wrong:
                print(f"  {'missed' if pair.contradicting else 'wrong '}  {' / '.join(pair.texts)}")


if __name__ == "__main__":
    main()
