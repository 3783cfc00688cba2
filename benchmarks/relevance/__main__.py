"""Measures how often a prompt gets evidence without asking, and what the words "sure" and "likely" of a search mean.

    python -m benchmarks.relevance --data DIR                       # the development part, with today's constants
    python -m benchmarks.relevance --data DIR --fit                 # prints new constants, and what they give unseen
    python -m benchmarks.relevance --data DIR --locked              # the part that was not used for the constants
    python -m benchmarks.relevance --data DIR --semantic wordllama  # the same with meaning

Each store gets questions with an answer in it, questions without one, questions whose answer was removed from it,
questions about other people's conversations, everyday prompts of people at work with an agent, and prompts about other
work. `--samples` keeps what was measured in a file, or reads it if it exists, so that a fit can be repeated in seconds.
See docs/explanation/how-relevance-was-measured.md.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.relevance import fit, report
from benchmarks.relevance.prompts import Part, read_sets
from benchmarks.relevance.samples import Sample, measure_sets, read_samples, write_samples
from memoranda.search.legs.leg import MakeRescorers
from memoranda.search.meaning.embedders import make_embedder
from memoranda.search.meaning.meaning_rescorer import MeaningRescorer
from memoranda.search.relevance import SEARCH_BY_MEANING, SEARCH_BY_WORDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory with *.json.gz sets")
    parser.add_argument("--set", action="append", dest="chosen", help="only this set; can be given several times")
    parser.add_argument("--samples", type=Path, help="read what was measured from this file, or write it there")
    parser.add_argument("--fit", action="store_true", help="fit the constants and print them")
    parser.add_argument("--locked", action="store_true", help="count the locked part")
    parser.add_argument("--semantic", help="an embedder: wordllama, or onnx:DIRECTORY")
    arguments = parser.parse_args()
    samples = _samples(arguments)
    if arguments.fit:
        _fit(samples, with_meaning=any("meaning" in hit.measures for sample in samples for hit in sample.hits))
        return 0
    scored = report.scored_today(samples)
    print(report.rates(scored), report.costs(samples), sep="\n\n")
    print("\n" + report.confidences(samples, SEARCH_BY_WORDS, SEARCH_BY_MEANING))
    return 0


def _samples(arguments: argparse.Namespace) -> list[Sample]:
    path: Path | None = arguments.samples
    if path and path.exists():
        return read_samples(path)
    if arguments.data is None:
        sys.exit("--data is needed, or a file of --samples that exists")
    sets = read_sets(arguments.data)
    part: Part = "locked" if arguments.locked else "development"
    found = list(measure_sets(sets, arguments.chosen or list(sets), part, _rescorers(arguments.semantic)))
    if path:
        write_samples(path, found)
    return found


def _rescorers(embedder: str | None) -> MakeRescorers:
    if embedder is None:
        return tuple
    rescorers = [MeaningRescorer(lambda: [make_embedder(embedder)], seconds=3600)]
    return lambda: rescorers


def _fit(samples: list[Sample], *, with_meaning: bool) -> None:
    suffix, extra = ("MEANING", (fit.MEANING,)) if with_meaning else ("WORDS", ())
    floor_names, search_names = (*fit.FLOOR_MEASURES, *extra), (*fit.SEARCH_MEASURES, *extra)
    floor = fit.fit_floor(samples, floor_names)
    search = fit.fit(fit.search_examples(samples, search_names), search_names)
    print(fit.show_constants(f"FLOOR_BY_{suffix}", floor))
    print(fit.show_constants(f"SEARCH_BY_{suffix}", search))
    for title, splits in (("Stores and prompts", fit.split_by_store(samples)), ("Sets", fit.split_by_set(samples))):
        print(f"\n{title} that the fit did not see:\n\n{report.rates(fit.score_unseen(splits, floor_names))}")
    by_words, by_meaning = (SEARCH_BY_WORDS, search) if with_meaning else (search, SEARCH_BY_MEANING)
    for known, others in fit.split_by_store(samples)[:1]:
        chosen = fit.fit(fit.search_examples(known, search_names), search_names)
        pair = (by_words, chosen) if with_meaning else (chosen, by_meaning)
        print("\nWhat the words of a search mean, in a third that the fit did not see:\n")
        print(report.confidences(others, *pair))


if __name__ == "__main__":
    sys.exit(main())
