"""Counts how often the holographic memory recalls the fact that answers a question, and how often it is not silent.

The sets are in `facts/`. `natural` and `blind` have what a person would ask in their own words, `distant` questions in
words as different from the fact as they can be; `sealed` was written by the person who made the table of related words,
before it was made. Recall was last changed with all these in view, so their figures flatter. `fresh` was written by
another person and was not looked at: 38 of 50 are recalled (35 with 400 others), and one of 20 unrelated prompts is not
met by silence.
Each set is stored alone, then with 400 others.
`everyday_prompts.txt` and the prompts of `*_unrelated.txt` should recall nothing.

Run it with `python -m benchmarks.fact_recall`.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.holographic import generate
from memoranda.providers.holographic import HolographicProvider

_SETS = Path(__file__).with_name("facts")
_EVERYDAY = Path(__file__).with_name("everyday_prompts.txt")
_UNRELATED = {"paraphrases": "natural"}


class RecallCounts(NamedTuple):
    """How many facts were recalled, and for how many prompts something was recalled that should not be."""

    facts: int
    recalled: int
    recalled_first: int
    unrelated: int
    recalled_for_unrelated: int
    recalled_for_everyday: int


def count(name: str, others: tuple[str, ...] = ()) -> RecallCounts:
    """Ask the questions of a set while its facts, and others, are stored."""
    pairs = [(fact.strip(), question.strip()) for fact, question in (line.split("|") for line in _lines(name))]
    unrelated = _lines(f"{_UNRELATED.get(name, name)}_unrelated")
    everyday = [line for line in _EVERYDAY.read_text("utf-8").splitlines() if line]
    with TemporaryDirectory() as directory:
        provider = HolographicProvider(Path(directory))
        provider.initialize("benchmark", hermes_home=directory)
        for fact in (*others, *dict(pairs)):
            provider.handle_tool_call("fact_store", {"action": "add", "content": fact})
        answers = [(fact, provider.prefetch(question).splitlines()) for fact, question in pairs]
        wrong = [sum(bool(provider.prefetch(prompt)) for prompt in prompts) for prompts in (unrelated, everyday)]
        provider.shutdown()
    return RecallCounts(
        len(pairs),
        sum(any(fact in line for line in lines) for fact, lines in answers),
        sum(fact in line for fact, lines in answers for line in lines[:1]),
        len(unrelated),
        *wrong,
    )


def _lines(name: str) -> list[str]:
    lines = (_SETS / f"{name}.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def main() -> None:
    others = tuple(fact for fact, _ in generate(1).facts)
    for name in ("paraphrases", "natural", "distant", "blind", "sealed", "fresh"):
        for kind, more in (("alone", ()), ("with 400 others", others)):
            counts = count(name, more)
            print(
                f"{name:12} {kind:16} recalled {counts.recalled} of {counts.facts}, first {counts.recalled_first}; "
                f"not silent for {counts.recalled_for_unrelated} of {counts.unrelated} unrelated prompts "
                f"and {counts.recalled_for_everyday} everyday ones"
            )


if __name__ == "__main__":
    main()
