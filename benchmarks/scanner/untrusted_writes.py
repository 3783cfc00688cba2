"""How many texts the scanner refuses, and how many others wait for a person because of where they come from.

Each text is judged as if an agent wanted to remember it after reading it in a tool's result, while the user said
nothing of the kind: our own attacks and notes, to which nothing was fitted, and with `--data` the public sets:

    python benchmarks/scanner/untrusted_writes.py [--data DIRECTORY/security]
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
    parser.add_argument("--data", type=Path, help="The directory with attacks.dev.jsonl and benign.dev.jsonl.")
    folder = parser.parse_args().data
    print(f"{'texts':<36}{'number':>8}{'refused by the scanner':>26}{'wait for a person':>20}{'pass':>8}")
    own = Path(__file__).parent
    _print_file("our own attacks", own / "attacks.jsonl", "kind")
    _print_file("our own notes", own / "notes.jsonl", "kind")
    _print_row("ordinary notes", notes())
    # Written without knowing the rule; the sets were counted one after the other.
    _print_file("saves", own / "saves.jsonl", "category")
    if folder is not None:
        for name in ("attacks", "benign"):
            _print_file(name, folder / f"{name}.dev.jsonl", "category")


def _print_file(name: str, path: Path, key: str) -> None:
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found.setdefault(record[key], []).append(record["text"])
    for kind in sorted(found):
        _print_row(f"{name}: {kind}", found[kind])
    _print_row(f"{name}: all", [text for texts in found.values() for text in texts])


def _print_row(name: str, texts: Iterable[str]) -> None:
    judged = ["refused" if scan(text) else "waits" if changes_behaviour(text) else "passes" for text in texts]
    counts = [judged.count(verdict) for verdict in ("refused", "waits", "passes")]
    print(f"{name:<36}{len(judged):>8}{counts[0]:>26}{counts[1]:>20}{counts[2]:>8}")


if __name__ == "__main__":
    main()
