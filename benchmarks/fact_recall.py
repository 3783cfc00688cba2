"""Counts how often the holographic memory recalls the fact that answers a question, and how often it is not silent.

The sets are in `facts/`. `natural` and `blind` have what a person would ask in their own words, `distant` questions in
words as different from the fact as they can be; `sealed` was written by the person who made the table of related words,
before it was made; `fresh` and `named` were written by others. The facts of `named` call the user by name, and half of
its unrelated prompts ask for something about the user that no fact says. Recall was last changed with these in view,
so their figures flatter. `counted_once` is like `named`; it was unread when recall was last changed.
Each set is stored alone, then with 400 others. `everyday_prompts.txt` and `*_unrelated.txt` should recall nothing.
`*_calls.jsonl` are the calls, with tags, of a model that had the tool's description but not the questions.

    python -m benchmarks.fact_recall
    python -m benchmarks.fact_recall --model onnx:DIRECTORY     # and with a local sentence encoder
    python -m benchmarks.fact_recall --directory DIRECTORY      # only the totals of another set

Such a directory has `facts.txt` (fact | question), `unrelated.txt` (a prompt per line), `contradictions.txt`
(contradict or compatible | fact | fact), and may have `calls.jsonl`.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.contradictions import has_contradiction
from benchmarks.holographic import generate
from memoranda.api.search_extras import LocalTextEmbedder
from memoranda.external.holographic import HolographicProvider

_SETS = Path(__file__).with_name("facts")
_EVERYDAY = Path(__file__).with_name("everyday_prompts.txt")
_NAMES = ("paraphrases", "natural", "distant", "blind", "sealed", "fresh", "named", "counted_once")
_UNRELATED = {"paraphrases": "natural"}
# More than enough, because a benchmark does not measure time.
_SECONDS = 600.0


class FactSet(NamedTuple):
    """Facts with the questions that they answer, prompts that no fact answers, and the tags that a model gave."""

    pairs: list[tuple[str, str]]
    unrelated: list[str]
    tags: dict[str, str]


class RecallCounts(NamedTuple):
    """How many facts were recalled, and for how many prompts something was recalled that should not be."""

    facts: int
    recalled: int
    recalled_first: int
    unrelated: int
    recalled_for_unrelated: int
    recalled_for_everyday: int

    def __str__(self) -> str:
        return (
            f"recalled {self.recalled} of {self.facts}, first {self.recalled_first}; "
            f"not silent for {self.recalled_for_unrelated} of {self.unrelated} unrelated prompts "
            f"and {self.recalled_for_everyday} everyday ones"
        )


def read_set(facts: Path, unrelated: Path, calls: Path) -> FactSet:
    pairs = [(fact.strip(), question.strip()) for fact, question in (line.split("|") for line in _lines(facts))]
    made = [json.loads(line) for line in _lines(calls)] if calls.exists() else []
    return FactSet(pairs, _lines(unrelated), {call["content"]: call["tags"] for call in made})


def find_set(name: str) -> FactSet:
    """A set in `facts/`."""
    unrelated = _SETS / f"{_UNRELATED.get(name, name)}_unrelated.txt"
    return read_set(_SETS / f"{name}.txt", unrelated, _SETS / f"{name}_calls.jsonl")


def count(chosen: FactSet, others: tuple[str, ...] = (), model: str = "", *, tagged: bool = False) -> RecallCounts:
    """Ask the questions of a set while its facts, and others, are stored, its own with a model's tags or without."""
    with TemporaryDirectory() as directory:
        provider = HolographicProvider(Path(directory))
        embedder = LocalTextEmbedder(model, _SECONDS) if model else None
        provider.initialize("benchmark", hermes_home=directory, embedder=embedder)
        for fact in (*others, *dict(chosen.pairs)):
            tags = chosen.tags[fact] if tagged and fact not in others else ""
            provider.handle_tool_call("fact_store", {"action": "add", "content": fact, "tags": tags})
        if model:
            for _ in range(0, len(others) + len(chosen.pairs), 50):
                # Each recall embeds some of the facts.
                provider.prefetch("Which of these facts do I need?")
        answers = [(fact, provider.prefetch(question).splitlines()) for fact, question in chosen.pairs]
        wrong = [
            sum(bool(provider.prefetch(prompt)) for prompt in prompts)
            for prompts in (chosen.unrelated, _lines(_EVERYDAY))
        ]
        provider.shutdown()
    return RecallCounts(
        len(chosen.pairs),
        sum(any(fact in line for line in lines) for fact, lines in answers),
        sum(fact in line for fact, lines in answers for line in lines[:1]),
        len(chosen.unrelated),
        *wrong,
    )


def count_contradictions(path: Path) -> str:
    """The totals of a file of pairs."""
    pairs = [[field.strip() for field in line.split("|")] for line in _lines(path)]
    found = [(kind, has_contradiction((first, second))) for kind, first, second in pairs]
    totals = []
    for kind, verb in (("contradict", "found"), ("compatible", "suspected")):
        results = [result for own, result in found if own == kind]
        totals.append(f"{verb} {sum(results)} of {len(results)}")
    return ", ".join(totals)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="a local sentence encoder, as onnx:DIRECTORY")
    parser.add_argument("--directory", type=Path, help="a directory with another set")
    options = parser.parse_args()
    directory: Path | None = options.directory
    if directory is None:
        sets = {name: find_set(name) for name in _NAMES}
    else:
        files = (directory / name for name in ("facts.txt", "unrelated.txt", "calls.jsonl"))
        sets = {directory.name: read_set(*files)}
    others = tuple(fact for fact, _ in generate(1).facts)
    for name, chosen in sets.items():
        for kind, more in (("alone", ()), ("with 400 others", others)):
            for tagged, model in product(
                (False, True) if chosen.tags else (False,), dict.fromkeys(("", options.model))
            ):
                means = ", ".join(["words", *["tags"] * tagged, *["meaning"] * bool(model)])
                print(f"{name:12} {kind:16} {means:20} {count(chosen, more, model, tagged=tagged)}", flush=True)
    if directory is not None:
        print(f"contradictions: {count_contradictions(directory / 'contradictions.txt')}")


if __name__ == "__main__":
    main()
