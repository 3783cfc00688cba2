"""Fits the constants of `memoranda.search.relevance`: logistic regression, rounded, in plain Python.

Each set and each kind of prompt counts by a weight of its own, however many prompts it has. The cut-off of the floor is
part of the fit, so what is measured on stores, prompts and sets that a fit did not see includes its choice.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp
from statistics import mean

from benchmarks.relevance.prompts import EVERYDAY, FOREIGN, HAS_ANSWER, NO_ANSWER, OTHER_WORK, REMOVED, UNSPACED
from benchmarks.relevance.samples import MeasuredHit, Measures, Sample
from memoranda.search.relevance import Calibration

FLOOR_MEASURES = ("density", "words", "absent", "lead", "missing_name", "question", "about", "here", "how_to")
SEARCH_MEASURES = ("density", "words", "absent", "lead")
MEANING = "meaning"
# How often the floor may let through what is unwanted, on average over the sets with spaces, on development data.
MAX_FOREIGN, MAX_EVERYDAY, MAX_OTHER_WORK = 0.085, 0.015, 0.03
_KIND_WEIGHTS = {HAS_ANSWER: 1.0, FOREIGN: 0.5, EVERYDAY: 0.35, OTHER_WORK: 0.15, REMOVED: 0.5}
_RIDGE = 1.0
_STEPS = 25
_FOLDS = 3
_BELOW = -99.0


@dataclass(frozen=True)
class Example:
    """One row of a regression."""

    measures: Measures
    label: bool
    weight: float


def fit(examples: Sequence[Example], names: Sequence[str]) -> Calibration:
    """Logistic regression by Newton's method, with a small penalty; weights are rounded to one decimal."""
    rows = [(1.0, *(example.measures[name] for name in names)) for example in examples]
    scale = len(examples) / sum(example.weight for example in examples)
    size = len(names) + 1
    solution = [0.0] * size
    for _ in range(_STEPS):
        gradient = [0.0] + [-_RIDGE * value for value in solution[1:]]
        hessian = [[_RIDGE * (i == j and i > 0) for j in range(size)] for i in range(size)]
        for row, example in zip(rows, examples, strict=True):
            odds = sum(a * b for a, b in zip(solution, row, strict=True))
            chance = 1 / (1 + exp(-max(-30.0, min(30.0, odds))))
            slope = example.weight * scale
            error = slope * (example.label - chance)
            curvature = slope * chance * (1 - chance)
            for i in range(size):
                gradient[i] += error * row[i]
                scaled = curvature * row[i]
                line = hessian[i]
                for j in range(i, size):
                    line[j] += scaled * row[j]
        for i in range(size):
            for j in range(i):
                hessian[i][j] = hessian[j][i]
        step = _solve(hessian, gradient)
        solution = [a + b for a, b in zip(solution, step, strict=True)]
        if max(map(abs, step)) < 1e-4:
            break
    return Calibration(
        round(solution[0], 1), dict(zip(names, (round(value, 1) for value in solution[1:]), strict=True))
    )


def points(chosen: Calibration, measures: Measures) -> float:
    return chosen.constant + sum(weight * measures[name] for name, weight in chosen.weights.items())


def floor_examples(samples: Iterable[Sample], names: Sequence[str]) -> list[Example]:
    """The first hit of each prompt, if it has enough words; a removed answer counts where no other set is foreign."""
    kept = [
        sample
        for sample in samples
        if sample.kind in _KIND_WEIGHTS
        and (sample.kind != REMOVED or sample.set in UNSPACED)
        and sample.hits
        and sample.hits[0].may_clear
        and all(name in sample.hits[0].measures for name in names)
    ]
    counts = Counter((sample.set, sample.kind) for sample in kept)
    return [
        Example(
            sample.hits[0].measures,
            sample.kind == HAS_ANSWER,
            _KIND_WEIGHTS[sample.kind] / counts[sample.set, sample.kind],
        )
        for sample in kept
    ]


