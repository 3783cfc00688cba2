"""Measures the scanner: attacks caught and false alarms on sources not trained on, and tricks."""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from dataset import load
from fitting import held_out_scores, tabulate, threshold
from tricks import TRICKS

from memoranda.safety import scan

_TRICK_SAMPLES = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with security/ and recall/")
    options = parser.parse_args()
    samples = load(options.data)
    print_detection(options.data)
    print_tricks([sample.text for sample in samples if sample.attack and sample.judged])


def print_detection(data: Path) -> None:
    """Print the figures of rules and model; the model and threshold that judge a text saw nothing of its group."""
    table = tabulate(load(data))
    scores, folds = held_out_scores(table)
    judged = np.array([sample.judged for sample in table.samples])
    attack = np.array([sample.attack for sample in table.samples])
    by_rule = np.array(
        [bool(judged[index] and scan(sample.text, learned=False)) for index, sample in enumerate(table.samples)]
    )
    by_model = np.zeros(len(scores), bool)
    for fold in range(folds.max() + 1):
        elsewhere = judged & ~attack & (folds != fold)
        by_model[folds == fold] = scores[folds == fold] > threshold(scores[elsewhere])
    caught = by_rule | by_model
    print("| | texts | rules | model | together |\n|---|---|---|---|---|")
    _row("attacks", judged & attack, by_rule, by_model, caught)
    _row("harmless (false alarms)", judged & ~attack, by_rule, by_model, caught)
    categories, groups = defaultdict(list), defaultdict(list)
    for index in np.flatnonzero(judged & attack):
        categories[table.samples[index].category].append(index)
        groups[table.samples[index].group].append(index)
    for name, indexes in [*sorted(categories.items()), *sorted(groups.items())]:
        _row(name, np.array(indexes), by_rule, by_model, caught)
    print(f"\nmean over groups of attacks: {np.mean([caught[indexes].mean() for indexes in groups.values()]):.1%}\n")


def _row(name: str, chosen: np.ndarray, by_rule: np.ndarray, by_model: np.ndarray, caught: np.ndarray) -> None:
    shares = " | ".join(f"{flags[chosen].mean():.2%}" for flags in (by_rule, by_model, caught))
    print(f"| {name} | {len(by_rule[chosen])} | {shares} |")


def print_tricks(attacks: list[str]) -> None:
    """Print the share of attacks, all found without tricks, that are still found under each trick."""
    found = [
        text for text in attacks[:: max(1, len(attacks) // 400)] if text.isascii() and len(text) < 600 and scan(text)
    ]
    chosen = found[:: max(1, len(found) // _TRICK_SAMPLES)]
    shares = {name: np.mean([bool(scan(trick(text))) for text in chosen]) for name, trick in TRICKS.items()}
    print("| trick | still found |\n|---|---|")
    for name, share in shares.items():
        print(f"| {name} | {share:.0%} |")
    print(f"| **all, {len(chosen)} attacks each** | **{np.mean(list(shares.values())):.1%}** |\n")


if __name__ == "__main__":
    main()
