"""Fits the linear model, with and without a group of sources.

A group's weight is the square root of its size, and features must occur in at least two groups. Texts are split into
the windows in which the scanner scores them. The second fit uses only the worst window of each attack according to the
first fit, because the other windows are often harmless text around it.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from dataset import SYNTHETIC, Sample
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from memoranda.safety.classifier import BLOCK, STEM, WINDOWS, LinearModel, best_window, build_model, length_factor
from memoranda.safety.scanner import TextStages

STRENGTH = 10.0
MIN_BLOCKS = 3
STEP = 0.2
ALLOWED_FALSE = 0.001
MARGIN = 0.2
FOLDS = 8
_TOTAL_WEIGHT = 20_000
_STEM_MARK = "*"


@dataclass(frozen=True, slots=True)
class Table:
    """Samples as words, and their windows as rows of normalised counts."""

    samples: list[Sample]
    words: list[list[str]]
    owners: np.ndarray
    groups: np.ndarray
    labels: np.ndarray
    counts: sparse.csr_matrix
    features: list[str]


def tabulate(samples: list[Sample]) -> Table:
    """Split every sample into blocks, count the features that occur in enough of them, and sum blocks into windows."""
    words = [TextStages(sample.text).words for sample in samples]
    blocks = [_features(row[first : first + BLOCK + 1]) for row in words for first in range(0, max(1, len(row)), BLOCK)]
    seen = Counter(feature for block in blocks for feature in block)
    features = sorted(feature for feature in seen if seen[feature] >= MIN_BLOCKS)
    column = {feature: index for index, feature in enumerate(features)}
    cells = [
        (index, column[feature], float(count))
        for index, block in enumerate(blocks)
        for feature, count in block.items()
        if feature in column
    ]
    at, to, value = zip(*cells, strict=True)
    counts = sparse.csr_matrix((value, (at, to)), shape=(len(blocks), len(features)))
    owners, summing = _windows([len(row) for row in words])
    names = {name: index for index, name in enumerate(sorted({sample.group for sample in samples}))}
    return Table(
        samples,
        words,
        owners,
        np.array([names[samples[owner].group] for owner in owners]),
        np.array([samples[owner].attack for owner in owners]),
        (summing @ counts).tocsr(),
        features,
    )


def _features(block: list[str]) -> Counter[str]:
    """Return the features of a block, which includes the first word of the next block so that no pair is lost."""
    own = set(block[:BLOCK])
    found = Counter(own)
    found.update(f"{word[:STEM]}{_STEM_MARK}" for word in own if len(word) > STEM)
    found.update({f"{first} {second}" for first, second in pairwise(block)})
    return found


def _windows(lengths: list[int]) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Return the owner of each window, and the matrix that sums blocks into normalised windows."""
    owners: list[int] = []
    cells: list[tuple[int, int, float]] = []
    before = 0
    for owner, length in enumerate(lengths):
        blocks = max(1, -(-length // BLOCK))
        spans = {(first, min(first + size, blocks)) for size in WINDOWS for first in range(max(1, blocks - size + 1))}
        for first, last in sorted(spans):
            factor = 1 / length_factor(min(last * BLOCK, length) - first * BLOCK)
            cells += [(len(owners), before + block, factor) for block in range(first, last)]
            owners.append(owner)
        before += blocks
    at, to, value = zip(*cells, strict=True)
    return np.array(owners), sparse.csr_matrix((value, (at, to)), shape=(len(owners), before))


def fit(table: Table, rows: np.ndarray) -> LinearModel:
    """Fit on the windows `rows`; the threshold of the result is 0."""
    groups = table.groups[rows]
    membership = sparse.csr_matrix((np.ones(len(rows)), (groups, np.arange(len(rows)))))
    kept = np.flatnonzero(np.asarray(((membership @ (table.counts[rows] > 0)) > 0).sum(0)).ravel() > 1)
    counts, labels, owners = table.counts[rows][:, kept], table.labels[rows], table.owners[rows]
    scores = counts @ _regress(counts, labels, groups).coef_[0]
    worst = np.full(len(table.samples), -np.inf)
    np.maximum.at(worst, owners, scores)
    chosen = np.flatnonzero(~labels | (scores >= worst[owners]))
    regression = _regress(counts[chosen], labels[chosen], groups[chosen])
    steps = np.round(regression.coef_[0] / STEP).astype(int)
    weights = {table.features[index]: int(step) for index, step in zip(kept, steps, strict=True) if step}
    return as_model(float(regression.intercept_[0]), weights)


def _regress(counts: sparse.csr_matrix, labels: np.ndarray, groups: np.ndarray) -> LogisticRegression:
    keys = list(zip(groups, labels, strict=True))
    sizes = Counter(keys)
    weight = np.array([sizes[key] ** -0.5 for key in keys])
    for label in (False, True):
        weight[labels == label] *= _TOTAL_WEIGHT / 2 / weight[labels == label].sum()
    regression = LogisticRegression(C=STRENGTH, max_iter=200, tol=1e-2, solver="liblinear", random_state=0)
    return regression.fit(counts, labels, sample_weight=weight)


def as_model(bias: float, weights: dict[str, int]) -> LinearModel:
    """Build the model with these features; a blank marks pairs, and `_STEM_MARK` the beginnings of words."""
    pairs = {(name.split(" ")[0], name.split(" ")[1]): weight for name, weight in weights.items() if " " in name}
    stems = {name[:STEM]: weight for name, weight in weights.items() if name.endswith(_STEM_MARK)}
    words = {
        name: weight + (stems.get(name[:STEM], 0) if len(name) > STEM else 0)
        for name, weight in weights.items()
        if " " not in name and not name.endswith(_STEM_MARK)
    }
    return build_model(bias, 0.0, STEP, words, stems, lambda: pairs)


def fold_of_group(samples: list[Sample]) -> dict[str, int]:
    """Distribute whole groups over the folds, the largest first, so that attacks and harmless texts are even."""
    folds: dict[str, int] = {}
    for attack in (True, False):
        sizes = Counter(s.group for s in samples if s.attack == attack and not s.group.startswith(SYNTHETIC))
        load = [sum(sizes[group] for group in folds if folds[group] == number) for number in range(FOLDS)]
        for group, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
            if group not in folds:
                folds[group] = load.index(min(load))
                load[folds[group]] += size
    return folds


def held_out_scores(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return each sample's score by a model that saw nothing of its group, and the fold that judged it."""
    fold_of = fold_of_group(table.samples)
    folds = np.array([fold_of.get(sample.group, -1) for sample in table.samples])
    scores = np.full(len(table.samples), -np.inf)
    for number in range(FOLDS):
        model = fit(table, np.flatnonzero(folds[table.owners] != number))
        for index in np.flatnonzero(folds == number):
            scores[index] = best_window(table.words[index], model).score if table.words[index] else -np.inf
    return scores, folds


def threshold(scores: np.ndarray) -> float:
    """Return the score that only the allowed share of harmless texts exceeds, plus a margin for other kinds of text."""
    ranked = np.sort(scores)[::-1]
    allowed = int(len(ranked) * ALLOWED_FALSE)
    return float(ranked[allowed]) + MARGIN
