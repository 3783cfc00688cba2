"""Two entries say the same if their words are the same, one by one; one contains another as whole sentences only."""

import time
from itertools import combinations, product

import pytest

from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.facts import EntryFacts
from memoranda.upkeep.curator.rules import CuratedTarget, plan_changes
from memoranda.upkeep.curator.same_words import repetitions, statements_within

# In five languages: subjects, and statements about each that say different things.
_FACTS = {
    "en": (
        ("Ana", "The staging server", "Jonas", "The shop"),
        ("works at Nordlys.", "may deploy on Fridays.", "may not deploy on Fridays.", "is in Copenhagen.",
         "listens on port 8080.", "listens on port 9090.", "changed to Neovim.", "has no access to production.",
         "uses pnpm.", "takes the 7:40 train.", "moved from Redis 6 to Redis 7."),
    ),
    "de": (
        ("Ana", "Der Testserver", "Jonas", "Der Laden"),
        ("arbeitet bei Nordlys.", "darf freitags ausliefern.", "darf freitags nicht ausliefern.", "ist in Hamburg.",
         "läuft auf Port 8080.", "läuft auf Port 9090.", "ist zu Neovim gewechselt.", "hat keinen Zugang.",
         "nutzt pnpm.", "nimmt den Zug um 7:40.", "ist von Redis 6 auf Redis 7 umgestiegen."),
    ),
    "fr": (
        ("Ana", "Le serveur de test", "Jonas", "La boutique"),
        ("travaille chez Nordlys.", "peut déployer le vendredi.", "ne peut pas déployer le vendredi.", "est à Lyon.",
         "écoute sur le port 8080.", "écoute sur le port 9090.", "est passé à Neovim.", "n'a pas d'accès.",
         "utilise pnpm.", "prend le train de 7h40.", "est passé de Redis 6 à Redis 7."),
    ),
    "es": (
        ("Ana", "El servidor de pruebas", "Jonas", "La tienda"),
        ("trabaja en Nordlys.", "puede desplegar los viernes.", "no puede desplegar los viernes.", "está en Lugo.",
         "escucha en el puerto 8080.", "escucha en el puerto 9090.", "cambió a Neovim.", "no tiene acceso.",
         "usa pnpm.", "toma el tren de las 7:40.", "pasó de Redis 6 a Redis 7."),
    ),
    "zh": (
        ("安娜", "测试服务器", "乔纳斯", "商店"),
        ("在北光工作。", "可以在周五部署。", "不可以在周五部署。", "在上海。", "监听端口8080。", "监听端口9090。",
         "改用了Neovim。", "没有权限。", "使用pnpm。", "坐7:40的火车。", "从Redis 6升级到Redis 7。"),
    ),
}  # fmt: skip


def _entry(text: str, written: float) -> EntryFacts:
    return EntryFacts("memory", ScannedEntry(text, ()), written, None, "person", "", None, "")


def _target(texts: list[str]) -> CuratedTarget:
    return CuratedTarget("memory", [_entry(text, place) for place, text in enumerate(texts)], 100_000)


def _said(subject: str, statement: str, language: str) -> str:
    return f"{subject}{'' if language == 'zh' else ' '}{statement}"


def test_nine_facts_of_one_subject_that_say_different_things_are_left_alone() -> None:
    """In two hundred memories, whatever the subject, the language and the order."""
    homes = []
    for language, (subjects, statements) in _FACTS.items():
        for subject, start in product(subjects, range(10)):
            around = [statements[(start * 3 + step) % len(statements)] for step in range(9)]
            homes.append([_said(subject, statement, language) for statement in around])
    assert len(homes) == 200 and all(len(set(home)) == 9 for home in homes)
    assert [change for home in homes for change in plan_changes(_target(home), {})] == []


