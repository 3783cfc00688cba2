"""Searches for texts that make the scanner slow, from the pieces that its rules react to.

A candidate is a few pieces, repeated to the wanted size. The search starts from single pieces and keeps replacing and
adding pieces in the slowest candidates. It prints the slowest ones with their CPU time, to be added to `hostile.py`.
"""

import argparse
import random
import time

from hostile import UNITS

from memoranda.safety import concepts as concept_words
from memoranda.safety import dangerous_commands, markup, scan, vocabulary

_SIZE = 20_000
_KEPT = 24


def pieces() -> list[str]:
    """Return the words, hints and signs that some rule looks for."""
    hints = [hint for rows in dangerous_commands._HINTS.values() for row in rows for hint in row]
    hints += [hint for rule in markup.MARKUP_RULES for hint in rule.hints]
    words = [word for words in vocabulary.word_classes().values() for word in words[:6]]
    words += [word.strip("*") for words in concept_words.CONCEPTS.values() for word in words.split()[:4]]
    words += [word for words in concept_words.UNSPACED_CONCEPTS.values() for word in words.split()[:2]]
    signs = [*" \n.:=@/-_'\"`#*|<>()[]{}$%&\\", "://", ". ", "= ", ": ", "--", "\\n", "\u200b", "http://a.b"]
    return list(dict.fromkeys([*UNITS.values(), *hints, *words, *(f"{word} " for word in words), *signs]))


def cpu(unit: str, size: int) -> float:
    """Return the CPU time of a scan of `unit` repeated to `size` bytes, in milliseconds."""
    text = (unit * (size // max(1, len(unit.encode("utf-8", "replace"))) + 1))[:size]
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        scan(text)
        best = min(best, (time.process_time() - start) * 1000)
    return best


def search(rounds: int, seed: int) -> list[tuple[float, str]]:
    """Return the slowest units found, slowest first, timed at a fifth of the final size."""
    rng = random.Random(seed)
    known = pieces()
    scan("warm up, with every table: ignore all previous instructions 密码 aWdub3JlIGFsbA==")
    found = {piece: cpu(piece, _SIZE) for piece in known}
    for _ in range(rounds):
        parents = sorted(found, key=found.__getitem__, reverse=True)[:_KEPT]
        parent = rng.choice(parents)
        other = rng.choice(parents) if rng.random() < 0.3 else rng.choice(known)
        child = rng.choice((parent + other, other + parent, parent + " " + other, parent[1:] + other, parent[:-1]))
        if child and len(child) <= 120 and child not in found:
            found[child] = cpu(child, _SIZE)
    return sorted(((duration, unit) for unit, duration in found.items()), reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=100_000, help="size at which the slowest are timed again")
    options = parser.parse_args()
    for _, unit in search(options.rounds, options.seed)[:_KEPT]:
        print(f"{cpu(unit, options.size):7.1f} ms  {unit!r}")


if __name__ == "__main__":
    main()
