"""Reranking by meaning, with the real word vectors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import memoranda
from memoranda.api.search_extras import open_search_extras
from memoranda.home import config
from memoranda.home.session_db import SessionDB
from memoranda.integrations.hooks.prompt_evidence import PromptStore
from memoranda.memory.record.scope import Scope
from memoranda.search.index.postings import Filters
from memoranda.search.legs.leg import Candidates
from memoranda.search.meaning.embedder import Embedder, EmbedderError
from memoranda.search.meaning.meaning_rescorer import MeaningRescorer, session_likeness
from memoranda.search.meaning.static_vectors import StaticVectors
from memoranda.search.query import Query
from memoranda.search.search import Search, SearchResult
from memoranda.support.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("static_vectors")]

_QUESTION = "Which animals do I keep at home?"


def _fill(db: SessionDB, user: str | None = None) -> None:
    conversations = {
        "coffee": ["At home I drink coffee.", "Coffee it is, then."],
        "pets": ["At home a dog and two cats wait for me.", "They must be happy to see you!"],
        "work": ["The build fails at home and passes in the office.", "Is it the cache?"],
    }
    for name, (asked, answered) in conversations.items():
        db.create_session(name, "cli", user_id=user)
        db.append_message(name, "user", asked)
        db.append_message(name, "assistant", answered)


def _names(found: SearchResult) -> list[str]:
    return [hit.session_id for hit in found.hits]


def _rescore(db: SessionDB, seconds: float = 30.0) -> MeaningRescorer:
    rescorer = MeaningRescorer(lambda: [StaticVectors.installed()], seconds=seconds)
    db.rescore_with(lambda: [rescorer])
    return rescorer


def test_meaning_finds_the_member_of_a_class(db: SessionDB) -> None:
    """The words cannot distinguish the sessions, which all share one with the question."""
    _fill(db)
    by_words = db.find(_QUESTION, Filters(db.scope), limit=3)
    _rescore(db)
    by_meaning = db.find(_QUESTION, Filters(db.scope), limit=3)
    likeness = {hit.session_id: hit.signals["semantic"] for hit in by_meaning.hits}
    assert by_meaning.hits[0].session_id == "pets"
    assert likeness["pets"] > max(likeness["coffee"], likeness["work"]) + 0.03
    assert set(likeness) == {hit.session_id for hit in by_words.hits}


def test_the_signal_is_shown(db: SessionDB) -> None:
    """`why` has the likeness of each result, and the score contains it."""
    _fill(db)
    _rescore(db)
    hits = db.find(_QUESTION, Filters(db.scope), limit=3, explain=True).hits
    assert all(-1.0 <= hit.signals["semantic"] <= 1.0 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_what_is_typed_exactly_keeps_its_order(db: SessionDB) -> None:
    """Phrases, single words, an order by time and other scripts are not reranked."""
    _fill(db)
    filters = Filters(db.scope)
    typed = ('"at home"', "home", "数据库 在哪里")
    before = [_names(db.find(text, filters, limit=3)) for text in typed]
    newest = _names(db.find(_QUESTION, filters, limit=3, sort="newest"))
    _rescore(db)
    found = [db.find(text, filters, limit=3) for text in typed]
    assert [_names(result) for result in found] == before
    assert not any("semantic" in hit.signals for result in found for hit in result.hits)
    assert _names(db.find(_QUESTION, filters, limit=3, sort="newest")) == newest


def test_filters_apply_to_what_is_compared(db: SessionDB) -> None:
    """A message that the search may not see adds no likeness."""
    _fill(db)
    _rescore(db)
    filters = Filters(db.scope)
    everything = {hit.session_id: hit.signals["semantic"] for hit in db.find(_QUESTION, filters, limit=3).hits}
    hidden = frozenset(message["id"] for message in db.get_messages("pets") if "cats" in message["content"])
    rest = db.find(_QUESTION, replace(filters, without=hidden), limit=3).hits
    assert all(hit.session_id != "pets" or hit.signals["semantic"] < everything["pets"] - 0.05 for hit in rest)


def test_another_users_messages_are_never_compared(db: SessionDB) -> None:
    """The scope of the search decides, as without meaning."""
    _fill(db, user="ann")
    _rescore(db)
    assert db.find(_QUESTION, Filters(Scope.of("ben")), limit=3).hits == ()


def test_a_scheduled_job_counts_for_less(db: SessionDB) -> None:
    """Its meaning is lowered as its words are, so that runs that repeat themselves do not crowd out people."""
    _fill(db)
    db.create_session("job", "cron")
    db.append_message("job", "user", "At home a dog and two cats wait for me.")
    db.append_message("job", "assistant", "They must be happy to see you!")
    _rescore(db)
    found = db.find(_QUESTION, Filters(db.scope), limit=4).hits
    assert [hit.session_id for hit in found].index("pets") < [hit.session_id for hit in found].index("job")


def test_a_changed_message_is_compared_as_it_is_now(db: SessionDB) -> None:
    """Remembered vectors belong to a text, not only to a message."""
    _fill(db)
    _rescore(db)
    before = db.find(_QUESTION, Filters(db.scope), limit=1).hits[0]
    (message,) = (message for message in db.get_messages("pets") if "cats" in message["content"])
    db.redact_message(message["id"])
    after = {hit.session_id: hit for hit in db.find(_QUESTION, Filters(db.scope), limit=3).hits}
    assert before.session_id == "pets"
    assert "pets" not in after or after["pets"].signals["semantic"] < before.signals["semantic"]


def test_a_repeated_question_is_not_an_answer(db: SessionDB) -> None:
    """Nothing is more alike to a question than itself, and nothing says less."""
    _fill(db)
    db.create_session("asked", "cli")
    db.append_message("asked", "user", _QUESTION)
    _rescore(db)
    assert db.find(_QUESTION, Filters(db.scope), limit=4).hits[0].session_id == "pets"


def test_without_time_the_words_decide(db: SessionDB) -> None:
    """A search never waits longer than its deadline, and says so."""
    _fill(db)
    by_words = db.find(_QUESTION, Filters(db.scope), limit=3)
    _rescore(db, seconds=-1.0)
    late = db.find(_QUESTION, Filters(db.scope), limit=3)
    assert _names(late) == _names(by_words)
    assert late.note == "Ranked by words only: comparing meanings took too long."


def test_an_embedder_that_is_missing_costs_only_the_meaning(db: SessionDB) -> None:
    """The note says how to install it."""
    _fill(db)

    def load() -> Sequence[Embedder]:
        raise EmbedderError("The package wordllama is not installed: pip install 'memoranda[semantic]'.")

    db.rescore_with(lambda: [MeaningRescorer(load, seconds=1.0)])
    found = db.find(_QUESTION, Filters(db.scope), limit=3)
    assert len(found.hits) == 3
    assert "pip install 'memoranda[semantic]'" in (found.note or "")


def test_a_home_switches_it_on(tmp_path: Path) -> None:
    """`search.semantic` is off by default, and changes what the tool answers."""
    home = Home(tmp_path / "home")
    with memoranda.open(home.root) as memory:
        _fill(memory.sessions)
        assert "semantic" not in memory.search(_QUESTION, why=True)["results"][0]["why"]
    config.set_value(home, "search.semantic", "on")
    with memoranda.open(home.root) as memory:
        first = memory.search(_QUESTION, why=True)["results"][0]
    assert first["session_id"] == "pets"
    assert first["why"]["semantic"] > 0.2


def test_the_hook_of_a_prompt_uses_it(tmp_path: Path) -> None:
    """The store that a hook opens ranks by meaning, too, and asks no chat model."""
    home = Home(tmp_path / "home")
    with memoranda.open(home.root) as memory:
        _fill(memory.sessions)
    for name in ("search.semantic", "search.expand"):
        config.set_value(home, name, "on")
    with (
        open_search_extras(home, config.load(home)) as extras,
        PromptStore(home.state_db, Scope.of(None), [extras.rescorers]) as store,
    ):
        found = store.find(_QUESTION, Filters(store.scope), limit=3)
    assert found.hits[0].session_id == "pets"
    assert found.note is None


def test_the_likeness_of_a_session_is_that_of_its_best_messages() -> None:
    """One good message counts most; more of them help."""
    assert session_likeness([]) == 0.0
    assert session_likeness([0.8, 0.1]) < session_likeness([0.8, 0.7]) < session_likeness([0.9, 0.7])


class _RecordingLeg:
    """Finds nothing, and records how many conversations the search wants."""

    def __init__(self, limits: list[int]) -> None:
        self._limits = limits

    def candidates(self, query: Query, filters: Filters, limit: int) -> Candidates:
        self._limits.append(limit)
        return Candidates([])


def test_more_is_found_than_is_wanted_only_if_it_is_reordered(db: SessionDB) -> None:
    """A conversation that the words rank low can come first; without rescorers nothing is paid for that."""
    limits: list[int] = []
    legs = [lambda context: _RecordingLeg(limits)]
    rescorer = MeaningRescorer(lambda: [StaticVectors.installed()], seconds=30.0)
    filters = Filters(db.scope)
    Search(db.index, legs).find(_QUESTION, filters, limit=3)
    Search(db.index, legs, rescorers=[lambda: [rescorer]]).find(_QUESTION, filters, limit=3)
    Search(db.index, legs, rescorers=[lambda: [rescorer]]).find(_QUESTION, filters, limit=3, sort="newest")
    Search(db.index, legs, rescorers=[lambda: [rescorer]]).find(_QUESTION, filters, limit=80)
    assert limits == [3, 50, 3, 80]
