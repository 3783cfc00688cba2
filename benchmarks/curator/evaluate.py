"""Counts how often the curator's rules are right, on the cases beside this file.

`python -m benchmarks.curator.evaluate` prints the counts; `--show` also prints the wrong ones. `--data FILE` counts
another file of merges, pairs or dates in the same format, such as one that was written without looking at the rules.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memoranda.curator import absolute_dates, missing_facts
from memoranda.upkeep.curator.entry_pairs import relation_of

_HERE = Path(__file__).parent
DATES, MERGES, PAIRS = _HERE / "dates.txt", _HERE / "merges.txt", _HERE / "pairs.txt"
WRITTEN = "2026-11-18"


class Outcome(NamedTuple):
    mark: str
    right: bool
    case: str
    answer: str


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text("utf-8").splitlines():
        if line[:2] in ("+ ", "- ", "= "):
            yield line[0], line[2:]


def judge_dates(path: Path = DATES) -> Iterator[Outcome]:
    """`+`: the result has the date behind the bar; `-`: the text stays."""
    for mark, case in _lines(path):
        text, _, day = case.rpartition(" | ") if mark == "+" else (case, "", "")
        answer = absolute_dates(text, WRITTEN)
        yield Outcome(mark, answer == text if mark == "-" else answer != text and day in answer, case, answer)


def judge_merges(path: Path = MERGES) -> Iterator[Outcome]:
    """`-`: something is lost; `=`: nothing is."""
    for mark, case in _lines(path):
        entries, _, merged = case.rpartition(" => ")
        _, *originals = (part.strip() for part in entries.split(" | "))
        found = missing_facts(originals, merged)
        yield Outcome(mark, bool(found) == (mark == "-"), case, ", ".join(found))


def judge_pairs(path: Path = PAIRS) -> Iterator[Outcome]:
    """Each pair is what its line says; one that the rules leave alone is never wrong, only missed."""
    for line in path.read_text("utf-8").splitlines():
        kind, *entries = (part.strip() for part in line.split(" | "))
        if len(entries) == 2 and not line.startswith("#"):
            found = relation_of(*entries) or "alike"
            yield Outcome(kind, found.replace("contains", "contained") == kind, line, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    if options.data:
        text = options.data.read_text("utf-8")
        judge = judge_merges if " => " in text else judge_pairs if "\nalike | " in text else judge_dates
        runs = {options.data.name: judge(options.data)}
    else:
        runs = {"dates": judge_dates(), "merges": judge_merges(), "pairs": judge_pairs()}
    for name, outcomes in runs.items():
        found = list(outcomes)
        for mark in sorted({each.mark for each in found}):
            some = [each for each in found if each.mark == mark]
            right = sum(each.right for each in some)
            print(f"{name} {mark} {right} of {len(some)} right ({right / len(some):.3f})")
        for each in found if options.show else ():
            if not each.right:
                print(f"  {each.mark} {each.case}\n      {each.answer}")


if __name__ == "__main__":
    main()
