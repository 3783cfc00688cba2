"""Fit the linear model, with and without a group of sources.

Groups weigh by the root of their size, features must occur in two groups at least, and texts are cut into the
windows in which the scanner scores them.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from dataset import SYNTHETIC, Sample
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from memoranda.safety.learned import BLOCK, Model, best_window, blocks, length_factor
from memoranda.safety.scanner import Stages

STRENGTH = 5.0
FEWEST_WINDOWS = 3
SMALLEST_WEIGHT = 0.12
ALLOWED_FALSE = 0.001

Feature = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Samples as words, and their windows as rows of counts."""

    samples: list[Sample]
    words: list[list[str]]
    owners: np.ndarray
    groups: np.ndarray
    labels: np.ndarray
    counts: sparse.csr_matrix
    features: list[Feature]


def tabulate(samples: list[Sample]) -> Table:
    """Cut every sample into windows and count the features that occur often enough, in two groups or more."""
    words = [Stages(sample.text).words for sample in samples]
    cut = [(owner, *window) for owner in range(len(words)) for window in _windows(words[owner])]
    rows = [row for _, _, row in cut]
    seen, where = Counter[Feature](), defaultdict[Feature, set[str]](set)
    for (owner, _, _), row in zip(cut, rows, strict=True):
        for feature in set(row):
            seen[feature] += 1
            where[feature].add(samples[owner].group)
    features = sorted(feature for feature in seen if seen[feature] >= FEWEST_WINDOWS and len(where[feature]) > 1)
    column = {feature: index for index, feature in enumerate(features)}
    cells = [
        (index, column[feature], count / length_factor(cut[index][1]))
        for index, row in enumerate(rows)
        for feature, count in Counter(row).items()
        if feature in column
    ]
    at, to, value = zip(*cells, strict=True)
    owners = np.array([owner for owner, _, _ in cut])
    names = {name: index for index, name in enumerate(sorted({sample.group for sample in samples}))}
    return Table(
        samples,
        words,
        owners,
        np.array([names[samples[owner].group] for owner in owners]),
        np.array([samples[owner].attack for owner in owners]),
        sparse.csr_matrix((value, (at, to)), shape=(len(cut), len(features))),
        features,
    )


def _windows(words: list[str]) -> list[tuple[int, list[Feature]]]:
    """Each window of a text as its number of words and its features, one mention a block."""
    parts = [[*((word,) for word in set(block[:BLOCK])), *set(pairwise(block))] for block in blocks(words)]
    length = len(words)
    return [
        (
            min((index + 2) * BLOCK, length) - index * BLOCK,
            [*parts[index], *(parts[index + 1] if index + 1 < len(parts) else [])],
        )
        for index in range(max(1, len(parts) - 1))
    ]


def fit(table: Table, rows: np.ndarray) -> Model:
    """Fit on the windows `rows`; the threshold is left at nought."""
    counts, labels, groups = table.counts[rows], table.labels[rows], table.groups[rows]
    membership = sparse.csr_matrix((np.ones(len(rows)), (groups, np.arange(len(rows)))))
    kept = np.asarray(((membership @ (counts > 0)) > 0).sum(0)).ravel() > 1
    sizes = Counter(zip(groups, labels, strict=True))
    weight = np.array([sizes[key] ** -0.5 for key in zip(groups, labels, strict=True)])
    for label in (False, True):
        weight[labels == label] *= len(rows) / 2 / weight[labels == label].sum()
    regression = LogisticRegression(C=STRENGTH, max_iter=300, solver="liblinear")
    regression.fit(counts[:, kept], labels, sample_weight=weight)
    learned = zip(np.flatnonzero(kept), regression.coef_[0], strict=True)
    chosen = {
        table.features[index]: round(float(value) * 100) for index, value in learned if abs(value) >= SMALLEST_WEIGHT
    }
    return Model(
        float(regression.intercept_[0]),
        0.0,
        {feature[0]: value for feature, value in chosen.items() if len(feature) == 1},
        {(feature[0], feature[1]): value for feature, value in chosen.items() if len(feature) == 2},
    )


def held_out_scores(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """For each sample its score by a model that saw nothing of its group, and the number of the fold that judged it."""
    attacking = sorted({sample.group for sample in table.samples if sample.attack} - {SYNTHETIC})
    others = sorted({sample.group for sample in table.samples} - set(attacking) - {SYNTHETIC})
    fold_of = {group: number for number, group in enumerate(attacking)}
    fold_of |= {group: number * 5 % len(attacking) for number, group in enumerate(others)}
    folds = np.array([fold_of.get(sample.group, -1) for sample in table.samples])
    scores = np.full(len(table.samples), -np.inf)
    for number in range(len(attacking)):
        model = fit(table, np.flatnonzero(folds[table.owners] != number))
        for index in np.flatnonzero(folds == number):
            scores[index] = best_window(table.words[index], model).score if table.words[index] else -np.inf
    return scores, folds


def threshold(scores: np.ndarray) -> float:
    """The score that only the allowed share of these harmless texts exceeds."""
    ranked = np.sort(scores)[::-1]
    allowed = int(len(ranked) * ALLOWED_FALSE)
    return float(ranked[allowed])
