"""Learns the trees that tell the relation of two entries, and writes their data file into the package.

    python -m benchmarks.curator.learn                            learns from everything
    python -m benchmarks.curator.learn --without eighth ninth     prints what is found in these sets, writes nothing

It needs numpy and scikit-learn; the package itself does not. It learns from pairs that were written by hand
(`*pairs.txt`), from sentences with one value at a time or with many (`learning_frames.txt`), from the sentences of a
year (`*wordings.txt`), from entries with one word replaced by a synonym, and from pairs of entries of different lines
that share a word, which are merely alike. Of the latter, those that share much, or that look related to a model which
did not see their set, are left out: many are.
"""

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.curator.evaluate import judge_pairs
from benchmarks.year import ATTRIBUTES, PROJECTS, SYLLABLES, Wordings, read_wordings
from memoranda.upkeep.curator import entry_pairs
from memoranda.upkeep.curator.entry_pairs import DATA_FILE, LABELS, LEAF_SCALE
from memoranda.upkeep.curator.pair_features import align, features, normal, read_words
from memoranda.upkeep.curator.word_roots import SYNONYMS

_HERE = Path(__file__).parent
_TARGET = Path(entry_pairs.__file__).with_name(DATA_FILE)
# How much a pair counts: that two alike entries are left alone matters most, and of pairs of different lines there are
# many. What a user does on the first day counts three times.
_WEIGHTS = {"alike": 4.0, "cross": 0.5}
_FIRST_DAY, _FIRST_DAY_WEIGHT = ("own", "frames"), 3.0
_CROSS_OF_A_SET = 1200
_MAX_COVERED = 0.4
_PAIRS_OF_A_FILE = 300
_ENTRIES_WITH_SYNONYMS = 3000
_GROUPS = 4


class Sample(NamedTuple):
    source: str
    kind: str
    older: str
    newer: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", nargs="*", default=[], metavar="SET", help="sets that are counted and not learned")
    options = parser.parse_args()
    samples = [each for each in _all_samples(random.Random(1)) if each.source not in options.without]
    found = [features(align(normal(each.older), normal(each.newer))) for each in samples]
    names = list(found[0])
    table = np.array([[each[name] for name in names] for each in found])
    labels = np.array([LABELS.index("alike" if each.kind == "cross" else each.kind) for each in samples])
    weights = np.array([_weight(each) for each in samples])
    sure = _clean(samples, table, labels, weights)
    text = _serialize(names, _fit(table[sure], labels[sure], weights[sure]))
    if not options.without:
        _TARGET.write_text(text, "utf-8")
        print(f"{len(samples)} pairs, {text.count(chr(10)) - 2} trees, {len(text) / 1000:.0f} kB")
        return
    written = _TARGET.read_text("utf-8") if _TARGET.exists() else ""
    _TARGET.write_text(text, "utf-8")
    try:
        for path in _pair_files():
            if _name_of(path) in options.without:
                _print_counts(path)
    finally:
        _TARGET.write_text(written, "utf-8")


def _weight(sample: Sample) -> float:
    is_first_day = sample.source in _FIRST_DAY and sample.kind != "cross"
    return _WEIGHTS.get(sample.kind, 1.0) * (_FIRST_DAY_WEIGHT if is_first_day else 1.0)


def _print_counts(path: Path) -> None:
    outcomes = list(judge_pairs(path))
    related = [each for each in outcomes if each.mark != "alike"]
    touched = [each for each in outcomes if each.mark == "alike" and not each.right]
    misnamed = [each for each in related if not each.right and each.answer != "alike"]
    found = sum(each.right for each in related)
    print(f"{path.name}: {found} of {len(related)} found, {len(misnamed)} misnamed, {len(touched)} alike pairs touched")


def _name_of(path: Path) -> str:
    name = path.stem.removesuffix("pairs").rstrip("_")
    return name or ("first" if path.parent.name == "unseen" else "own")


def _pair_files() -> list[Path]:
    return [*sorted(_HERE.glob("*pairs.txt")), *sorted((_HERE / "unseen").glob("*pairs.txt"))]


def _all_samples(chance: random.Random) -> Iterator[Sample]:
    for path in _pair_files():
        pairs = _read_pairs(path)
        yield from pairs
        yield from _cross(_name_of(path), [(each.older, each.newer) for each in pairs], chance)
    yield from _from_frames()
    yield from _with_synonyms([each.older for each in _read_pairs(_HERE / "learning_pairs.txt")], chance)
    yield from _sentences("wordings", Wordings(), chance)
    for path in [*sorted(_HERE.glob("*wordings.txt")), *sorted((_HERE / "unseen").glob("*wordings.txt"))]:
        yield from _sentences(path.stem, read_wordings(path), chance)