@pytest.mark.slow
def test_facts_that_are_crossed_are_left_alone() -> None:
    """Five thousand pairs: of one subject, of one statement, and of neither."""
    touched = count = 0
    for language, (subjects, statements) in _FACTS.items():
        texts = [_said(*each, language) for each in product(subjects, statements)]
        for pair in combinations(texts, 2):
            count += 1
            touched += bool(plan_changes(_target(list(pair)), {}))
            touched += bool(plan_changes(_target([f"{pair[0]} {pair[1]}", pair[1]]), {}))
    assert (count >= 4_700, touched) == (True, 0)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ana owns billing.", "ana owns “billing”"),
        ("Uses   pnpm,\nnot npm.", "Uses pnpm\nnot npm"),
        ("Nimmt den Zug.", "nimmt den Zug!"),
        ("部署在每周二。", "部署在每周二"),
        ("However, Ana pays.\nBen:", "however, Ana pays!\nBen"),
        ("Ana pays. Ben helps.", "Ana pays! Ben helps"),
    ],
)
def test_the_same_words_are_said_twice(older: str, newer: str) -> None:
    """Whatever the spaces, the quotes, the marks at their ends and a first capital."""
    assert list(repetitions([older, newer], str)) == [(older, newer)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ana may deploy.", "Only Ana may deploy."),
        ("Ana may deploy.", "Ana may deploy?"),
        ("Send it to US customers.", "Send it to us customers."),
        ("Written in C.", "Written in C++."),
        ("Keep it at -5 °C.", "Keep it at 5 °C."),
        ("The limit is 1.5 GB.", "The limit is 15 GB."),
        ("Lies in ./data.", "Lies in /data."),
        ("Set PATH.", "Set path."),
        ("Ana tells Ben.", "Ben tells Ana."),
        ("Run cd ..", "Run cd"),
        ("安娜可以部署。", "安娜不可以部署。"),
        ("No, Ana may deploy.", "No Ana may deploy."),
        ("No. Ana may deploy.", "No Ana may deploy."),
        ("Yes; no.", "Yes no."),
        ("Ana: Ben pays.", "Ana Ben pays."),
        ("“No”, Ana may deploy.", "No Ana may deploy."),
        ("No, Ana may deploy.", "No Ana may deploy. Ben may not."),
        ("No Ana may deploy.", "No. Ana may deploy. Ben may not."),
    ],
)
def test_other_words_are_another_statement(older: str, newer: str) -> None:
    """A word more, another order, a sign that belongs to a word, capitals that make it another one, or inner marks."""
    assert list(repetitions([older, newer], str)) == []
    assert list(statements_within([older, newer], str)) == []


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        ("Releases are cut from stable.", "Releases are cut from stable. They go out on Mondays."),
        ("Ana owns billing", "Ana owns billing.\nBen owns search."),
        ("Ben owns search.\nAna owns billing.", "Ana owns billing. Ben helps.\nBen owns search.\nZoe is new."),
        ("部署在每周二。", "部署在每周二。安娜负责。"),
    ],
)
def test_an_entry_stands_in_another_as_whole_sentences(shorter: str, longer: str) -> None:
    """From the beginning of a line to the end of a sentence, each line of it."""
    assert list(statements_within([shorter, longer], str)) == [(shorter, longer)]


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        ("Ana may deploy", "Only Ana may deploy."),
        ("Ana may deploy", "It is not true that Ana may deploy."),
        ("Weber pays.", "Do not ask whether Dr. Weber pays."),
        ("Ana may deploy.", "Ana may deploy, but only on Mondays."),
        ("Releases are cut from stable.", "Releases are cut from stable and signed."),
        ("部署在每周二", "不要以为部署在每周二。"),
        ("Ana owns billing.\nBen owns search.", "Ana owns billing.\nZoe owns search."),
        ("Ana owns billing.\nBen owns search", "Ana owns billing.\nBen owns search, but not its index."),
    ],
)
def test_words_within_a_sentence_are_no_statement(shorter: str, longer: str) -> None:
    """What stands before them or goes on behind them may turn what they say."""
    assert list(statements_within([shorter, longer], str)) == []


def test_ten_times_the_text_takes_no_hundred_times_the_time() -> None:
    """One long line, and many entries that begin alike."""

    def seconds(size: int) -> float:
        texts = ["milk. " * size, *(f"Ana says {number}. And more." for number in range(size))]
        began = time.process_time()
        list(repetitions(texts, str)), list(statements_within(texts, str))
        return time.process_time() - began

    seconds(100)
    assert seconds(5_000) < 50 * max(0.01, seconds(500))
