"""A small linear model over words and pairs of neighbouring words, for attacks that no rule foresees.

A text is scored in windows that overlap by half, so that an attack inside a long text is found and a long
harmless text does not add up to one. `benchmarks/scanner/train.py` makes the data file, which is read at first
use: a line with bias and threshold, then the words and, after a blank line, the pairs, each after its weight in
hundredths; `.` stands for the end of a sentence.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise, repeat
from math import inf
from pathlib import Path
from typing import NamedTuple

from memoranda.safety.folding import STOP

BLOCK = 32
SHORTEST = 14
POWER = 0.7
DATA_FILE = "learned.txt"


@dataclass(frozen=True, slots=True)
class Model:
    """Weights in hundredths; a window is suspicious when its normalised sum plus `bias` exceeds `threshold`."""

    bias: float
    threshold: float
    words: dict[str, int]
    pairs: dict[tuple[str, str], int]


class Window(NamedTuple):
    """Words `first` up to but not including `last`, and how suspicious they are."""

    first: int
    last: int
    score: float


def blocks(words: list[str]) -> list[list[str]]:
    """The words in blocks, each with the first word of the next, so that no pair is lost; two blocks are a window."""
    return [words[first : first + BLOCK + 1] for first in range(0, max(1, len(words)), BLOCK)]


def length_factor(count: int) -> float:
    """By how much the sum of a window of `count` words is divided."""
    return float(max(count, SHORTEST) ** POWER)


def best_window(words: list[str], model: Model) -> Window:
    """The most suspicious window of a row of words; a feature counts once a block, however often it is repeated."""
    sums = [
        sum(map(model.words.get, set(block[:BLOCK]), repeat(0)))
        + sum(map(model.pairs.get, set(pairwise(block)), repeat(0)))
        for block in blocks(words)
    ]
    best = Window(0, 0, -inf)
    for index in range(max(1, len(sums) - 1)):
        first, last = index * BLOCK, min((index + 2) * BLOCK, len(words))
        score = sum(sums[index : index + 2]) / 100 / length_factor(last - first) + model.bias
        if score > best.score:
            best = Window(first, last, score)
    return best


def find_learned(words: list[str]) -> Window | None:
    """The most suspicious window of `words`, if it is suspicious enough."""
    if not words:
        return None
    model = load()
    window = best_window(words, model)
    return window if window.score > model.threshold else None


@cache
def load() -> Model:
    """Read the model from the package."""
    header, _, body = Path(__file__).with_name(DATA_FILE).read_text("utf-8").partition("\n")
    bias, threshold = map(float, header.split())
    cells, pair_cells = ([STOP if cell == "." else cell for cell in part.split()] for part in body.split("\n\n"))
    return Model(
        bias,
        threshold,
        dict(zip(cells[1::2], map(int, cells[0::2]), strict=True)),
        dict(zip(zip(pair_cells[1::3], pair_cells[2::3], strict=True), map(int, pair_cells[0::3]), strict=True)),
    )
