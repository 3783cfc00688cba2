"""Standing instructions by meaning: they count again for prompts that ask for work, however they are compared."""

from typing import cast

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.search.index.postings import Filters
from memoranda.search.meaning.embedder import Embedder
from memoranda.search.meaning.meaning_rescorer import MeaningRescorer
from memoranda.search.meaning.static_vectors import StaticVectors
from memoranda.search.meaning.vector_index import VectorIndex
from memoranda.search.search import Hit
from memoranda.support.home import vectors_path

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("static_vectors")]

_PROMPT = "Which stories should I listen to on the train?"
_CONVERSATIONS = {
    "rule": ["Always name the narrator when I ask for an audiobook to listen to.", "I will."],
    "trip": ["On the train I listen to stories about ghosts.", "Which ones?"],
    "work": ["Listen to the port of the train simulator.", "It is 8080."],
}


class _Slow:
    """The same vectors, embedded too slowly to compare whole conversations."""

    is_fast = False

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)


def _fill(db: SessionDB) -> None:
    for name, (asked, answered) in _CONVERSATIONS.items():
        db.create_session(name, "cli")
        db.append_message(name, "user", asked)
        db.append_message(name, "assistant", answered)


def _find(db: SessionDB, prompt: str, rescorer: MeaningRescorer) -> dict[str, Hit]:
    db.rescore_with(lambda: [rescorer])
    return {hit.session_id: hit for hit in db.find(prompt, Filters(db.scope), limit=3).hits}


def _rescorer(embedder: Embedder) -> MeaningRescorer:
    return MeaningRescorer(lambda: [embedder], seconds=30.0)


def test_a_standing_instruction_counts_again_for_work(db: SessionDB) -> None:
    """Only the session with the instruction has the signal, and its score contains it."""
    _fill(db)
    hits = _find(db, _PROMPT, _rescorer(StaticVectors.installed()))
    assert hits["rule"].signals["standing_meaning"] > 0.2
    assert not any("standing_meaning" in hits[name].signals for name in ("trip", "work"))


def test_a_question_about_the_past_asks_for_what_was_said(db: SessionDB) -> None:
    """No instruction concerns it."""
    _fill(db)
    hits = _find(db, "Which stories did I listen to on the train?", _rescorer(StaticVectors.installed()))
    assert not any("standing_meaning" in hit.signals for hit in hits.values())


def test_an_index_of_vectors_gives_the_same(db: SessionDB) -> None:
    """The vector of the instruction is found by the id of its message."""
    _fill(db)
    embedder = StaticVectors.installed()
    without = _find(db, _PROMPT, _rescorer(embedder))
    index = VectorIndex(vectors_path(db.path, embedder.name), db.feed, lambda: embedder)
    index.catch_up()
    hits = _find(db, _PROMPT, MeaningRescorer(lambda: [embedder], seconds=30.0, open_index=lambda _: index))
    expected = without["rule"].signals["standing_meaning"]
    assert hits["rule"].signals["standing_meaning"] == pytest.approx(expected, abs=0.02)


def test_a_slow_embedder_compares_instructions_too(db: SessionDB) -> None:
    """Beside the best message of each session, which may be another one."""
    _fill(db)
    db.append_message("rule", "user", "On the train I read stories, or listen to what my sister plays.")
    hits = _find(db, _PROMPT, _rescorer(cast("Embedder", _Slow(StaticVectors.installed()))))
    assert hits["rule"].signals["standing_meaning"] > 0.2
