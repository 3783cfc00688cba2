"""The everyday set measures what it says, and what already works stays so."""

import pytest

from benchmarks.ablation import RULES, without
from benchmarks.everyday import (
    LITERAL,
    NAMES,
    OTHERS,
    PARTS,
    PHRASES,
    PROMPTS,
    describe_failure,
    load_part,
    make_store,
    measure,
    summarize,
    table,
)


@pytest.mark.parametrize("part", PARTS)
def test_every_case_has_something_to_ask_and_a_name_of_its_own(part: str) -> None:
    """A question with an answer names a conversation that is recorded."""
    cases = load_part(part)
    recorded = [session["id"] for session in make_store(cases)["sessions"]]
    assert len(set(recorded)) == len(recorded)
    assert all(case.asks for case in cases)
    assert {case.gold for case in cases if case.group not in (OTHERS, PROMPTS)} <= set(recorded)


@pytest.mark.parametrize("part", PARTS)
def test_a_name_or_a_phrase_is_in_one_conversation_only(part: str) -> None:
    """Otherwise another conversation would be a right answer, too."""
    cases = load_part(part)
    texts = {
        session["id"]: "\n".join(message["text"] for message in session["messages"]).casefold()
        for session in make_store(cases)["sessions"]
    }
    for case in cases:
        for form, text in case.asks:
            if form in ("name", "phrase"):
                wanted = (text.split('"')[1] if '"' in text else text).casefold()
                assert [session for session, content in texts.items() if wanted in content] == [case.gold], text


@pytest.mark.slow
@pytest.mark.parametrize("group", [NAMES, PHRASES])
def test_every_name_and_phrase_is_found_among_the_first_three(group: str) -> None:
    """In old conversations as well as in new ones, and although others have its pieces or its words."""
    asked = measure(load_part("plain", [group]))
    assert [describe_failure(each) for each in asked if each.gold not in each.found[:3]] == []


@pytest.mark.slow
def test_an_old_name_is_found_behind_thousands_of_messages_with_its_pieces() -> None:
    """Among the first three; a search compares only the newest of them with the name."""
    old = [case for case in load_part("plain", [NAMES]) if case.kind == "when: old"]
    asked = measure(old[:3], decoys=3_200)
    assert [describe_failure(each) for each in asked if each.gold not in each.found[:3]] == []


@pytest.mark.slow
def test_plain_full_text_search_finds_every_literal_question() -> None:
    """So each can be found, and the figure of a search beside it means something."""
    asked = measure(load_part("plain", [LITERAL])[:8])
    figures = summarize(asked)["questions with an answer"]["literal"]
    assert figures["asked"] == figures["FTS5 in three"] == 32
    assert figures["first"] <= figures["in three"] <= 32


@pytest.mark.slow
def test_the_hook_shows_nothing_for_the_prompts_of_an_ordinary_day() -> None:
    """Among conversations that share their words."""
    cases = load_part("plain", [LITERAL, PROMPTS])
    asked = [each for each in measure([*cases[:8], *cases[-20:]]) if each.group == PROMPTS]
    assert [each.text for each in asked if each.given] == []
    assert "| prompts | 20 | 0 |" in table("prompts without an answer", summarize(asked)["prompts without an answer"])


def test_every_rule_that_is_switched_off_exists() -> None:
    """A rule that was removed or renamed is removed or renamed in the benchmark, too."""
    for rule in RULES:
        with without(RULES[rule]):
            pass
