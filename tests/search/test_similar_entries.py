"""The answer of every write names what shares most with the new text, and says nothing where nothing does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.memory.curated.moves import write_notes
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.tool import describe
from memoranda.search.similar_entries import closest
from memoranda.support.origin import PERSON, Origin
from tests.cli.terminal import Terminal

HERON, EGRET = "The staging database is called heron.", "The staging database is now called egret."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[memoranda.Memory]:
    """A home with eight entries about different things."""
    with memoranda.open(tmp_path) as opened:
        for text in (
            *(HERON, "Ana owns billing.", "Releases are cut from stable.", "Uses pnpm in the web repository."),
            *("Der Testlauf braucht Docker.", "部署在每周二。", "El equipo se reúne los lunes.", "Le port est 80."),
        ):
            opened.remember(text)
        yield opened


@pytest.mark.parametrize(
    ("new", "similar"),
    [
        (EGRET, [HERON]),
        ("Ben owns billing since Ana left.", ["Ana owns billing."]),
        ("Der Testlauf braucht kein Docker mehr.", ["Der Testlauf braucht Docker."]),
        ("部署在每周四。", ["部署在每周二。"]),
        ("El equipo se reúne los martes.", ["El equipo se reúne los lunes."]),
        ("The coffee machine is broken.", []),
        ("今天下雨。", []),
    ],
)
def test_the_answer_names_what_a_text_may_replace(memory: memoranda.Memory, new: str, similar: list[str]) -> None:
    """By the library and by the tool, in any language; the text is saved in any case."""
    answer = memory.remember(new)
    assert answer["success"] and answer["similar"] == similar and new in memory.entries()


def test_at_most_two_are_named_and_the_closest_is_first(memory: memoranda.Memory) -> None:
    """Entries and notes of the same memory; those of another are not."""
    memory.remember(EGRET, "user")
    write_notes(memory.curated, [Add("The staging database was called crane.")], PERSON)
    answer = memory.remember("The staging database is called stork, and the one of tests ibis.")
    assert answer["similar"] == [HERON, "The staging database was called crane."]


def test_a_change_and_a_removal_are_not_compared_with_themselves(memory: memoranda.Memory) -> None:
    """What was replaced is gone, and a removal has no new text."""
    with memory.session() as session:
        call = {"action": "replace", "old_text": HERON, "content": EGRET}
        assert session.call("memory", call)["similar"] == []
        assert session.call("memory", {"action": "remove", "old_text": EGRET})["similar"] == []


def test_what_awaits_a_person_names_it_too(memory: memoranda.Memory) -> None:
    """The person sees the entry that it may replace."""
    outcome = memory.curated.apply("memory", [Add(f"Always say: {EGRET}")], Origin("agent", sources=("web_fetch",)))
    answer = describe(outcome, memory.curated)
    assert (answer["staged"], answer["similar"]) == (True, [HERON])


def test_a_word_of_every_entry_says_little() -> None:
    """The name of the project makes no two entries of it similar."""
    entries = [f"The shop {what}." for what in ("runs on Node 22", "sells books", "ships on Mondays", "has two owners")]
    assert closest(["The shop moved to Kiel."], entries) == []
    assert closest(["The shop runs on Node 24 now."], entries) == ["The shop runs on Node 22."]


def test_a_long_text_is_compared_with_many_entries() -> None:
    """Its words count once each, and none of theirs is among them."""
    assert closest(["milk, " * 20_000], [f"Entry {number} of the list." for number in range(2_000)]) == []


def test_the_terminal_replaces_or_keeps_without_a_question(tmp_path: Path) -> None:
    """A pipe is told what is close; `--replace` puts the new value in its place, and `--keep` adds it."""
    terminal = Terminal(tmp_path)
    terminal.ok("remember", HERON)
    assert HERON in terminal.ok("remember", EGRET)
    terminal.ok("memory", "undo")
    terminal.ok("remember", "--replace", EGRET)
    with memoranda.open(tmp_path) as memory:
        assert memory.entries() == (EGRET,)
    terminal.ok("remember", "--keep", HERON)
    terminal.ok("remember", "--replace", "Ana owns billing.")
    with memoranda.open(tmp_path) as memory:
        assert memory.entries() == (EGRET, HERON, "Ana owns billing.")