def search_examples(samples: Iterable[Sample], names: Sequence[str]) -> list[Example]:
    """The first hits of every search; questions with an answer count as much as those without, in every set."""
    found: list[tuple[Sample, MeasuredHit]] = [
        (sample, hit)
        for sample in samples
        if sample.kind in (HAS_ANSWER, NO_ANSWER, REMOVED, FOREIGN)
        for hit in (*sample.typed, *sample.keywords)
        if all(name in hit.measures for name in names)
    ]
    counts = Counter((sample.set, sample.kind == HAS_ANSWER) for sample, _ in found)
    return [Example(hit.measures, hit.gold, 1 / counts[sample.set, sample.kind == HAS_ANSWER]) for sample, hit in found]


def score(sample: Sample, chosen: Calibration) -> float:
    """The points of the best of the hits that have enough words, without the cut-off."""
    scores = [
        points(chosen, hit.measures)
        for hit in sample.hits
        if hit.may_clear and chosen.weights.keys() <= hit.measures.keys()
    ]
    return max(scores, default=_BELOW)


def choose_cutoff(scored: Sequence[tuple[Sample, float]]) -> float:
    """The lowest cut-off at which the rates of what is unwanted are within the limits."""
    limits = {FOREIGN: MAX_FOREIGN, EVERYDAY: MAX_EVERYDAY, OTHER_WORK: MAX_OTHER_WORK}
    cutoff = -60
    while any(rate_by_set(scored, cutoff / 10, kind) > limit for kind, limit in limits.items()):
        cutoff += 1
    return cutoff / 10


def rate_by_set(scored: Iterable[tuple[Sample, float]], cutoff: float, kind: str) -> float:
    """How often a kind of prompt reaches the cut-off, on average over the sets with spaces."""
    reached: dict[str, list[bool]] = {}
    for sample, value in scored:
        if sample.kind == kind and sample.set not in UNSPACED:
            reached.setdefault(sample.set, []).append(value >= cutoff)
    return mean(mean(each) for each in reached.values()) if reached else 0.0


Split = tuple[list[Sample], list[Sample]]


def split_by_store(samples: Sequence[Sample]) -> list[Split]:
    """Folds in which neither the stores nor the written prompts of the second part occur in the first."""
    stores = sorted({(sample.set, sample.store) for sample in samples})
    several = {name for name, count in Counter(name for name, _ in stores).items() if count > 1}
    number = {store: index % _FOLDS for index, store in enumerate(stores)}

    def folds_of(sample: Sample) -> set[int]:
        by_text = int(hashlib.md5(sample.text.encode()).hexdigest(), 16) % _FOLDS
        if sample.set not in several:
            return {by_text}
        by_store = number[sample.set, sample.store]
        return {by_store, by_text} if sample.kind in (EVERYDAY, OTHER_WORK) else {by_store}

    return [
        (
            [each for each in samples if fold not in folds_of(each)],
            [each for each in samples if {fold} == folds_of(each)],
        )
        for fold in range(_FOLDS)
    ]


def split_by_set(samples: Sequence[Sample]) -> list[Split]:
    names = sorted({sample.set for sample in samples})
    return [
        ([each for each in samples if each.set != name], [each for each in samples if each.set == name])
        for name in names
    ]


def fit_floor(samples: Sequence[Sample], names: Sequence[str]) -> Calibration:
    """The constants of the floor: a hit clears it with zero points."""
    chosen = fit(floor_examples(samples, names), names)
    cutoff = choose_cutoff([(sample, score(sample, chosen)) for sample in samples])
    return Calibration(round(chosen.constant - cutoff, 1), chosen.weights)


def score_unseen(splits: Sequence[Split], names: Sequence[str]) -> list[tuple[Sample, float]]:
    """The points of each sample; weights and cut-off come from the other part of each split only."""
    scored = []
    for known, unseen in splits:
        chosen = fit_floor(known, names)
        scored += [(sample, score(sample, chosen)) for sample in unseen]
    return scored


def show_constants(name: str, chosen: Calibration) -> str:
    weights = ", ".join(f'"{measure}": {weight}' for measure, weight in chosen.weights.items())
    return f"{name} = Calibration({chosen.constant}, {{{weights}}})"


def _solve(matrix: list[list[float]], values: list[float]) -> list[float]:
    """Gaussian elimination with pivots."""
    size = len(values)
    rows = [[*line, value] for line, value in zip(matrix, values, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column and rows[row][column]:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [rows[index][size] / rows[index][index] for index in range(size)]
