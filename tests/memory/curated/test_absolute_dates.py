"""Relative dates become the dates that they meant when the text was written."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.memory.curated.absolute_dates import _CUES, _RULES, absolute_dates
from memoranda.memory.curated.facts import parse_until

_parser: Any = import_module("re._parser")
CURATOR = Path(__file__).parents[3] / "benchmarks" / "curator"
CASES = [
    line for name in ("dates.txt", "unseen/dates.txt") for line in (CURATOR / name).read_text("utf-8").splitlines()
]
WRITTEN = date(2026, 11, 18)


def _cases(mark: str) -> list[str]:
    return [line[2:] for line in CASES if line.startswith(f"{mark} ")]


def test_every_relative_date_is_replaced() -> None:
    """In seven languages and more: the result has the date of each phrase."""
    wrong = []
    for case in _cases("+"):
        text, _, day = case.rpartition(" | ")
        result = absolute_dates(text, WRITTEN)
        if result == text or day not in result:
            wrong.append(result)
    assert wrong == []


def test_names_paths_quotations_and_habits_stay() -> None:
    """Not a character of a text changes whose words only look like a date."""
    assert [absolute_dates(text, WRITTEN) for text in _cases("-")] == _cases("-")


@pytest.mark.parametrize(
    "text",
    [
        "On Fridays I plan next week.",
        "Always ask me what I did yesterday at standup.",
        "I prefer that reports cover last week only.",
        "Yesterday's bread makes the best French toast",
        "Each Monday, list what changed last week.",
        "When a report is due, cover last week only.",
        "The report for the previous day is sent each morning.",
        "yesterday's backup is deleted daily",
        "Backups from last week are deleted every Sunday.",
        "The digest covers yesterday and is sent each morning.",
        "The script rotates yesterday's log hourly.",
        "Das Backup von gestern wird täglich gelöscht.",
        "Freitags plane ich nächste Woche.",
        "Frag mich immer, was ich gestern gemacht habe.",
        "Wenn ich nach dem Bericht frage, nimm nur letzte Woche.",
        "Les vendredis je planifie la semaine prochaine.",
        "Demande-moi toujours ce que j'ai fait hier.",
        "Los viernes planifico la próxima semana.",
        "Prefiero que los informes cubran la semana pasada.",
        "Il venerdì pianifico la settimana prossima.",
        "Chiedimi sempre cosa ho fatto ieri.",
        "Às sextas planejo a próxima semana.",
        "Prefiro que os relatórios cubram a semana passada.",
    ],
)
def test_the_dates_of_a_habit_or_a_preference_stay(text: str) -> None:
    """Each time, they mean another day."""
    assert absolute_dates(text, WRITTEN) == text


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Since yesterday I always work from home.", "2026-11-17"),
        ("Every server was restarted yesterday.", "2026-11-17"),
        ("The build always failed yesterday.", "2026-11-17"),
        ("When we met yesterday, Ana said she will move.", "2026-11-17"),
        ("I'd prefer to meet tomorrow.", "2026-11-19"),
        ("Team switches to the new expense tool next month", "2026-12"),
        ("The rule was added yesterday that logs are archived daily.", "2026-11-17"),
        ("The backup that failed yesterday is retried every hour.", "2026-11-17"),
        ("The stand-up of last week is published, and Ana was there every day.", "2026-11-09"),
        ("We move next week and the plants are watered daily.", "2026-11-23"),
    ],
)
def test_what_happened_once_gets_its_date_beside_words_of_habits_and_things(text: str, day: str) -> None:
    """A start, the past, and a period behind a thing that is not its name."""
    assert day in absolute_dates(text, WRITTEN)


@pytest.mark.parametrize(
    "text",
    [
        "Access tokens expire in 30 days",
        "Invoices are due in 14 days",
        "Note: all passwords expire in 90 days",
        "The shop is closed on Sunday",
        "The shop isn't closed on Sunday",
        "We're closed on Sunday",
        "Closed on Sunday",
        "Salaries are paid on Friday",
        "The garbage is collected on Tuesday",
        "Geschlossen am Sonntag",
        "Der Laden ist am Sonntag geschlossen",
        "Default range is last month.",
        "The dashboard defaults to yesterday.",
        "Tests run on yesterday's snapshot.",
        "Prometheus scrapes today's metrics.",
    ],
)
def test_a_standing_rule_stays(text: str) -> None:
    """What plural things do, a passive in the present and a default are so each time."""
    assert absolute_dates(text, WRITTEN) == text


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("The contract ends in three weeks.", "2026-12-09"),
        ("My passport expires in 30 days", "2026-12-18"),
        ("The invoices are due in 14 days", "2026-12-02"),
        ("Two invoices are due in 14 days", "2026-12-02"),
        ("Users are moving in two weeks", "2026-12-02"),
        ("Leaves the team in two weeks", "2026-12-02"),
        ("James leaves in two weeks", "2026-12-02"),
        ("The shop was closed on Sunday", "2026-11-15"),
        ("Der Laden war am Sonntag geschlossen", "2026-11-15"),
        ("The shop will be closed on Sunday", "2026-11-22"),
        ("The default changes tomorrow.", "2026-11-19"),
        ("The fix for yesterday's outage is in PR 12.", "2026-11-17"),
        ("Anna attends tomorrow's meeting.", "2026-11-19"),
    ],
)
def test_what_is_so_once_gets_its_date(text: str, day: str) -> None:
    """The same words with an article, in the past or in the future are no rule."""
    assert day in absolute_dates(text, WRITTEN)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Moved to Oslo for the conference, back on Friday", "Moved to Oslo for the conference, back on 2026-11-20"),
        ("Left on Tuesday, back on Friday", "Left on 2026-11-17, back on 2026-11-20"),
        ("Back on Friday", "Back on 2026-11-20"),
        ("She wrote and is coming back on Friday", "She wrote and is coming back on 2026-11-20"),
        ("She was coming back on Friday", "She was coming back on 2026-11-13"),
        ("She came back on Friday", "She came back on 2026-11-13"),
        ("Nach Berlin gefahren, zurück am Freitag", "Nach Berlin gefahren, zurück am 2026-11-20"),
    ],
)
def test_the_day_of_a_return_is_a_later_one(text: str, result: str) -> None:
    """Behind a past too, unless the return is in the past itself."""
    assert absolute_dates(text, WRITTEN) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Away from next Monday to next Friday", "Away from 2026-11-23 to 2026-11-27"),
        ("Away from next Monday until Friday", "Away from 2026-11-23 until 2026-11-27"),
        ("Away from tomorrow to next Friday", "Away from 2026-11-19 to 2026-11-20"),
        ("Moved from next Monday to this Friday", "Moved from 2026-11-23 to 2026-11-20"),
        ("Valid from 2027-01-01 until Friday", "Valid from 2027-01-01 until Friday"),
        ("Weg von nächstem Montag bis nächsten Freitag", "Weg von 2026-11-23 bis 2026-11-27"),
    ],
)
def test_a_range_does_not_end_before_it_begins(text: str, result: str) -> None:
    """Its last weekday is counted from its first day; where that is weeks away, the weekday stays."""
    assert absolute_dates(text, WRITTEN) == result


@pytest.mark.parametrize("text", ["Today Show is the name of the newsletter", "Tonight Show tickets are in the drawer"])
def test_the_name_of_a_show_stays(text: str) -> None:
    """At the beginning of a sentence, too."""
    assert absolute_dates(text, WRITTEN) == text


@pytest.mark.parametrize(
    "text",
    [
        "Run `git log --since=yesterday` for the changelog.",
        "Run ``git log --since yesterday`` for the changelog.",
        "Run git log --since yesterday for the changelog.",
        "journalctl --since last week shows errors.",
        "date -d tomorrow gives it.",
    ],
)
def test_a_command_stays(text: str) -> None:
    """It is run again on another day, whether it is quoted or not."""
    assert absolute_dates(text, WRITTEN) == text


def test_text_in_a_code_block_stays() -> None:
    """Code is not prose, whatever its variables are called."""
    text = "The helper is:\n```\ntoday = last week\n```\nIt was added yesterday."
    assert absolute_dates(text, WRITTEN) == text.replace("yesterday", "on 2026-11-17")


def test_a_text_that_was_made_absolute_stays() -> None:
    """A second run changes nothing."""
    results = [absolute_dates(case.rpartition(" | ")[0], WRITTEN) for case in _cases("+")]
    assert [absolute_dates(result, date(2027, 3, 1)) for result in results] == results


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-18",
        "2026-11-18T09:30:00",
        datetime(2026, 11, 18, 9),
        datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp(),
    ],
    ids=["day", "time", "datetime", "seconds"],
)
def test_the_day_of_writing_is_given_in_any_usual_form(written: datetime | float | str) -> None:
    """A date, a time with or without a clock, seconds since the epoch, or ISO 8601."""
    assert memoranda.curator.absolute_dates("since yesterday", written) == "since 2026-11-17"


def test_a_date_that_is_written_beside_the_word_is_not_repeated() -> None:
    """The writer has said already which day is meant."""
    text = "Switched yesterday (2026-11-17) to uv."
    assert absolute_dates(text, WRITTEN) == text


def test_months_and_years_keep_to_the_calendar() -> None:
    """A month before the end of March is February, and a year earlier is the year before."""
    assert absolute_dates("The lease ended last month.", date(2026, 3, 31)) == "The lease ended in 2026-02."
    assert absolute_dates("The lease ended last year.", date(2024, 2, 29)) == "The lease ended in 2023."


def test_every_phrase_contains_a_cue_of_its_language() -> None:
    """The expressions of a language are used only for a text with one of its cues: no phrase is missed by that."""
    for rule in _RULES:
        cues = [cue.replace("_", " ") for cue in _CUES[rule.language].split()]
        phrases = list(islice(_phrases(_parser.parse(rule.pattern.pattern, re.IGNORECASE)), 20_000))
        assert [phrase for phrase in phrases if not any(cue in phrase.lower() for cue in cues)] == []


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs tzset")
@pytest.mark.parametrize(("zone", "day"), [("Pacific/Kiritimati", "2026-11-18"), ("Pacific/Pago_Pago", "2026-11-17")])
def test_the_day_is_that_of_the_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, day: str) -> None:
    """In the evening in America it is the next day in UTC, which the journal has. One of the two zones differs now."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert absolute_dates("It failed yesterday.", "2026-11-19T02:00:00+00:00") == f"It failed on {day}."
        with memoranda.open(tmp_path) as memory:
            memory.remember("The release failed yesterday.")
            assert parse_until("1d") == str(date.today() + timedelta(1))
            assert memory.entries() == (f"The release failed on {date.today() - timedelta(1)}.",)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_long_word_takes_no_long_time() -> None:
    """A model may try to save a page without spaces: an entry is read once for names and quotations."""
    started = time.process_time()
    assert absolute_dates("Today " + "x" * 20_000, WRITTEN).startswith("On 2026-11-18")
    assert time.process_time() - started < 1


def _phrases(parsed: Any) -> Iterator[str]:
    """Short texts that match an expression, with each of its alternatives, without what must stand beside them."""
    parts = []
    for kind, value in parsed:
        match str(kind):
            case "LITERAL":
                parts.append([chr(value)])
            case "IN":
                parts.append([chr(character) for name, character in value if str(name) == "LITERAL"] or ["1"])
            case "BRANCH":
                parts.append([phrase for each in value[1] for phrase in _phrases(each)])
            case "MAX_REPEAT":
                parts.append(["", *_phrases(value[2])] if value[0] == 0 else list(_phrases(value[2])))
            case "SUBPATTERN":
                parts.append(list(_phrases(value[3])))
            case "ASSERT" | "ASSERT_NOT":
                pass
            case _:
                raise AssertionError(kind)
    return map("".join, product(*parts))
