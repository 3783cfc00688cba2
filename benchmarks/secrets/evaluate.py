"""How many credentials stay in clear text, and how many ordinary lines are changed.

Values are random and depend on the seed only. A format counts as missed when its value stays in any of the texts of a
group. `--look-alikes` prints the ordinary lines that are changed, `--missed` the credentials that are left.

    .venv/bin/python benchmarks/secrets/evaluate.py [--seed 1] [--rounds 3] [--missed] [--look-alikes] [--json]
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.secrets import carriers, formats, situations
from benchmarks.secrets.lookalikes import generated_lines, written_lines
from benchmarks.secrets.template import generate
from memoranda.safety.redaction import Redactor

_MARKED = re.compile(r"<<(.*?)>>")
# So much of a value may stay: the prefix of its issuer, or a word of a phrase.
_MAX_REST = 12

Missed = list[tuple[str, str, str]]


def leaks(text: str, value: str, redactor: Redactor) -> bool:
    """Whether more than a prefix of a value is still in the redacted text."""
    redacted, _ = redactor.text(text)
    if len(value) <= 2 * _MAX_REST:
        return value[len(value) // 2 :] in redacted
    return any(value[start : start + _MAX_REST] in redacted for start in range(4, len(value) - _MAX_REST, 4))


def missed_formats(
    group: Sequence[formats.Format], texts: Mapping[str, carriers.Carrier], seed: int, rounds: int
) -> Missed:
    """The formats of a group that stay in a text of a kind: name, kind of text, text."""
    redactor, missed = Redactor(), []
    for round_number in range(rounds):
        for name, template, variable in group:
            marked = generate(template, random.Random(f"{seed} {round_number} {name}"))
            value = _unmark(marked)
            secret = "".join(_MARKED.findall(marked)) or value
            for kind, carrier in texts.items():
                text = carrier(name, variable, value)
                if leaks(text, secret, redactor):
                    missed.append((name, kind, text))
    return missed


def missed_situations(group: Mapping[str, str], seed: int, rounds: int) -> Missed:
    redactor, missed = Redactor(), []
    for round_number in range(rounds):
        for name, template in group.items():
            text = generate(template, random.Random(f"{seed} {round_number} {name}"))
            values, text = _MARKED.findall(text), _unmark(text)
            if any(leaks(text, value, redactor) for value in values):
                missed.append((name, "text", text))
    return missed


def _unmark(text: str) -> str:
    return text.replace("<<", "").replace(">>", "")


def changed_lines(lines: Sequence[str]) -> list[tuple[str, str]]:
    """The ordinary lines that redaction changes, with what becomes of them."""
    redactor = Redactor()
    pairs = [(line, redactor.text(line)[0]) for line in lines]
    return [(line, redacted) for line, redacted in pairs if line != redacted]


def evaluate(seed: int, rounds: int) -> dict[str, tuple[Missed, int]]:
    """For each group, what was missed and how many formats or texts it has."""
    results: dict[str, tuple[Missed, int]] = {}
    for name, group in (("common", formats.COMMON), ("newer", formats.NEWER), ("untuned", formats.UNTUNED)):
        results[f"{name} formats"] = missed_formats(group, carriers.USUAL, seed, rounds), len(group)
        results[f"{name} formats, other texts"] = missed_formats(group, carriers.OTHER, seed, rounds), len(group)
        results[f"{name} formats, fresh texts"] = missed_formats(group, carriers.FRESH, seed, rounds), len(group)
    for name, texts in (("files and headers", situations.FILES_AND_HEADERS), ("sentences", situations.SENTENCES)):
        results[name] = missed_situations(texts, seed, rounds), len(texts)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--look-alikes", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = evaluate(options.seed, options.rounds)
    lines = {"written": written_lines(), "generated": generated_lines(options.seed)}
    changed = {name: changed_lines(group) for name, group in lines.items()}
    if options.json:
        summary: dict[str, Any] = {
            name: {"missed": sorted({entry[0] for entry in missed}), "of": count}
            for name, (missed, count) in results.items()
        }
        summary |= {f"{name} look-alikes": {"changed": len(changed[name]), "of": len(lines[name])} for name in lines}
        print(json.dumps(summary, ensure_ascii=False))
        return
    for name, (missed, count) in results.items():
        names = sorted({entry[0] for entry in missed})
        print(f"{name:34} {len(names):3} of {count:3} in clear")
        examples = {(entry[0], entry[1]): entry[2] for entry in missed} if options.missed else {}
        for (issuer, kind), text in examples.items():
            print(f"    {issuer} ({kind}): {text[-160:]!r}")
    for name, group in lines.items():
        print(f"{name + ' look-alikes':34} {len(changed[name]):3} of {len(group):3} changed")
        for line, redacted in changed[name] if options.look_alikes else ():
            print(f"    {line[:200]!r}\n      {redacted[:200]!r}")


if __name__ == "__main__":
    main()
