"""Evidence without a search must clear a floor: it has the words of a prompt; more of them if nothing is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.home.session_db import SessionDB
from memoranda.search.index.postings import Filters
from memoranda.search.relevance import (
    FLOOR_BY_MEANING,
    FLOOR_BY_WORDS,
    SEARCH_BY_MEANING,
    SEARCH_BY_WORDS,
    HitRater,
    judge_prompt,
)

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
    return [hit.session_id for hit in judge_prompt(db, prompt, Filters(db.scope), limit=3).hits]


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


def test_what_does_not_bear_on_a_prompt_is_not_said(db: SessionDB) -> None:
    """Though a search would answer with something."""
    for prompt in [
        "continue",
        "fix the failing tests",
        "Add a page that shows the list",
        "connect to the database",
        "What was the capital of Portugal?",
        "the port",
        "",
        "   ",
        "???",
        "write a cluster of poems about a heron",
    ]:
        assert _worth(db, prompt) == []


def test_signs_of_a_search_mean_nothing_in_a_prompt(db: SessionDB) -> None:
    """A flag excludes nothing, and a quotation need not be there."""
    assert _worth(db, 'Did the heron cluster (staging) use port "5433" -heron NOT cluster OR "x y"?') == ["s0"]


def test_scripts_without_spaces_are_measured_alike(db: SessionDB) -> None:
    """By pairs of characters."""
    assert _worth(db, "数据库的备份每天何时运行？") == ["s4"]
    assert _worth(db, "请写一首关于春天的诗") == []


_BELONGINGS = {
    "My landlord wants the rent on the 3rd of the month.": (
        "On which day does my landlord want the rent?",
        "On which day does my sister's landlord want the rent?",
    ),
    "The payments team's API allows 200 requests a minute.": (
        "How many requests a minute does the payments team's API allow?",
        "How many requests a minute does the search team's API allow?",
    ),
    "The stand-up of the billing team starts at 9:40 in the maple room.": (
        "In which room does the stand-up of the billing team start?",
        "In which room does the stand-up of the logistics team start?",
    ),
    "The serial number of the dishwasher is 88-KX-3.": (
        "What is the serial number of the dishwasher?",
        "What is the serial number of the dryer?",
    ),
    "The annual fee of our tennis club is 310 euros.": (
        "How high is the annual fee of our tenis club?",
        "How high is the annual fee of our sailing club?",
    ),
    "My mother's phone number ends in 771.": (
        "What does my mom's phone number end in?",
        "What does my uncle's phone number end in?",
    ),
    "Le serveur acajou a huit disques de quatre téraoctets.": (
        "Combien de disques de quatre téraoctets a le serveur acajou ?",
        "Combien de disques de quatre téraoctets a le serveur noyer ?",
    ),
    "On which port does the database of the ordering project listen? On 5544.": (
        "On which port does the database of the ordering project listen?",
        "On which port does the database of the payroll project listen?",
    ),
    "The rotor diameter of turbine 4 is 112 metres.": (
        "What is the rotor diameter of turbine 4?",
        "What is the rotor diameter of turbine 9?",
    ),
    "Ninas Auto steht in der Tiefgarage, Platz 31.": (
        "Auf welchem Platz der Tiefgarage steht Ninas Auto?",
        "Auf welchem Platz der Tiefgarage steht Svens Auto?",
    ),
    "El cumpleaños de mi hermana es el 8 de julio.": (
        "¿Cuándo es el cumpleaños de mi hermana?",
        "¿Cuándo es el cumpleaños de mi abuelo?",
    ),
    "小陈的手机号码尾数是 5520。": ("小陈的手机号码尾数是多少？", "小赵的手机号码尾数是多少？"),
    "母の歯医者は木村先生です。": ("母の歯医者は誰ですか？", "祖父の歯医者は誰ですか？"),
}


@pytest.fixture(scope="module")
def belongings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionDB]:
    """A home that knows something of each owner; the last one was asked about and answered."""
    asked = "Which network address does our label printer in the storeroom have?"
    with SessionDB(tmp_path_factory.mktemp("belongings") / "state.db") as made:
        for number, text in enumerate((*_BELONGINGS, *_SAID[-20:], asked)):
            made.append_message(made.create_session(f"s{number}", "cli"), "user", text)
        made.append_message(f"s{number}", "assistant", "192.168.7.40")
        made.index.catch_up()
        yield made


def test_what_belongs_to_someone_else_is_not_shown(belongings: SessionDB) -> None:
    """The owner that a question names has to be mentioned, by a word of the same meaning at least.

    So does what says which of several is meant, where a message is about another one of them.
    """
    for said in list(_BELONGINGS):
        own, of_another = _BELONGINGS[said]
        assert len(_worth(belongings, own)) == 1
        assert _worth(belongings, of_another) == []


def test_a_question_about_another_owner_was_not_asked_before(belongings: SessionDB) -> None:
    """Although all of its other words were asked and answered; a search is not sure of it, either."""
    question = "Which network address does our {}label printer in the storeroom have?"
    assert len(_worth(belongings, question.format(""))) == 1
    assert _worth(belongings, question.format("neighbour's ")) == []
    found = belongings.find(question.format("neighbour's "), Filters(belongings.scope), limit=3)
    assert set(HitRater(belongings.conversations, found).rate(found.hits)) == {"unsure"}


def test_one_users_past_is_not_shown_to_another(tmp_path: Path) -> None:
    """The scope of the filters applies here, too."""
    from memoranda.memory.record.scope import Scope

    with SessionDB(tmp_path / "state.db") as everyone:
        ana, ben = everyone.scoped(Scope.of("ana")), everyone.scoped(Scope.of("ben"))
        ana.append_message(ana.create_session("s", "cli"), "user", _SAID[0])
        everyone.index.catch_up()
        prompt = "Which port did the heron cluster of staging have?"
        assert [hit.session_id for hit in judge_prompt(ana, prompt, Filters(ana.scope), limit=3).hits] == ["s"]
        assert judge_prompt(ben, prompt, Filters(ben.scope), limit=3).hits == []


def test_a_question_has_to_match_less_than_a_task(db: SessionDB) -> None:
    """With the same words, in the same place."""
    question, task = ("which heron cluster had the port?", "print the port of heron cluster")
    by_kind = [judge_prompt(db, prompt, Filters(db.scope), limit=3).measured[0] for prompt in (question, task)]
    assert by_kind[0].words == by_kind[1].words and by_kind[0].points > by_kind[1].points


def test_everyday_words_name_no_subject(db: SessionDB) -> None:
    """All words of the prompt are there, and none counts."""
    (first, *_) = judge_prompt(db, "what does the page list test?", Filters(db.scope), limit=3).measured
    assert first.share > 0.9 and first.words == 0 and not first.clears


def test_a_name_that_does_not_occur_counts_against_a_hit(db: SessionDB) -> None:
    """The words match, but the question is about another one."""
    own, other = (
        judge_prompt(db, f"which port did the heron cluster of {name} have?", Filters(db.scope), limit=3).measured[0]
        for name in ("staging", "Konstanz")
    )
    assert own.measures["missing_name"] == 0 and other.measures["missing_name"] == 1 and other.points < own.points


def test_only_the_first_hits_are_measured_besides_the_callers_own(db: SessionDB) -> None:
    """Reading the messages around a hit costs time, and no more hits are shown."""
    prompt = "ordinary note about the list, the page and the test"
    assert len(judge_prompt(db, prompt, Filters(db.scope), limit=6).measured) == 3
    assert len(judge_prompt(db, prompt, Filters(db.scope), limit=6, is_own=lambda hit: True).measured) == 6


def test_every_weight_has_a_measure(db: SessionDB) -> None:
    """A misspelt name would fail on the first prompt of a user."""
    found = db.find("heron cluster port", Filters(db.scope), limit=3)
    searched = HitRater(db.conversations, found).measure(found.hits[0])
    (prompted, *_) = judge_prompt(db, "heron cluster port", Filters(db.scope), limit=3).measured
    assert searched is not None
    for by_words, by_meaning, measured in (
        (SEARCH_BY_WORDS, SEARCH_BY_MEANING, searched), (FLOOR_BY_WORDS, FLOOR_BY_MEANING, prompted)
    ):  # fmt: skip
        assert by_words.weights.keys() == measured.measures.keys()
        assert by_meaning.weights.keys() == {*measured.measures, "meaning"}


def test_meaning_counts_where_a_search_considers_it(db: SessionDB) -> None:
    """A hit with a likeness is judged by the constants for meaning; the more alike, the more points."""
    from dataclasses import replace

    found = db.find("heron cluster port", Filters(db.scope), limit=3)
    points = []
    for likeness in (0.1, 0.6):
        hit = found.hits[0]._replace(signals={**found.hits[0].signals, "semantic": likeness})
        measured = HitRater(db.conversations, replace(found, hits=(hit, *found.hits[1:]))).measure(hit)
        assert measured is not None and measured.measures["meaning"] == likeness
        points.append(measured.points)
    assert points[0] < points[1]


@given(st.text(max_size=60))
def test_any_prompt_is_measured_without_an_error(db: SessionDB, prompt: str) -> None:
    """And no share is over the whole."""
    for each in judge_prompt(db, prompt, Filters(db.scope), limit=3).measured:
        assert 0 <= each.share <= 1.0001
