"""Prompts that ask to continue are recognised, and no others."""

from pathlib import Path

import pytest

from memoranda.search.continue_prompts import asks_to_continue, asks_what_was_done

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES = sorted((Path(__file__).parent / "continue_prompts").glob("*.txt"))
PROMPTS = [line for path in FILES for line in path.read_text("utf-8").splitlines()]


def test_prompts_that_ask_to_continue_are_recognised() -> None:
    """In ten languages: at least 98 of 100 of those that the rules were written or learned from."""
    asking = [line[2:] for line in PROMPTS if line.startswith("+ ")]
    assert len([prompt for prompt in asking if asks_to_continue(prompt)]) >= 0.98 * len(asking)


def test_other_prompts_are_not() -> None:
    """Not even those that look like it."""
    assert [line[2:] for line in PROMPTS if line.startswith("- ") and asks_to_continue(line[2:])] == []


@pytest.mark.parametrize(
    "prompt",
    [
        "carry on with the refactoring from yesterday",
        "Lass uns an dem Parser von gestern weiterarbeiten",
        "Reprenons la migration d'hier",
        "Continuemos con la migración de la semana pasada",
        "昨天的重构还没弄完，继续吧",
        "金曜日にやっていたリファクタリングの続きをやって",
    ],
)
def test_a_prompt_may_name_the_work_to_continue(prompt: str) -> None:
    """The name is no word of such questions."""
    assert asks_what_was_done(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "continue this poem: roses are red",
        "what happened yesterday on the stock market",
        "Update my resume from last year",
        "Der Zug von gestern fährt weiter nach Ulm",
        "What did he do yesterday?",
        "Continue the last paragraph",
        "go on, tell me more about closures",
        "Our import workers hang about once a day. Where do I start?",
        "昨天股市继续下跌吗？",
    ],
)
def test_content_other_people_and_the_world_are_something_else(prompt: str) -> None:
    """However many words of such questions the prompt has."""
    assert not asks_to_continue(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "where do we eat on Friday",
        "where do we park on Monday",
        "where did we eat with Anna on Friday",
        "where did we go yesterday",
        "where did we have lunch yesterday",
        "where do we start",
        "what did I eat yesterday?",
        "what did we buy yesterday",
        "what did we pay in October",
        "what did Anna do in March",
        "Please finish the taxes due in March",
        "what is open in March?",
        "finish the milk I opened 3 days ago",
        "what are the next 3",
        "where did we eat two weeks ago",
        "wo essen wir am Freitag",
        "qu'est-ce qu'on a mangé hier ?",
        "我昨天吃了什么？",
    ],
)
def test_a_question_with_a_verb_of_its_own_asks_for_a_fact(prompt: str) -> None:
    """Only the last work is done, left off, stopped or discussed."""
    assert not asks_to_continue(prompt)


@pytest.mark.parametrize("prompt", ["I'm back from lunch. Where were we?", "Mittagspause vorbei, machen wir weiter"])
def test_a_clause_of_its_own_asks(prompt: str) -> None:
    """A greeting or a remark beside it changes nothing."""
    assert asks_to_continue(prompt)


def test_hardly_any_everyday_prompt_asks_to_continue() -> None:
    """Of several hundred everyday prompts, only those that do."""
    prompts = (BENCHMARKS / "everyday_prompts.txt").read_text("utf-8").splitlines()
    assert {prompt for prompt in prompts if asks_to_continue(prompt)} <= {"continue", "what should we do next?"}


@pytest.mark.parametrize("prompt", ["go on", "weiter", "continúa", "继续", "продолжай"])
def test_a_bare_continue_does_not_ask_what_was_done(prompt: str) -> None:
    """It is about earlier work only where a conversation begins with it."""
    assert asks_to_continue(prompt)
    assert not asks_what_was_done(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "where were we?",
        "where were we with the data loader",
        "wo waren wir stehen geblieben",
        "how far did we get",
        "what did we get done yesterday",
        "where do we go from here",
        "what did we do yesterday?",
        "what did we do 3 days ago",
        "what did I do two weeks ago?",
        "what did we work on in October",
        "what were we working on",
        "Was haben wir gestern gemacht?",
        "我昨天做了什么？",
    ],
)
def test_a_question_about_the_last_work_asks_anywhere(prompt: str) -> None:
    """Also in the middle of a conversation."""
    assert asks_what_was_done(prompt)


def test_a_long_prompt_is_a_task() -> None:
    """Whatever its words."""
    assert not asks_to_continue("continue " * 40)
