"""Prompts that ask to continue are recognised, and no others."""

from pathlib import Path

import pytest

from memoranda.search.continue_prompts import asks_to_continue, asks_what_was_done

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROMPTS = (BENCHMARKS / "curator" / "continue.txt").read_text("utf-8").splitlines()


def test_prompts_that_ask_to_continue_are_recognised() -> None:
    """In nine languages: at least 95 of 100 of the development set."""
    asking = [line[2:] for line in PROMPTS if line.startswith("+ ")]
    assert len([prompt for prompt in asking if asks_to_continue(prompt)]) >= 0.95 * len(asking)


def test_other_prompts_are_not() -> None:
    """Not even those that look like it."""
    assert [line[2:] for line in PROMPTS if line.startswith("- ") and asks_to_continue(line[2:])] == []


def test_hardly_any_everyday_prompt_asks_to_continue() -> None:
    """Of several hundred everyday prompts, only those that do."""
    prompts = (BENCHMARKS / "everyday_prompts.txt").read_text("utf-8").splitlines()
    assert {prompt for prompt in prompts if asks_to_continue(prompt)} <= {"continue", "what should we do next?"}


@pytest.mark.parametrize("prompt", ["go on", "weiter", "continúa", "继续", "продолжай"])
def test_a_bare_continue_does_not_ask_what_was_done(prompt: str) -> None:
    """It is about earlier work only where a conversation begins with it."""
    assert asks_to_continue(prompt)
    assert not asks_what_was_done(prompt)


@pytest.mark.parametrize("prompt", ["where were we?", "Was haben wir gestern gemacht?", "我昨天做了什么？"])
def test_a_question_about_the_last_work_asks_anywhere(prompt: str) -> None:
    """Also in the middle of a conversation."""
    assert asks_what_was_done(prompt)


def test_a_long_prompt_is_a_task() -> None:
    """Whatever its words."""
    assert not asks_to_continue("continue " * 40)
