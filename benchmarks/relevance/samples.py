"""Sends every prompt to its store and keeps what the product measures of the first hits."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.recall import fill_store
from benchmarks.relevance.prompts import (
    EVERYDAY,
    FOREIGN,
    OTHER_WORK,
    Data,
    Part,
    Prompt,
    prompts_for,
    stores_of,
    without_answers,
)
from memoranda.home.session_db import SessionDB
from memoranda.integrations.hooks.prompt_evidence import find_evidence
from memoranda.models.tokens import estimate_text
from memoranda.search.index.postings import Filters
from memoranda.search.legs.leg import MakeRescorers
from memoranda.search.relevance import MIN_WORDS, HitRater, Relevance, judge_prompt

_MAX_HITS = 6
_MEASURED = 3
Measures = dict[str, float]


@dataclass(frozen=True)
class MeasuredHit:
    """One hit: its measures, how many subject words it has, whether it is right, and whether another owner's."""

    measures: Measures
    words: int
    gold: bool
    another: bool = False

    @property
    def may_clear(self) -> bool:
        """Whether it clears the floor if it has enough points."""
        return self.words >= MIN_WORDS and not self.another


@dataclass(frozen=True)
class Sample:
    """One prompt in one store: what the floor measures, and what a search for it measures, as typed and as keywords."""

    set: str
    store: str
    kind: str
    text: str
    hits: tuple[MeasuredHit, ...]
    typed: tuple[MeasuredHit, ...]
    keywords: tuple[MeasuredHit, ...]
    given: int
    """The tokens that the hook would add."""
    useful: bool
    """Whether they contain the evidence."""
    seconds: float


def measure_sets(sets: dict[str, Data], names: Sequence[str], part: Part, rescorers: MakeRescorers) -> Iterator[Sample]:
    for name in names:
        for store in stores_of(sets[name], part):
            yield from _measure_store(name, store, prompts_for(sets, name, store, part), rescorers)
            smaller, removed = without_answers(sets, name, store, part)
            yield from _measure_store(name, smaller, removed, rescorers)


def _measure_store(name: str, store: Data, prompts: Iterable[Prompt], rescorers: MakeRescorers) -> Iterator[Sample]:
    with TemporaryDirectory(prefix="memoranda-relevance-") as home, SessionDB(Path(home, "state.db")) as db:
        names = fill_store(db, name, store)
        db.index.catch_up()
        db.rescore_with(rescorers)
        for prompt in prompts:
            yield _Measuring(db, Path(home, "state.db"), names, prompt, rescorers).sample(name, store["id"])


class _Measuring:
    """One prompt in one store."""

    def __init__(
        self, db: SessionDB, path: Path, names: dict[str, str], prompt: Prompt, rescorers: MakeRescorers
    ) -> None:
        self._db, self._path, self._names, self._prompt, self._rescorers = db, path, names, prompt, rescorers

    def sample(self, set_name: str, store: str) -> Sample:
        prompt = self._prompt
        start = time.process_time()
        judged = judge_prompt(self._db, prompt.text, Filters(self._db.scope, titles=False), limit=_MAX_HITS)
        seconds = time.process_time() - start
        given, useful = self._give() if judged.hits else (0, False)
        is_question = prompt.kind not in (EVERYDAY, OTHER_WORK)
        words = " ".join(term.text for term in judged.result.query.terms if not term.framing)
        return Sample(
            set_name,
            store,
            prompt.kind,
            prompt.text,
            self._hits(judged.measured),
            self._search(prompt.text) if is_question else (),
            self._search(words) if is_question and prompt.kind != FOREIGN and words.isascii() else (),
            given,
            useful,
            seconds,
        )

    def _give(self) -> tuple[int, bool]:
        """How many tokens the hook adds, and whether they come from a session with the evidence."""
        evidence = find_evidence(self._path, None, self._prompt.text, "claude-code", "", frozenset(), [self._rescorers])
        sessions = {self._names[shown["session_id"]] for shown in evidence.details.get("given", ())}
        return estimate_text(evidence.text), not sessions.isdisjoint(self._prompt.gold)

    def _search(self, query: str) -> tuple[MeasuredHit, ...]:
        found = self._db.find(query, Filters(self._db.scope, titles=False), limit=_MAX_HITS)
        if not found.hits:
            return ()
        rater = HitRater(self._db.conversations, found)
        return self._hits([measured for hit in found.hits[:_MEASURED] if (measured := rater.measure(hit)) is not None])

    def _hits(self, measured: Sequence[Relevance]) -> tuple[MeasuredHit, ...]:
        return tuple(
            MeasuredHit(
                {name: round(value, 4) for name, value in each.measures.items()},
                each.words,
                self._names[each.hit.session_id] in self._prompt.gold,
                each.another,
            )
            for each in measured
        )


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for sample in samples:
            stream.write(json.dumps(asdict(sample), ensure_ascii=False) + "\n")


def read_samples(path: Path) -> list[Sample]:
    samples = []
    for line in path.read_text("utf-8").splitlines():
        fields = json.loads(line)
        for name in ("hits", "typed", "keywords"):
            fields[name] = tuple(MeasuredHit(**hit) for hit in fields[name])
        samples.append(Sample(**fields))
    return samples
