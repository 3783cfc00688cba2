"""Measures what search by meaning adds to words: session recall@5 by embedder, with intervals.

Every question is asked once by words, and once with each embedder. The weight of meaning is then chosen on all sets
but one and applied to that one, so that no figure is of the questions that it was chosen with. Intervals are paired
bootstraps over questions. See docs/explanation/how-meaning-was-measured.md.
"""

import argparse
import gzip
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.recall import fill_store
from memoranda.home.session_db import SessionDB
from memoranda.search.index.postings import Filters
from memoranda.search.meaning.embedder import Embedder
from memoranda.search.meaning.embedders import make_embedder
from memoranda.search.meaning.meaning_rescorer import SIGNAL, STANDING_SIGNAL, WEIGHT, MeaningRescorer
from memoranda.search.meaning.vector_index import VectorIndex
from memoranda.search.search import Hit
from memoranda.support.home import vectors_path

DEPTH = 50
FIRST = 5
WEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0)
_RESAMPLES = 4_000


class Asked(NamedTuple):
    """A question: its evidence, the scores of sessions by words, and their likeness by embedder."""

    gold: frozenset[str]
    scores: dict[str, float]
    likeness: tuple[dict[str, float], ...]


def ask_all(data: dict[str, Any], embedders: Sequence[Embedder], *, index: bool) -> Iterator[Asked]:
    """Ask every question of a set; with `index`, whole conversations are compared whatever the embedder costs."""
    for store in data["stores"]:
        with TemporaryDirectory(prefix="memoranda-meaning-") as home, SessionDB(Path(home, "state.db")) as db:
            names = fill_store(db, data["name"], store)
            db.index.catch_up()
            rescorers = [_rescorer(db, embedder, index=index) for embedder in embedders]
            for question in data["queries"]:
                if question["store"] == store["id"]:
                    scores = {names[hit.session_id]: hit.score for hit in _find(db, question["q"], [])}
                    likeness = tuple(
                        {names[hit.session_id]: _likeness(hit) for hit in _find(db, question["q"], [one])}
                        for one in rescorers
                    )
                    yield Asked(frozenset(question["gold_sessions"]), scores, likeness)


def _rescorer(db: SessionDB, embedder: Embedder, *, index: bool) -> MeaningRescorer:
    vectors = VectorIndex(vectors_path(db.path, embedder.name), db.feed, lambda: embedder)
    if index:
        vectors.catch_up()
    return MeaningRescorer(lambda: [embedder], seconds=3_600.0, open_index=lambda _: vectors if index else None)


def _likeness(hit: Hit) -> float:
    return hit.signals.get(SIGNAL, 0.0) + hit.signals.get(STANDING_SIGNAL, 0.0)


def _find(db: SessionDB, question: str, rescorers: list[MeaningRescorer]) -> Sequence[Any]:
    db.rescore_with(lambda: rescorers)
    return db.find(question, Filters(db.scope), limit=DEPTH).hits


def recall(asked: Asked, embedders: Sequence[int], weight: float) -> float:
    """The share of the evidence among the first sessions, with these embedders and this weight."""
    if not asked.scores:
        return 0.0
    unit = max(asked.scores.values()) or 1.0

    def score(session: str) -> float:
        alike = sum(asked.likeness[number].get(session, 0.0) for number in embedders) / max(1, len(embedders))
        return asked.scores[session] / unit + weight * alike

    first = sorted(asked.scores, key=score, reverse=True)[:FIRST]
    return len(asked.gold.intersection(first)) / len(asked.gold)


def choose_weight(sets: Sequence[Sequence[Asked]], embedders: Sequence[int]) -> float:
    """The weight with the best mean over these sets, each counting equally."""
    return max(WEIGHTS, key=lambda weight: mean(mean(recall(q, embedders, weight) for q in some) for some in sets))


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Between which gains 95 of 100 resampled sets of questions are."""
    source = random.Random(17)
    means = sorted(mean(source.choices(differences, k=len(differences))) for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


def report(sets: dict[str, list[Asked]], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each set and each choice of embedders."""
    choices: list[tuple[int, ...]] = [(number,) for number in range(len(names))]
    choices += [tuple(range(len(names)))] if len(names) > 1 else []
    for chosen in choices:
        for name, questions in sets.items():
            others = [some for other, some in sets.items() if other != name]
            weight = choose_weight(others, chosen) if others else WEIGHT
            words = [recall(question, (), 0.0) for question in questions]
            shipped = [recall(question, chosen, WEIGHT) for question in questions]
            left_out = [recall(question, chosen, weight) for question in questions]
            low, high = interval([after - before for before, after in zip(words, shipped, strict=True)])
            yield {
                "embedder": " + ".join(names[number] for number in chosen),
                "set": name,
                "questions": len(questions),
                "words": round(mean(words), 4),
                "with_meaning": round(mean(shipped), 4),
                "gain": round(mean(shipped) - mean(words), 4),
                "low": round(low, 4),
                "high": round(high, 4),
                "weight_of_others": weight,
                "left_out": round(mean(left_out), 4),
            }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory with *.json.gz sets")
    parser.add_argument("--set", action="append", dest="sets", help="only this set; can be given several times")
    parser.add_argument("--semantic", default="wordllama", help="wordllama, onnx:DIRECTORY, or both: A,B")
    parser.add_argument("--index", action="store_true", help="with an index of vectors")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    arguments = parser.parse_args()
    names = arguments.semantic.split(",")
    embedders = [make_embedder(name) for name in names]
    sets: dict[str, list[Asked]] = {}
    for path in sorted(arguments.data.glob("*.json.gz")):
        if not arguments.sets or path.name.split(".")[0] in arguments.sets:
            with gzip.open(path) as stream:
                data = json.load(stream)
            sets[data["name"]] = list(ask_all(data, embedders, index=arguments.index))
            print(data["name"], file=sys.stderr, flush=True)
    rows = list(report(sets, [name.partition(":")[0] for name in names]))
    print("| embedder | set | words | with meaning | gain, 95 % | weight of the other sets | then |")
    print("|---|---|---:|---:|---|---:|---:|")
    for row in rows:
        gain = f"{row['gain']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
        cells = [row["embedder"], row["set"], f"{row['words']:.3f}", f"{row['with_meaning']:.3f}", gain]
        cells += [str(row["weight_of_others"]), f"{row['left_out']:.3f}"]
        print(f"| {' | '.join(cells)} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
