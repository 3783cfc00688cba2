"""The words of a prompt tell what kind of prompt it is, in several languages."""

import pytest

from memoranda.search.query import asks_about_the_past, find_places
from memoranda.search.relevance import find_kind, find_owners

pytestmark = pytest.mark.slow


def test_questions_about_the_past_are_known_by_their_words() -> None:
    """A long prompt is work, whatever tense it is in."""
    assert asks_about_the_past("What did we decide about the lock?")
    assert asks_about_the_past("上次的端口是多少？")
    assert not asks_about_the_past("Fix the failing tests")
    assert not asks_about_the_past("We have to be careful: " + "did it work? " * 60)


@pytest.mark.parametrize("prompt", ["Where is the key?", "and how is Ana", "remind me of the port", "¿Dónde está?"])
def test_a_question_needs_no_question_mark(prompt: str) -> None:
    """A question word, a question mark, or a request to remember."""
    assert find_kind(prompt).question


def test_a_task_is_no_question() -> None:
    """Nor is a long text with a question mark in it."""
    assert not find_kind("rename the parser module").question
    assert not find_kind("Here is the report. Is it fine? " + "More of the report. " * 30).question


@pytest.mark.parametrize("prompt", ["my dentist", "what did you recommend?", "mein Zahnarzt", "où est notre clé"])
def test_a_personal_prompt_speaks_of_its_author(prompt: str) -> None:
    """Or of what the assistant said."""
    assert find_kind(prompt).personal


def test_general_prompts_are_not_personal() -> None:
    """Though they may point at something, or ask how something is done."""
    assert not find_kind("what is a closure?").personal
    assert find_kind("explain this error").here and find_kind("explain this error").how_to


def test_names_are_capitalised_words_within_a_sentence() -> None:
    """The first word of a prompt is capitalised anyway."""
    assert find_kind("Where does Ana live, in Porto?").names == {"ana", "porto"}


@pytest.mark.parametrize(
    "question, owners",
    [
        ("What is the catalog team's port, and Carla's?", [{"catalog", "team"}]),
        ("When is my cousin Leila's birthday?", [{"leila"}]),
        ("Was bekommt der Hund von Familie Wolters?", [{"wolter"}]),
        ("Où est la voiture de ma tante ?", [{"tant"}]),
        ("我表哥的生日是哪天？", [{"表哥"}]),
        ("佐藤さんの誕生日はいつですか？", [{"佐藤"}]),
    ],
)
def test_the_owner_of_what_is_asked_about_is_known(question: str, owners: list[set[str]]) -> None:
    """By the words that say so in the question's language."""
    assert find_owners(question) == owners


@pytest.mark.parametrize(
    "question",
    [
        "What's the plan for today's call?",
        "Where is the server's log?",
        "我们的端口是多少？",
        "私の端末はどれ？",
        "仓库后面的钥匙呢？",
    ],
)
def test_the_speaker_a_time_and_an_everyday_word_are_no_owners(question: str) -> None:
    """What is asked about is one's own."""
    assert find_owners(question) == []


@pytest.mark.parametrize(
    "text, before",
    [
        ("Who is the network team's lead?", ("after", "team")),
        ("Who is the lead of the network team?", ("before", "lead", "of", "the")),
        ("Quelle taille fait le pull de Network ?", ("before", "de")),
    ],
)
def test_a_word_has_a_place_between_those_that_mean_something(text: str, before: tuple[str, ...]) -> None:
    """With the small words between them, so that another word in the same place is another one of the same kind."""
    assert "network" in find_places(text)[before]
