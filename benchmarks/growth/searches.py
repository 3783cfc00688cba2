"""Asks the searches of a plan, and sums up what was found and what it cost."""

import random
from collections.abc import Iterator
from statistics import median, quantiles

from benchmarks.curated import report
from benchmarks.growth.plan import KINDS, QUESTION, WORDS, Plan, SearchText
from benchmarks.growth.programs import Installed

# An agent's process makes few searches; what it remembers of one must not answer the next.
_PER_PROCESS = 20
_SEED = 43
# These load what a process loads once, and find something: after a search that found nothing, the index is checked.
_WARM_UP = ["build", "deploy server", "what is the file of the config", "数据", "token cache"]

Figures = dict[str, float]


def measure_searches(program: Installed, corpus: str, messages: int, plan: Plan, rounds: int) -> Figures:
    """Ask everything `rounds` times, in new processes; of each search the median of its CPU counts."""
    home = program.home(corpus, messages)
    searches = random.Random(_SEED).sample(plan.searches, len(plan.searches))
    costs: list[list[float]] = [[] for _ in searches]
    found: list[list[str]] = []
    rss = 0.0
    for _ in range(rounds):
        found = []
        for part in _in_parts(searches):
            result = program.do("search", home, texts=[search.text for search in part], warm_up=_WARM_UP)
            rss = max(rss, result["rss"])
            for answer in result["answers"]:
                costs[len(found)].append(answer["cpu"])
                found.append(answer["found"])
    empty = [search.kind for search, sessions in zip(searches, found, strict=True) if not sessions]
    for kind in dict.fromkeys(empty):
        report(f"{program.name} found nothing for {empty.count(kind)} searches of the kind {kind!r}.")
    return _hits(searches, found, plan) | _costs(searches, [median(calls) for calls in costs], found) | {"rss, MB": rss}


def _in_parts(searches: list[SearchText]) -> Iterator[list[SearchText]]:
    return (searches[start : start + _PER_PROCESS] for start in range(0, len(searches), _PER_PROCESS))


def _hits(searches: list[SearchText], found: list[list[str]], plan: Plan) -> Figures:
    """Return the share of notes whose session is among the first three, by form, and of those in cron sessions."""
    figures: Figures = {}
    for form, kind in (("question", QUESTION), ("words", WORDS)):
        asked = [
            (plan.notes[search.note], sessions)
            for search, sessions in zip(searches, found, strict=True)
            if search.kind == kind and search.note is not None
        ]
        for label, chosen in (
            (f"hit@3, {form}", asked),
            (f"hit@3, {form}, in cron sessions", [pair for pair in asked if pair[0].cron]),
        ):
            figures[label] = sum(note.session_id in sessions for note, sessions in chosen) / len(chosen)
    return figures


def _costs(searches: list[SearchText], costs: list[float], found: list[list[str]]) -> Figures:
    """Return percentiles by kind, except of a kind for which a program mostly finds nothing."""
    figures: Figures = {}
    for kind in KINDS:
        answered = [bool(sessions) for search, sessions in zip(searches, found, strict=True) if search.kind == kind]
        if 2 * sum(answered) < len(answered):
            continue
        values = [1000 * cost for search, cost in zip(searches, costs, strict=True) if search.kind == kind]
        figures[f"{kind}, p50, ms"] = median(values)
        figures[f"{kind}, p95, ms"] = quantiles(values, n=100, method="inclusive")[94]
    return figures
