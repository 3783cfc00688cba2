"""The tables of the measurement: how often each kind of prompt gets evidence, and what the words of a search mean."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import mean

from benchmarks.relevance.fit import points, search_examples
from benchmarks.relevance.prompts import EVERYDAY, HAS_ANSWER, KINDS, UNSPACED
from benchmarks.relevance.samples import MeasuredHit, Sample
from memoranda.search.relevance import (
    CONFIDENCES,
    FLOOR_BY_MEANING,
    FLOOR_BY_WORDS,
    LIKELY,
    SURE,
    Calibration,
    Confidence,
)

Scored = Sequence[tuple[Sample, float]]


def scored_today(samples: Iterable[Sample]) -> list[tuple[Sample, float]]:
    """The points that each prompt gets from the constants in the package."""
    return [
        (sample, max((_floor_points(hit) for hit in sample.hits if hit.may_clear), default=-99.0)) for sample in samples
    ]


def _floor_points(hit: MeasuredHit) -> float:
    return points(FLOOR_BY_MEANING if "meaning" in hit.measures else FLOOR_BY_WORDS, hit.measures)


def rates(scored: Scored, cutoff: float = 0.0) -> str:
    """A table of how often each kind of prompt gets evidence: by set, and on average over the sets with spaces."""
    lines = [f"| set | {' | '.join(KINDS)} |", f"|---|{'---:|' * len(KINDS)}"]
    names = list(dict.fromkeys(sample.set for sample, _ in scored))
    for name in names:
        cells = (_cell([value >= cutoff for s, value in scored if (s.set, s.kind) == (name, kind)]) for kind in KINDS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    spaced = [name for name in names if name not in UNSPACED]
    for title, chosen in (("mean of the sets with spaces", spaced), ("mean of all sets", names)):
        by_kind = []
        for kind in KINDS:
            found = [[v >= cutoff for s, v in scored if (s.set, s.kind) == (name, kind)] for name in chosen]
            by_kind.append(f"{mean(mean(each) for each in found if each):.3f}" if any(found) else "–")
        lines.append(f"| **{title}** | {' | '.join(by_kind)} |")
    cells = (_cell([value >= cutoff for s, value in scored if s.kind == kind and s.set in spaced]) for kind in KINDS)
    lines.append(f"| **every prompt of the sets with spaces** | {' | '.join(cells)} |")
    return "\n".join(lines)


def costs(samples: Sequence[Sample]) -> str:
    """The tokens that the hook adds: per useful answer, and per prompt of other kinds; and its time."""
    lines = [
        "| set | given is right | tokens given, median | per useful answer | per everyday prompt | CPU ms p50 / p95 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(sample.set for sample in samples):
        found = [sample for sample in samples if sample.set == name]
        given = [sample for sample in found if sample.kind == HAS_ANSWER and sample.given]
        useful = sum(sample.useful for sample in given)
        tokens = sorted(sample.given for sample in given)
        everyday = [sample.given for sample in found if sample.kind == EVERYDAY]
        seconds = sorted(1000 * sample.seconds for sample in found)
        lines.append(
            f"| {name} | {useful / max(1, len(given)):.2f} | {tokens[len(tokens) // 2] if tokens else 0} |"
            f" {sum(tokens) / max(1, useful):.0f} | {mean(everyday) if everyday else 0:.1f} |"
            f" {seconds[len(seconds) // 2]:.1f} / {seconds[len(seconds) * 95 // 100]:.1f} |"
        )
    return "\n".join(lines)


def confidences(samples: Sequence[Sample], by_words: Calibration, by_meaning: Calibration) -> str:
    """What each word of a search means: how often a result with this word contains the evidence."""
    lines = [
        "| word | results of questions with an answer | all | answers to questions with an answer | all |",
        "|---|---:|---:|---:|---:|",
    ]

    def value_of(hit: MeasuredHit) -> float:
        if hit.another:
            return LIKELY - 1
        return points(by_meaning if "meaning" in hit.measures else by_words, hit.measures)

    for word in reversed(CONFIDENCES):
        cells = []
        for answers in (False, True):
            for kinds in ((HAS_ANSWER,), KINDS):
                judged = [
                    (max(map(value_of, hits)), any(hit.gold for hit in hits))
                    for sample in samples
                    if sample.kind in kinds
                    for hits in _results(sample, answers=answers)
                ]
                cells.append(_cell([gold for value, gold in judged if word_for(value) == word]))
        lines.append(f"| {word} | {' | '.join(cells)} |")
    examples = search_examples(samples, ())
    lines.append(f"\nevery result, weighted: {mean(example.label for example in examples):.2f}")
    return "\n".join(lines)


def word_for(value: float) -> Confidence:
    return "sure" if value >= SURE else "likely" if value >= LIKELY else "unsure"


def _results(sample: Sample, *, answers: bool) -> Iterator[tuple[MeasuredHit, ...]]:
    for hits in (sample.typed, sample.keywords):
        if answers and hits:
            yield hits
        elif not answers:
            yield from ((hit,) for hit in hits)


def _cell(values: Sequence[bool]) -> str:
    return f"{mean(values):.3f} of {len(values)}" if values else "–"
