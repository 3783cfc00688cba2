"""Train the learned part of the scanner and write its data file into the package."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from dataset import load
from fitting import fit, held_out_scores, tabulate, threshold

from memoranda.safety.folding import STOP
from memoranda.safety.learned import DATA_FILE, Model

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
    options.out.write_text(_written(model), "utf-8")
    print(
        f"{len(model.words)} words, {len(model.pairs)} pairs, threshold {model.threshold:.3f},"
        f" {options.out.stat().st_size / 1000:.0f} kB"
    )


def _written(model: Model) -> str:
    pairs = {" ".join("." if word == STOP else word for word in pair): weight for pair, weight in model.pairs.items()}
    words = {"." if word == STOP else word: weight for word, weight in model.words.items()}
    blocks = ("\n".join(f"{weight} {name}" for name, weight in sorted(block.items())) for block in (words, pairs))
    return f"{model.bias:.4f} {model.threshold:.4f}\n" + "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    main()
