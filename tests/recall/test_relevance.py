"""Evidence without a search must clear a floor: it has most of a prompt in rare words; more if nothing is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.index.postings import Filters
from memoranda.recall.relevance import ASKED, UNASKED, Relevance, asks_about_the_past, measure_relevance, relevant_hits
from memoranda.recall.search import Hit
from memoranda.session_db import SessionDB

_SAID = [
    "The staging database is the heron cluster, on port 5433.",
    "Rename the parser module and fix the imports.",
    "The build failed because the lock file was stale.",
    "Added a spinner that shows while the list loads.",
    "数据库的备份在每天凌晨三点运行。",
    *(f"Ordinary note {number} about the list, the page and the test." for number in range(40)),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionDB]:
    with SessionDB(tmp_path_factory.mktemp("recall") / "state.db") as made:
        for number, text in enumerate(_SAID):
            made.append_message(made.create_session(f"s{number}", "cli"), "user", text)
        made.index.catch_up()
        yield made


def _worth(db: SessionDB, prompt: str) -> list[str]:
    return [hit.session_id for hit in relevant_hits(db, prompt, Filters(db.scope), limit=3)]


@pytest.mark.parametrize(
    "prompt",
    [
        "Which port did the heron cluster have?",
        "Remind me of the port of the heron cluster",
        "connect to the heron cluster on port 5433 of staging",
    ],
)
def test_relevant_evidence_is_shown(db: SessionDB, prompt: str) -> None:
    """The prompt asks about the past, or has so many of its words that it must mean it."""
    assert _worth(db, prompt) == ["s0"]


@pytest.mark.parametrize(
    "prompt",
    [
        "continue", "fix the failing tests", "Add a page that shows the list", "connect to the database",
        "What was the capital of Portugal?", "the port", "", "   ", "???", "write a cluster of poems about a heron",
    ],
)  # fmt: skip
def test_what_does_not_bear_on_a_prompt_is_not_said(db: SessionDB, prompt: str) -> None:
    """Though a search would answer with something."""
    assert _worth(db, prompt) == []


def test_signs_of_a_search_mean_nothing_in_a_prompt(db: SessionDB) -> None:
    """A flag excludes nothing, and a quotation need not be there."""
    assert _worth(db, 'Did the heron cluster (staging) use port "5433" -heron NOT cluster OR "x y"?') == ["s0"]


def test_scripts_without_spaces_are_measured_alike(db: SessionDB) -> None:
    """By pairs of characters."""
    assert _worth(db, "数据库的备份每天何时运行？") == ["s4"]
    assert _worth(db, "请写一首关于春天的诗") == []


def test_one_users_past_is_not_shown_to_another(tmp_path: Path) -> None:
    """The scope of the filters applies here, too."""
    from memoranda.sessions.scope import Scope

    with SessionDB(tmp_path / "state.db") as everyone:
        ana, ben = everyone.scoped(Scope.of("ana")), everyone.scoped(Scope.of("ben"))
        ana.append_message(ana.create_session("s", "cli"), "user", _SAID[0])
        everyone.index.catch_up()
        prompt = "Which port did the heron cluster of staging have?"
        assert [hit.session_id for hit in relevant_hits(ana, prompt, Filters(ana.scope), limit=3)] == ["s"]
        assert relevant_hits(ben, prompt, Filters(ben.scope), limit=3) == []


def test_an_asked_prompt_has_to_clear_less() -> None:
    """Each part of a floor has to be cleared."""
    hit = Hit("s", "s", 1, "user", 1.0, {}, 1)
    assert Relevance(hit, 0.6, 1.5, 2).clears(ASKED) and not Relevance(hit, 0.6, 1.5, 2).clears(UNASKED)
    assert Relevance(hit, 0.6, 2.4, 2).clears(UNASKED)
    assert not Relevance(hit, 0.4, 3.0, 3).clears(ASKED)
    assert not Relevance(hit, 0.9, 2.0, 1).clears(ASKED)


def test_questions_about_the_past_are_known_by_their_words() -> None:
    """A long prompt is work, whatever tense it is in."""
    assert asks_about_the_past("What did we decide about the lock?")
    assert asks_about_the_past("上次的端口是多少？")
    assert not asks_about_the_past("Fix the failing tests")
    assert not asks_about_the_past("We have to be careful: " + "did it work? " * 60)


@given(st.text(max_size=60))
def test_any_prompt_is_measured_without_an_error(db: SessionDB, prompt: str) -> None:
    """And no share is over the whole."""
    for each in measure_relevance(db, prompt, Filters(db.scope), limit=3):
        assert 0 <= each.share <= 1.0001
