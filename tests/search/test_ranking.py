"""The order of sessions, from postings only."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.search.dates import TimeRange, date_closeness, time_ranges
from memoranda.search.index.postings import ASSISTANT, TITLE, TOOL, USER, IndexSize, Posting
from memoranda.search.query import Perspective, find_perspective
from memoranda.search.ranking import AdjacentTerms, MatchedTerm, Matches, RankingContext, rank, rank_messages

pytestmark = pytest.mark.slow

NOW = 1_800_000_000.0
DAY = 86_400.0
SIZE = IndexSize(messages=10_000, sessions=500, tokens=500_000)
ANYONE = RankingContext(Perspective.ANYONE, ())
LONG_AGO = NOW - 1_000 * DAY


def said(session: int, place: int, role: int = USER, length: int = 50, time: float = LONG_AGO) -> Posting:
    return Posting(session * 1_000 + place, session, place, role, length, time)


class Found(NamedTuple):
    """A term, and the messages that have it."""

    term: MatchedTerm
    rows: tuple[Posting, ...]


def term(*rows: Posting, frequency: int = 20, **kind: Any) -> Found:
    return Found(MatchedTerm(frequency, **kind), rows)


def matches(*found: Found) -> Matches:
    masks: dict[Posting, int] = {}
    for number, (_, rows) in enumerate(found):
        for row in rows:
            masks[row] = masks.get(row, 0) | 1 << number
    return Matches([one.term for one in found], list(masks.items()))


def order(*found: Found, pairs: Sequence[AdjacentTerms] = (), context: RankingContext = ANYONE) -> list[int]:
    return [standing.session for standing in rank(matches(*found), pairs, SIZE, context)]


def test_more_of_the_terms_is_better() -> None:
    """A message with both words ranks above a message with one of them."""
    assert order(term(said(1, 0), said(2, 0)), term(said(2, 0), said(3, 0)))[0] == 2


def test_a_rare_term_outweighs_a_common_one() -> None:
    """A term in few messages has more weight."""
    assert order(term(said(1, 0), frequency=5_000), term(said(2, 0), frequency=3)) == [2, 1]


def test_neighbours_help_the_nearer_the_more() -> None:
    """Words spread over a question and its answer count nearly as if they were together."""
    first = term(said(1, 0), said(2, 0), said(3, 0), said(4, 0))
    second = term(said(1, 0), said(2, 1), said(3, 2), said(4, 9))
    assert order(first, second) == [1, 2, 3, 4]


def test_terms_of_neighbours_count_together() -> None:
    """Three terms in three successive messages count as found together."""
    (standing,) = rank(matches(term(said(1, 4)), term(said(1, 5)), term(said(1, 6))), (), SIZE, ANYONE)
    assert (standing.near, standing.whole) == (0b111, 0b111)
    assert standing.own in (0b001, 0b010, 0b100)


def test_no_session_wins_by_mass_alone() -> None:
    """Four hundred messages with one word do not hide the one with both."""
    noisy = [said(1, place) for place in range(400)]
    assert order(term(*noisy, said(2, 0), frequency=401), term(said(2, 0)))[0] == 2


def test_a_short_message_says_more_about_its_words() -> None:
    """Long messages contain many words anyway."""
    assert order(term(said(1, 0, length=2_000), said(2, 0, length=20))) == [2, 1]


def test_the_role_that_a_question_asks_about_ranks_first() -> None:
    """ "What did I say" prefers the user, "what did you say" the assistant; tool output ranks below both."""
    found = term(said(1, 0, USER), said(2, 0, ASSISTANT), said(3, 0, TOOL))
    assert order(found, context=replace(ANYONE, perspective=Perspective.USER))[0] == 1
    assert order(found, context=replace(ANYONE, perspective=Perspective.ASSISTANT))[0] == 2
    assert order(found)[-1] == 3


def test_words_side_by_side_count_more() -> None:
    """The pair as typed ranks above the same words apart."""
    both = [said(1, 0), said(2, 0)]
    assert order(term(*both), term(*both), pairs=[AdjacentTerms((0, 1), [said(2, 0)])]) == [2, 1]


def test_a_named_date_raises_messages_of_that_time() -> None:
    """A session within the time range ranks first."""
    found = term(said(1, 0, time=LONG_AGO), said(2, 0, time=LONG_AGO - 50 * DAY))
    then = TimeRange(LONG_AGO - 51 * DAY, LONG_AGO - 49 * DAY)
    assert order(found, context=replace(ANYONE, time_ranges=(then,))) == [2, 1]


def test_of_equal_sessions_the_newer_comes_first() -> None:
    """And never before a better match."""
    assert order(term(said(1, 0), said(2, 0, time=NOW))) == [2, 1]
    assert order(term(said(1, 0), said(2, 0, time=NOW)), term(said(1, 0)))[0] == 1


def test_a_title_counts_but_the_evidence_is_a_message() -> None:
    """The best message is shown; the title's row only when nothing else matches."""
    (standing,) = rank(matches(term(said(1, -1, TITLE, 3), said(1, 7))), (), SIZE, ANYONE)
    assert (standing.best.ordinal, standing.matches) == (7, 1)
    (only_title,) = rank(matches(term(said(1, -1, TITLE, 3))), (), SIZE, ANYONE)
    assert (only_title.best.role, only_title.matches) == (TITLE, 0)


