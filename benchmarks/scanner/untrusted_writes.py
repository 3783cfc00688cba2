"""How many attacks wait for a person because of where they come from, and how many honest notes do.

Each text is judged as if an agent wanted to remember it after reading it in a tool's result, while the user said
nothing of the kind. Run it with the texts of `dataset.py`:

    python benchmarks/scanner/untrusted_writes.py --data DIRECTORY
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from ordinary import notes

from memoranda.safety import scan
from memoranda.safety.behaviour import changes_behaviour


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="The directory with attacks.dev.jsonl.")
    folder = parser.parse_args().data
    print(f"{'texts':<36}{'number':>8}{'refused by the scanner':>26}{'wait for a person':>20}{'pass':>8}")
    for name in ("attacks", "benign"):
        texts = _read(folder / f"{name}.dev.jsonl")
        for category in sorted(texts):
            _print_row(f"{name}: {category}", texts[category])
        _print_row(f"{name}: all", [text for category in texts.values() for text in category])
    _print_row("notes of benchmarks/scanner", notes())


def _read(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found.setdefault(record["category"], []).append(record["text"])
    return found


def _print_row(name: str, texts: Iterable[str]) -> None:
    judged = ["refused" if scan(text) else "waits" if changes_behaviour(text) else "passes" for text in texts]
    counts = [judged.count(verdict) for verdict in ("refused", "waits", "passes")]
    print(f"{name:<36}{len(judged):>8}{counts[0]:>26}{counts[1]:>20}{counts[2]:>8}")


if __name__ == "__main__":
    main()