def _read_pairs(path: Path) -> list[Sample]:
    lines = [line.split(" | ") for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [Sample(_name_of(path), *map(str.strip, line)) for line in lines if len(line) == 3]


def _with_synonyms(texts: Sequence[str], chance: random.Random) -> Iterator[Sample]:
    """An entry, and the same with one word replaced by another that means the same."""
    synonyms = {word: line.split() for line in SYNONYMS.split(",") for word in line.split()}
    for text in chance.sample(texts, len(texts))[:_ENTRIES_WITH_SYNONYMS]:
        for word in sorted(synonyms.keys() & set(text.rstrip(".").split())):
            other = chance.choice([each for each in synonyms[word] if each != word])
            yield Sample("synonyms", "same", text, re.sub(rf"\b{word}\b", other, text))


def _from_frames() -> Iterator[Sample]:
    """Each sentence with two values: superseded where it has one value at a time, alike where it has many."""
    for line in (_HERE / "learning_frames.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        count, sentence, reworded, listed = (part.strip() for part in line.split(";"))
        values = listed.split(" / ")
        other = "superseded" if count == "one" else "alike"
        for one, two in permutations(values, 2):
            yield Sample("frames", other, sentence.format(one), sentence.format(two))
            yield Sample("frames", other, sentence.format(one), reworded.format(two))
        yield Sample("frames", "same", sentence.format(values[-1]), reworded.format(values[-1]))


def _cross(name: str, pairs: Sequence[Sequence[str]], chance: random.Random) -> Iterator[Sample]:
    """Pairs of entries from different lines, of those that share most words."""
    entries = [(line, text) for line, pair in enumerate(pairs) for text in pair]
    places: defaultdict[str, set[int]] = defaultdict(set)
    for place, (_, text) in enumerate(entries):
        for word in read_words(text):
            places[word.key].add(place)
    near: set[tuple[int, int]] = set()
    for place, (line, text) in enumerate(entries):
        counts = Counter(
            other for word in read_words(text) for other in sorted(places[word.key]) if entries[other][0] != line
        )
        near.update((place, other) for other, _ in counts.most_common(5))
    for one, two in chance.sample(sorted(near), min(_CROSS_OF_A_SET, len(near))):
        aligned = align(entries[one][1], entries[two][1])
        if min(aligned.covered_older, aligned.covered_newer) <= _MAX_COVERED:
            yield Sample(name, "cross", *aligned[:2])


def _sentences(name: str, wordings: Wordings, chance: random.Random) -> Iterator[Sample]:
    """Pairs of sentences about one attribute of a project, or about two."""
    for _ in range(_PAIRS_OF_A_FILE):
        is_change = chance.random() < 0.4
        older, newer = (
            chance.choice(wordings.statements),
            chance.choice(wordings.changes if is_change else wordings.statements),
        )
        project, other_project = chance.sample(PROJECTS, 2)
        attribute, other_attribute = chance.sample(ATTRIBUTES, 2)
        value, new_value, third = ("".join(chance.sample(SYLLABLES, 3)) for _ in range(3))
        kind, *said = chance.choice(
            [
                ("superseded", project, attribute, new_value, value),
                ("superseded", project, attribute, new_value, value),
                ("alike", other_project, attribute, new_value, third),
                ("alike", project, other_attribute, new_value, third),
                ("alike", project, other_attribute, value, third),
                *([] if is_change else [("same", project, attribute, value, value)]),
            ]
        )
        yield Sample(name, kind, _say(older, project, attribute, value, value), _say(newer, *said))


def _say(sentence: str, project: str, attribute: str, value: str, old: str) -> str:
    return sentence.format(project=project, attribute=attribute, value=value, old=old)


def _clean(samples: Sequence[Sample], table: Any, labels: Any, weights: Any) -> Any:
    """Which samples to learn from: no pair of different lines that looks related to a model without its set."""
    sources = sorted({each.source for each in samples})
    sure = np.ones(len(samples), dtype=bool)
    for group in range(_GROUPS):
        held_out = np.array([sources.index(each.source) % _GROUPS == group for each in samples])
        model = _fit(table[~held_out], labels[~held_out], weights[~held_out])
        is_cross = np.array([each.kind == "cross" for each in samples])
        sure &= ~(held_out & is_cross & (model.predict_proba(table)[:, 0] < 0.5))
    return sure


def _fit(table: Any, labels: Any, weights: Any) -> Any:
    model = HistGradientBoostingClassifier(
        max_depth=5,
        max_iter=200,
        learning_rate=0.12,
        min_samples_leaf=8,
        max_features=0.5,
        l2_regularization=3.0,
        early_stopping=False,
        random_state=0,
    )
    return model.fit(table, labels, sample_weight=weights)


def _serialize(names: Iterable[str], model: Any) -> str:
    """The names of the features, the bases of the labels, and each tree with its label in preorder."""
    lines = [", ".join(names), " ".join(f"{base:.4f}" for base in model._baseline_prediction.ravel())]
    for iteration in model._predictors:
        lines += [f"{label} {' '.join(_nodes(tree.nodes, 0))}" for label, tree in enumerate(iteration)]
    return "\n".join(lines) + "\n"


def _nodes(nodes: Any, place: int) -> Iterator[str]:
    node = nodes[place]
    if node["is_leaf"]:
        yield str(round(node["value"] * LEAF_SCALE))
    else:
        yield f"{node['feature_idx']}<{node['num_threshold']:.3g}"
        yield from _nodes(nodes, node["left"])
        yield from _nodes(nodes, node["right"])


if __name__ == "__main__":
    main()
