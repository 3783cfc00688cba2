"""Says what one entry is to another: the same, contained in it, or superseded by it; most pairs are merely alike.

Decision trees over the features of a pair weigh the four answers. They are in `relations.txt`, which
`benchmarks/curator/learn.py` learns from pairs that were written by hand. An entry never leaves for one that says more
and lacks a name, a number, a date, a negation or a condition of it; where the same seems to be said with other ones,
the trees must be surer. Where both may hold, a pair is left alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import exp
from pathlib import Path
from typing import Literal, NamedTuple

from memoranda.upkeep.curator.missing_facts import missing_facts
from memoranda.upkeep.curator.pair_features import (
    WEIGHT_OF_NAME,
    align,
    features,
    is_about_another,
    is_turned,
    normal,
    weight_of_other_words,
)

Relation = Literal["same", "contained", "contains", "superseded"]

# What the trees weigh, in the order of their numbers.
LABELS = ("alike", "same", "contained", "superseded")
DATA_FILE = "relations.txt"
# How likely it may be that both entries hold: where one leaves for a new value, where it says that something changed or
# one value of the same sentence is all that differs, where nothing is lost, and where the same seems to be said with
# other names or roles.
_MAY_HOLD = 0.2
_MAY_HOLD_BUT_CHANGED = 0.5
_MAY_HOLD_BUT_NOW = 0.9
_MAY_HOLD_IF_NOTHING_IS_LOST = 0.45
_MAY_HOLD_IF_REWORDED = 0.1
# "Uses it as a host", but not "40 euros a month".
_ONE_OF_MANY = re.compile(
    r"(?<!\d )\b(?:an?|eine?n?|une?|una)\s+(?!(?:hour|day|night|week|month|year)\b)\w", re.IGNORECASE
)
# How much of an entry another one must say that contains it.
_COVERED = 0.6
# Leaves are written in hundredths.
LEAF_SCALE = 100


class Split(NamedTuple):
    """A node of a decision tree: which half decides, by the value of a feature."""

    feature: int
    threshold: float
    lower: "Split | float"
    upper: "Split | float"


class Trees(NamedTuple):
    """The names of the features, the base of each label, and the trees with the label that each adds to."""

    names: tuple[str, ...]
    bases: tuple[float, ...]
    trees: tuple[tuple[int, Split | float], ...]


def relation_of(older: str, newer: str) -> Relation | None:
    """What the newer entry is to the older one, or None; "contains" if the newer one says all of the older and more."""
    older, newer = normal(older), normal(newer)
    aligned = align(older, newer)
    if not aligned.partners:
        return None
    found = features(aligned)
    alike, same, contained, superseded = weigh(_trees(), found)
    is_value_alone = found["frame old words"] == found["frame new words"] == found["frame same kind"] == 1
    is_value_alone = is_value_alone and not _ONE_OF_MANY.search(older)
    says_change = any(found[f"more {cue}"] > 0 for cue in ("change", "other state", "no longer"))
    if superseded > max(same, contained):
        limit = _MAY_HOLD_BUT_CHANGED if is_value_alone or says_change else _MAY_HOLD
        # "I live in Berlin", "I now live in Hamburg", but not "now also in Hamburg".
        differing = found["old rest"] + weight_of_other_words(aligned)
        says_now = found["more now"] > 0 and not found["more also"]
        if says_now and found["old rest"] == found["new rest"] and 0 < differing <= WEIGHT_OF_NAME:
            limit = _MAY_HOLD_BUT_NOW
        return "superseded" if alike < limit and not is_about_another(aligned) else None
    if alike > _MAY_HOLD_IF_NOTHING_IS_LOST:
        return None
    lost, added = _loses(older, newer), _loses(newer, older)
    if same > contained:
        is_reworded = lost or added or found["crossed names"]
        return None if is_turned(aligned) or (is_reworded and alike > _MAY_HOLD_IF_REWORDED) else "same"
    if not lost and aligned.covered_older >= max(_COVERED, aligned.covered_newer):
        return "contains"
    return None if added or aligned.covered_newer < _COVERED else "contained"


def _loses(one: str, other: str) -> bool:
    """Whether the other lacks more than a word, which may have been replaced by another one."""
    return any(not fact.startswith("word ") for fact in missing_facts([one], other))


def weigh(trees: Trees, found: dict[str, float]) -> list[float]:
    """The probability of each label."""
    values = [found[name] for name in trees.names]
    sums = list(trees.bases)
    for label, root in trees.trees:
        node = root
        while isinstance(node, Split):
            node = node.lower if values[node.feature] <= node.threshold else node.upper
        sums[label] += node
    powers = [exp(each - max(sums)) for each in sums]
    return [each / sum(powers) for each in powers]


@cache
def _trees() -> Trees:
    names, bases, *lines = Path(__file__).with_name(DATA_FILE).read_text("utf-8").splitlines()
    trees = [(int(label), _read_node(iter(nodes))) for label, *nodes in map(str.split, lines)]
    return Trees(tuple(names.split(", ")), tuple(map(float, bases.split())), tuple(trees))


def _read_node(nodes: Iterator[str]) -> Split | float:
    """Reads a node: a leaf, or `feature<threshold` and then its lower and its upper half."""
    node = next(nodes)
    feature, is_split, threshold = node.partition("<")
    if not is_split:
        return int(node) / LEAF_SCALE
    lower = _read_node(nodes)
    return Split(int(feature), float(threshold), lower, _read_node(nodes))


def find_pairs(entries: Sequence[str]) -> Iterable[tuple[int, int, Relation]]:
    """The related pairs among entries in the order they were written: the places of the older and the newer one."""
    return [
        (older, newer, relation)
        for newer in range(len(entries))
        for older in range(newer)
        if (relation := relation_of(entries[older], entries[newer])) is not None
    ]
