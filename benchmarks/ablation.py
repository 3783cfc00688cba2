"""Shows what each rule of ranking and of the relevance floor earns: it is switched off, and everything is asked again.

    python -m benchmarks.ablation                                     # on the everyday set
    python -m benchmarks.ablation --data DIR --questions 150          # also on the question sets in a directory

The first line has the figures with all rules, each further line the difference without one rule: in questions of the
everyday set (of `others` and `prompts`, for how many the hook shows something), in points of recall@5 and of the first
hit on the other sets. With 150 questions one of them is 0.67 points: a difference of less than a point says nothing.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import everyday
from benchmarks.recall import OpenSet, open_sets, read_sets, score
from memoranda.search import relevance
from memoranda.search.query import Perspective

_NEVER = 1_000_000
_NOTHING = re.compile(r"(?!)")
_SEARCH = "memoranda.search."
# What replaces a constant or a function of the search when a rule is off.
RANKING: Mapping[str, Mapping[str, Any]] = {
    "standing instructions": {"legs.term_fetcher.AddedTerms.standing": lambda self, weighted: []},
    "related words": {"legs.term_fetcher.AddedTerms.related": lambda self, terms: []},
    "perspective": {"legs.words.find_perspective": lambda text: Perspective.ANYONE},
    "dates": {"ranking.DATE": 0.0},
    "evenness": {"ranking.EVENNESS": 0.0},
    "side by side": {"ranking.SIDE_BY_SIDE": 0.0},
    "framing words": {"ranking.FRAMING": 1.0},
    "neighbours": {"ranking._NEIGHBOURS": ()},
    "next best": {"ranking._SHARES": (1.0,)},
    "coverage": {"ranking.COVERAGE": 0.0},
    "conversation score": {"ranking.CONVERSATION": 0.0},
    "only with rarer": {"legs.term_fetcher.TermFetcher._only_with_rarer": lambda self, terms, counts, rows: list(rows)},
    "strict stage": {"legs.words._WordSearch._strict": lambda self, limit: None},
    "longer words": {"search.Search._widen": lambda self, query: ()},
    "repeated texts": {"repeated_questions.find_repetitions": lambda *arguments: {}},
    "newer statements": {
        "legs.words._put_newer_statements_first": lambda reader, query, scores, looser, skipped: list(scores)
    },
    "repeated questions and texts": {"repeated_questions._MIN_SHARED_WORDS": _NEVER},
}
# What the rules above consist of, and what no question set was written for.
PARTS_OF_RULES: Mapping[str, Mapping[str, Any]] = {
    "further neighbours": {"ranking._NEIGHBOURS": ((-1, 0.4), (1, 0.4))},
    "length": {"ranking.LENGTH": 0.0, "ranking.ANSWER_LENGTH": 0.0},
    "answers may be long": {"ranking.ANSWER_LENGTH": 0.6},
    "perspective: summaries": {"query._SUMMARY": _NOTHING},
    "perspective: remind me": {"query._REMIND": _NOTHING},
    "perspective: the assistant's": {"query._SECOND_PERSON": _NOTHING},
    "pairs with a small word": {"query._SHORT_QUERY": 0},
    "other forms of a name": {"query._other_forms": lambda text, tokens: []},
    "least share of a question": {"legs.words._MIN_SHARE": 0.0},
    "small stores whole": {"legs.term_fetcher._SMALL": 0},
    "more where much is repeated": {"legs.words._MAX_REPEATED": _NEVER},
    "scheduled jobs": {"legs.words.BACKGROUND_SOURCES": frozenset()},
    "named speakers": {"speakers.OTHER_SPEAKER": 1.0},
    "repeated: misspelt words": {"repeated_questions.MISSPELT": 1.0},
    "repeated: a newer answer replaces": {"repeated_questions._replaces": lambda newer, older: False},
    "repeated: refusals": {"repeated_questions._says_nothing": lambda sentence: False},
    "repeated: replies that speak of the assistant": {"repeated_questions._is_certain": lambda reply: True},
    "repeated: keywords": {"repeated_questions._MIN_KEYWORDS": _NEVER},
    "repeated: answered elsewhere": {
        "repeated_questions.RepeatedQuestions._read_elsewhere": lambda self, scores: [],
    },
    "repeated: one asking is listed": {
        "repeated_questions.RepeatedQuestions._add_asking": lambda self, *arguments: None,
    },
    "repeated: fewer shared pairs": {"repeated_questions._MIN_SHARED_PAIRS": 0.5},
    "newer: says that it changed": {"legs.words._SAYS_CHANGED": _NOTHING},
    "newer: other words": {"legs.words._MIN_COMMON": 2.0},
    "newer: another one": {"legs.words._is_of_another": lambda newer, older, named: False},
    "newer: what many say": {
        "legs.words._MAX_SAYING": _NEVER,
        "legs.words._MAX_SAYING_SOME": _NEVER,
    },
    "newer: least share of the question": {"legs.words._MIN_NAMED": 0.0},
    "newer: by chance": {"legs.words._MIN_BY_CHANCE": 0.25},
    "newer: not of the past": {"legs.words.names_the_past": lambda text: False},
}
_BY_WORDS = relevance.FLOOR_BY_WORDS
FLOOR: Mapping[str, Mapping[str, Any]] = {
    "floor: everyday words": {"relevance.EVERYDAY": frozenset()},
    "floor: two words": {"relevance.MIN_WORDS": 1},
    "floor: asked before": {"relevance.ASKED_BEFORE": ""},
    "floor: newer statements": {"relevance.NEWER_STATEMENT": "", "relevance.OLDER_STATEMENT": ""},
    "floor: owners": {"relevance.find_owners": lambda question: []},
    "floor: another one of the kind": {"relevance._MAX_ABSENT": 0},
    "floor: neighbours": {"relevance._NEIGHBOURS": 0},
    "floor: three hits": {"relevance._MAX_MEASURED": 1},
    **{
        f"floor: {name}": {"relevance.FLOOR_BY_WORDS": replace(_BY_WORDS, weights={**_BY_WORDS.weights, name: 0.0})}
        for name, weight in _BY_WORDS.weights.items()
        if weight < 0
    },
}
RULES = {
    **RANKING,
    **PARTS_OF_RULES,
    **FLOOR,
    "all rules of ranking": {name: value for rule in RANKING.values() for name, value in rule.items()},
}

Figures = dict[str, float]


@contextmanager
def without(changes: Mapping[str, Any]) -> Iterator[None]:
    """Replace constants and functions of the search; fails for a name that does not exist."""
    with ExitStack() as stack:
        for name, value in changes.items():
            stack.enter_context(patch(_SEARCH + name, value))
        yield


def count_everyday(asked: Iterable[everyday.Asked]) -> Figures:
    """How many questions of each group have the right conversation first; for those without, how many show any."""
    figures: Figures = {}
    for each in asked:
        right = bool(each.given) if not each.gold else each.found[:1] == [each.gold]
        figures[each.group] = figures.get(each.group, 0) + right
        if each.gold:
            figures["hook shows it"] = figures.get("hook shows it", 0) + (each.gold in each.given)
    return figures


def measure_sets(sets: Iterable[OpenSet]) -> Figures:
    figures: Figures = {}
    for opened in sets:
        scores = [score(question, ask(question["q"], None)) for question, ask in opened.questions]
        figures[opened.name] = 100 * mean(each["recall@5"] for each in scores)
        figures[f"{opened.name} first"] = 100 * mean(each["recall@1"] for each in scores)
    return figures


def choose_questions(data: dict[str, Any], count: int) -> dict[str, Any]:
    """A set with this many of its questions, evenly spread, and the stores that they need."""
    questions = data["queries"]
    count = min(count, len(questions))
    chosen = [questions[number * len(questions) // count] for number in range(count)]
    needed = {question["store"] for question in chosen}
    stores = [store for store in data["stores"] if store["id"] in needed]
    return {**data, "queries": chosen, "stores": stores}


def print_rows(rules: Iterable[str], measure: Callable[[], Figures]) -> None:
    base = measure()
    print(f"| off | {' | '.join(base)} |\n|---|{'---:|' * len(base)}")
    print(f"| nothing | {' | '.join(f'{value:.4g}' for value in base.values())} |", flush=True)
    for rule in rules:
        with without(RULES[rule]):
            found = measure()
        cells = (f"{found[name] - value:+.2g}" if found[name] != value else "0" for name, value in base.items())
        print(f"| {rule} | {' | '.join(cells)} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=everyday.PARTS, default="plain")
    parser.add_argument("--rule", action="append", choices=RULES, help="only this rule; can be given several times")
    parser.add_argument("--data", type=Path, help="directory with *.json.gz sets; without it only the everyday set")
    parser.add_argument("--set", action="append", dest="sets", help="only this set; can be given several times")
    parser.add_argument("--questions", type=int, default=150, help="of each set")
    arguments = parser.parse_args()
    rules = arguments.rule or list(RULES)
    with everyday.open_home(everyday.load_part(arguments.part)) as ask_all:
        print_rows(rules, lambda: count_everyday(ask_all()))
    if arguments.data:
        with ExitStack() as stack:
            chosen = (choose_questions(data, arguments.questions) for data in read_sets(arguments.data, arguments.sets))
            sets = list(open_sets(chosen, stack))
            print()
            # The floor decides nothing in a search.
            print_rows([rule for rule in rules if rule not in FLOOR], lambda: measure_sets(sets))
    return 0


if __name__ == "__main__":
    sys.exit(main())