def test_messages_are_ranked_by_themselves() -> None:
    """At the message level the best message comes first, whatever else its session has."""
    both = said(2, 0)
    rows = rank_messages(matches(term(*(said(1, n) for n in range(5)), both), term(both)), (), SIZE, ANYONE)
    assert rows[0] == both
    assert len(rows) == 6


_ROWS = st.builds(
    said,
    st.integers(1, 200),
    st.integers(0, 5),
    st.sampled_from([USER, ASSISTANT, TOOL]),
    st.integers(0, 500),
    st.sampled_from([0.0, LONG_AGO, NOW, NOW + DAY]),
)


@given(terms=st.lists(st.lists(_ROWS, min_size=1, max_size=30), min_size=1, max_size=5))
def test_every_session_is_ranked_once(terms: list[list[Posting]]) -> None:
    """For all postings, each session occurs once, and scores are positive and in order."""
    standings = rank(matches(*(term(*rows) for rows in terms)), (), SIZE, ANYONE)
    scores = [standing.score for standing in standings]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 100 for score in scores)
    assert len({standing.session for standing in standings}) == len(standings)


def test_whose_words_a_question_asks_for() -> None:
    """A request to the assistant is not a question about what it said."""
    assert find_perspective("How many books have I read?") is Perspective.USER
    assert find_perspective("Which restaurant did you recommend?") is Perspective.ASSISTANT
    assert find_perspective("Can you recommend a film for me?") is Perspective.USER
    assert find_perspective("What does Melanie paint?") is Perspective.ANYONE
    assert find_perspective("I forgot it. Can you remind me which deli that was?") is Perspective.ASSISTANT
    assert find_perspective("Can you remind me where I parked?") is Perspective.USER
    assert find_perspective("Can you summarize how my garden plan developed?") is Perspective.SUMMARY


def test_dates_are_read() -> None:
    """Days, months and relative days are parsed; a missing year can be any recent one."""
    for text in ("on 9 November, 2022", "November 9th 2022", "2022-11-09", "2022年11月9日"):
        (stretch,) = time_ranges(text, NOW)
        assert stretch.end - stretch.start <= 1.1 * DAY
        assert date_closeness([stretch], stretch.start + 1) == 1.0
    (month,) = time_ranges("in June 2022", NOW)
    assert 29 * DAY < month.end - month.start < 31 * DAY
    assert len(time_ranges("what did I do in June", NOW)) > 3
    (ago,) = time_ranges("ten days ago", NOW)
    assert ago.start <= NOW - 10 * DAY <= ago.end
    assert time_ranges("last Saturday", NOW)[0].end <= NOW
    for text in ("31 February 2022", "may I ask", "version 2022-99-99", "9999 days ago", "the last word"):
        assert time_ranges(text, NOW) == []
    assert date_closeness([ago], NOW + 300 * DAY) == 0.0


