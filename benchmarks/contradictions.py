"""How many facts that cannot both be right are found, and how many that can are suspected.

`contradictions.txt` has the pairs, in several domains. The rule was written with one half of them in sight; the other
half and the pairs that were added later were only ever counted. `python benchmarks/contradictions.py` prints all three
counts; `--show` also prints the wrong answers in the half for development.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, get_args

from memoranda.providers.holographic.contradictions import find_contradictions
from memoranda.providers.holographic.fact_store import FactStore

_PAIRS = Path(__file__).with_name("contradictions.txt")
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

Part = Literal["development", "held out", "afterwards"]
PARTS: tuple[Part, ...] = get_args(Part)


class Pair(NamedTuple):
    contradicting: bool
    domain: str
    texts: tuple[str, str]


class Counted(NamedTuple):
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


def pairs(part: Part) -> list[Pair]:
    """Every second pair of each kind, or those that were written afterwards."""
    lines = [line.split("|") for line in _PAIRS.read_text("utf-8").splitlines() if line[:1] in ("!", "=")]
    marks = ("!!", "==") if part == "afterwards" else ("!", "=")
    start, step = {"development": (0, 2), "held out": (1, 2), "afterwards": (0, 1)}[part]
    return [
        Pair(mark.startswith("!"), domain.strip(), (first.strip(), second.strip()))
        for wanted in marks
        for mark, domain, first, second in [line for line in lines if line[0].strip() == wanted][start::step]
    ]


def suspected(texts: tuple[str, ...]) -> bool:
    """Whether a store with just these facts has a contradiction."""
    with TemporaryDirectory(dir=_MEMORY) as directory:
        store = FactStore(Path(directory) / "holographic.db")
        try:
            for text in texts:
                store.add(text)
            return bool(find_contradictions(store))
        finally:
            store.close()


def count(part: Part) -> Counted:
    results = [(pair, suspected(pair.texts)) for pair in pairs(part)]
    true = [said for pair, said in results if pair.contradicting]
    false = [said for pair, said in results if not pair.contradicting]
    wrong = tuple(pair for pair, said in results if pair.contradicting is not said)
    return Counted(sum(true), len(true), sum(false), len(false), wrong)


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
