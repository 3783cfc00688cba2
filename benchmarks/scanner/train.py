"""Trains the learned part of the scanner, and writes its data file into the package."""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from dataset import load
from fitting import fit, held_out_scores, tabulate, threshold

from memoranda.safety.classifier import DATA_FILE, LinearModel
from memoranda.safety.normalization import STOP

_TARGET = Path(__file__).parents[2] / "src" / "memoranda" / "safety" / DATA_FILE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with security/ and recall/")
    parser.add_argument("--out", type=Path, default=_TARGET)
    options = parser.parse_args()
    table = tabulate(load(options.data))
    scores, _ = held_out_scores(table)
    harmless = np.array([sample.judged and not sample.attack for sample in table.samples])
    model = replace(fit(table, np.arange(len(table.owners))), threshold=threshold(scores[harmless]))
    options.out.write_text(_serialize(model), "utf-8")
    print(
        f"{len(model.words)} words, {len(model.stems)} beginnings, {len(model.pairs())} pairs,"
        f" threshold {model.threshold:.3f}, {options.out.stat().st_size / 1000:.0f} kB"
    )


def _serialize(model: LinearModel) -> str:
    """Return the text of the data file: blocks for words, beginnings and pairs, each with one line per weight."""
    pairs = {" ".join(_mark_stop(word) for word in pair): weight for pair, weight in model.pairs().items()}
    blocks = ({_mark_stop(word): weight for word, weight in model.words.items()}, model.stems, pairs)
    header = f"{model.bias:.4f} {model.threshold:.4f} {model.step}"
    return "\n\n".join([header, *map(_lines, blocks)]) + "\n"


def _lines(weights: dict[str, int]) -> str:
    named = defaultdict[int, list[str]](list)
    for name, weight in sorted(weights.items()):
        named[weight].append(name)
    return "\n".join(f"{weight} {' '.join(names)}" for weight, names in sorted(named.items()))


def _mark_stop(word: str) -> str:
    return "." if word == STOP else word


if __name__ == "__main__":
    main()