@pytest.mark.parametrize(
    ("text", "today", "first", "last"),
    [
        ("last week", date(2026, 11, 19), date(2026, 11, 9), date(2026, 11, 15)),
        ("last week", date(2026, 11, 16), date(2026, 11, 9), date(2026, 11, 15)),
        ("last week", date(2026, 11, 15), date(2026, 11, 2), date(2026, 11, 8)),
        ("last month", date(2026, 11, 19), date(2026, 10, 1), date(2026, 10, 31)),
        ("last month", date(2027, 1, 1), date(2026, 12, 1), date(2026, 12, 31)),
        ("last year", date(2026, 11, 19), date(2025, 1, 1), date(2025, 12, 31)),
        ("on Monday", date(2026, 11, 19), date(2026, 11, 16), date(2026, 11, 16)),
        ("last Thursday", date(2026, 11, 19), date(2026, 11, 12), date(2026, 11, 12)),
        *(
            (word, date(2026, 3, 1), date(2026, 2, 28), date(2026, 2, 28))
            for word in ("gestern", "ayer", "昨天", "어제")
        ),
    ],
)
def test_last_week_is_the_calendar_week_before_this_one(text: str, today: date, first: date, last: date) -> None:
    """By the calendar, from Monday, so yesterday is in one of them only on its first day."""
    noon = datetime(today.year, today.month, today.day, 12).timestamp()
    (stretch,) = time_ranges(text, noon, on_weekdays=True)
    begin, end = (datetime.fromtimestamp(seconds) for seconds in stretch)
    assert str(begin) == f"{first} 00:00:00"
    assert str(end) == f"{last + timedelta(days=1)} 00:00:00"


@pytest.mark.parametrize(
    "text",
    ["deploy v2 on Monday", "based on year 2023", "on week 12", "qué hicimos antes de ayer", "l'altro ieri", "hier"],
)
def test_what_may_be_another_day_names_none(text: str) -> None:
    """A weekday is that of last week only in a question about the past."""
    assert time_ranges(text, 1_750_000_000) == []
    assert text == "deploy v2 on Monday" or time_ranges(text, 1_750_000_000, on_weekdays=True) == []


def test_a_related_word_counts_less_than_the_typed_one() -> None:
    """A message with a related word ranks below one with the typed word, and above one without either."""
    other = term(said(1, 0), said(2, 0), said(3, 0))
    typed = term(said(1, 0), group="car")
    related = term(said(2, 0), group="car", typed=False, closeness=0.8)
    assert order(other, typed, related) == [1, 2, 3]


def test_a_related_word_adds_nothing_to_the_typed_one() -> None:
    """A message with both words scores like one with the typed word: they say the same."""
    typed = term(said(1, 0), said(2, 0), group="car")
    related = term(said(2, 0), group="car", typed=False, closeness=0.8)
    first, second = rank(matches(typed, related), (), SIZE, ANYONE)
    assert first.signals["message"] == second.signals["message"]
    assert (first.own, first.signals["coverage"]) == (0b1, 1.0)


def test_a_bonus_counts_as_a_share_of_the_typed_terms() -> None:
    """A standing instruction ranks higher by its bonus, however often such messages occur."""
    typed = term(said(1, 0), said(2, 0))
    bonus = term(said(1, 0), frequency=5_000, typed=False, bonus=0.2)
    first, second = rank(matches(typed, bonus), (), SIZE, ANYONE)
    assert (first.session, round(first.signals["standing"], 3), second.session) == (1, 0.2, 2)
    assert "standing" not in second.signals


def test_length_counts_less_for_what_the_assistant_said() -> None:
    """For a question about its answers, a short message gains less over a long one than for another question."""
    rows = term(said(1, 0, length=20), said(2, 0, length=120))

    def advantage(perspective: Perspective) -> float:
        short, long = rank(matches(rows), (), SIZE, RankingContext(perspective, ()))
        return short.score / long.score

    assert advantage(Perspective.USER) == advantage(Perspective.ANYONE) > advantage(Perspective.ASSISTANT)
