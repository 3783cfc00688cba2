"""A small linear classifier over words, beginnings of words and pairs of words, for attacks that no rule describes.

A text is scored in windows of one, two and four blocks of words, because an attack may be one short sentence in a
long harmless text, and the most suspicious window decides. A sum is divided by the root of the number of words, so
that short and long windows compare. `benchmarks/scanner/train.py` writes the data file, which is read at first use.
Its parts, after blank lines, are bias, threshold and size of a step; words; beginnings; pairs; with one line for each
weight in steps, so that few numbers have to be read. `.` is the end of a sentence.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate, pairwise, repeat
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from memoranda.safety.normalization import STOP
from memoranda.support.lazy_dataclass import dataclass

BLOCK = 20
WINDOWS = (1, 2, 4)
MIN_WORDS = 14
STEM = 4
CUE = 8
MIN_CUE_CHARS = 4
FLOOR = 40
DATA_FILE = "learned.txt"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Weights in steps of `step`; a window is suspicious when its normalised sum plus `bias` exceeds `threshold`.

    The weight of a word includes that of its beginning, which is only looked up for words that are not listed.
    """

    bias: float
    threshold: float
    step: float
    words: dict[str, int]
    stems: dict[str, int]
    pairs: Callable[[], dict[Pair, int]]
    """Most of the data, and only needed for a text with a cue, so it is read when the first such text is weighed."""
    cues: frozenset[str]


class ScoredWindow(NamedTuple):
    """Words `first` up to but not including `last`, and how suspicious they are."""

    first: int
    last: int
    score: float


def length_factor(count: int) -> float:
    """The number by which the sum of a window of `count` words is divided."""
    return sqrt(max(count, MIN_WORDS))


def build_model(
    bias: float,
    threshold: float,
    step: float,
    words: dict[str, int],
    stems: dict[str, int],
    pairs: Callable[[], dict[Pair, int]],
) -> LinearModel:
    """A model from the weights of its features; its cues are heavy words, but no short, easily repeated ones."""
    cues = frozenset(word for word, weight in words.items() if weight >= CUE and len(word) >= MIN_CUE_CHARS)
    return LinearModel(bias, threshold, step, words, stems, pairs, cues)


def block_sums(words: list[str], model: LinearModel) -> list[int]:
    """The weight of each block; a block without a cue, as in ordinary notes, weighs nothing and costs little time."""
    return [
        0 if model.cues.isdisjoint(words[first : first + BLOCK]) else _weigh(words[first : first + BLOCK + 1], model)
        for first in range(0, len(words), BLOCK)
    ]


def _weigh(block: list[str], model: LinearModel) -> int:
    """The weight of a block, which includes the first word of the next one; light blocks are not examined further."""
    own, stem = set(block[:BLOCK]), model.stems.get
    listed = sum(map(model.words.get, own, repeat(0)))
    if listed < FLOOR:
        return min(listed, 0)
    unlisted = [stem(word[:STEM], 0) for word in own.difference(model.words) if len(word) > STEM]
    return listed + sum(unlisted) + sum(map(model.pairs().get, set(pairwise(block)), repeat(0)))


def best_window(words: list[str], model: LinearModel) -> ScoredWindow:
    """The most suspicious window in a list of words."""
    return _best_of(block_sums(words, model), len(words), model)


def _best_of(sums: list[int], count: int, model: LinearModel) -> ScoredWindow:
    score, first, last = max(_windows(sums, count))
    return ScoredWindow(first, last, score * model.step + model.bias)


def _windows(sums: list[int], count: int) -> Iterator[tuple[float, int, int]]:
    """The best window of each size as score, first and last; only the window at the end can be shorter than others."""
    ends = list(accumulate(sums, initial=0))
    for size in WINDOWS:
        if size >= len(sums):
            yield ends[-1] / length_factor(count), 0, count
            return
        *full, final = map(int.__sub__, ends[size:], ends)
        highest = max(full)
        at = full.index(highest)
        yield highest / length_factor(size * BLOCK), at * BLOCK, (at + size) * BLOCK
        start = len(full) * BLOCK
        yield final / length_factor(count - start), start, count


def classify(words: list[str]) -> ScoredWindow | None:
    """The most suspicious window of `words`, if it is suspicious enough."""
    model = load()
    # Without a positive weight nothing is suspicious, because the bias by itself never reaches the threshold. Only a
    # text with a cue can have any, and most of these have none either.
    if model.cues.isdisjoint(words) or max(sums := block_sums(words, model)) <= 0:
        return None
    window = _best_of(sums, len(words), model)
    return window if window.score > model.threshold else None


@cache
def load() -> LinearModel:
    """Read the model from the package."""
    return parse_model(Path(__file__).with_name(DATA_FILE).read_text("utf-8"))


def parse_model(text: str) -> LinearModel:
    """The model in the text of a data file."""
    header, *parts = text.split("\n\n")
    bias, threshold, step = map(float, header.split())
    words, stems, pairs = parts
    return build_model(bias, threshold, step, _weights(words), _weights(stems), cache(partial(_pair_weights, pairs)))


def _weights(part: str) -> dict[str, int]:
    weights: dict[str, int] = {}
    for weight, *names in map(str.split, part.splitlines()):
        weights.update(dict.fromkeys(names, int(weight)))
    if "." in weights:
        weights[STOP] = weights.pop(".")
    return weights


def _pair_weights(part: str) -> dict[Pair, int]:
    weights: dict[Pair, int] = {}
    for weight, *names in map(str.split, part.splitlines()):
        marked = [STOP if name == "." else name for name in names]
        weights.update(zip(zip(marked[::2], marked[1::2], strict=True), repeat(int(weight)), strict=False))
    return weights
