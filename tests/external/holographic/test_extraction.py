"""Statements are kept, requests are not."""

import pytest

from memoranda.external.holographic.extraction import category_of, extract_statements

pytestmark = pytest.mark.slow


def test_statements_are_recognised() -> None:
    """Preferences and habits of the user, decisions and facts of the project."""
    for sentence, category in [
        ("I prefer tabs over spaces.", "user_pref"),
        ("I always run the tests before I push", "user_pref"),
        ("I never work on Fridays.", "user_pref"),
        ("My timezone is Europe/Oslo", "user_pref"),
        ("My favourite editor is vim", "user_pref"),
        ("I’m allergic to peanuts", "user_pref"),
        ("I use fish as my shell", "user_pref"),
        ("We decided to use PostgreSQL for the ledger", "project"),
        ("The project uses Python 3.12", "project"),
        ("Our billing service runs on Kubernetes", "project"),
    ]:
        assert category_of(sentence) == category


def test_requests_questions_and_guesses_are_not() -> None:
    """Nor anything that leans on its context."""
    for sentence in [
        "I need help",
        "I need help with my deployment",
        "I want you to fix the tests",
        "I'd like a summary of this file",
        "I like this one",
        "I love it!",
        "I like how you did that",
        "Do you think I prefer tabs?",
        "I always get an error when I run it",
        "I think we decided on Redis",
        "Maybe we use Redis for that",
        "If we use Redis then it is faster",
        "My code is broken",
        "My question is about Redis",
        "Can you use tabs",
        "Please use tabs everywhere",
        "I use it",
        "I would prefer tabs",
        "The project uses Redis, right?",
        "ok",
    ]:
        assert category_of(sentence) is None


def test_only_the_users_statements_are_extracted() -> None:
    """Code, quotations and recalled text are skipped; each statement has the id of its message."""
    fenced = "<memory-context>\n[note]\n\nI prefer spaces over tabs.\n</memory-context>"
    messages = [
        {"role": "assistant", "content": "I prefer short answers."},
        {"role": "user", "content": f"Can you help me? I prefer tabs over spaces. Thanks!\n\n{fenced}", "id": 7},
        {
            "role": "user",
            "content": "```\nI always use goto\n```\n> I never test\nI never work on Sundays.",
        },
        {
            "role": "user",
            "content": [{"type": "text", "text": "We decided to drop Python 3.9 support."}, {"type": "x"}],
        },
        {"role": "user", "content": None},
        "garbage",
    ]
    assert extract_statements(messages) == [
        ("I prefer tabs over spaces.", "user_pref", "7"),
        ("I never work on Sundays.", "user_pref", "message 3"),
        ("We decided to drop Python 3.9 support.", "project", "message 4"),
    ]
