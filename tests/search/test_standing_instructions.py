"""Standing instructions and preferences of the user: which texts and prompts count, and what they change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.search.index.standing_instructions import concerns_work, is_standing
from tests.search.conftest import Call
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow

DAY = 86_400.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        yield opened


def test_a_standing_instruction_is_recognised() -> None:
    """Words such as "always", "from now on" and "I prefer" make a standing instruction, in several languages."""
    for text in [
        "Always run the linter before you commit.",
        "Thanks. And never push to main directly, please.",
        "From now on, answer in metric units.",
        "I'd rather have short functions.",
        "I really prefer tabs over spaces, can you reformat this?",
        "Going forward use pnpm instead of npm.",
        "Whenever I ask for a query, show the plan too.",
        "Bitte immer auf Deutsch antworten.",
        "Désormais, réponds en français.",
        "De ahora en adelante usa tabulaciones.",
        "从现在开始用中文回答",
        "今後は日本語で答えてください",
    ]:
        assert is_standing(text)


@pytest.mark.parametrize(
    "text",
    [
        "Why does the build always fail on Mondays?",
        "The cache never expires, and that is the bug.",
        "Move the cursor forward by one line.",
        "The default port is 8080.",
        "I ran it again and it works.",
    ],
)
def test_a_report_is_no_standing_instruction(text: str) -> None:
    """A text that only contains such a word, and wants nothing, does not count."""
    assert not is_standing(text)


def test_instructions_concern_prompts_that_ask_for_work() -> None:
    """A prompt that asks for work or advice is concerned by instructions; a question about the past is not."""
    for prompt, expected in [
        ("Can you write the release notes?", True),
        ("How should I name the new branch?", True),
        ("Write a commit message for this change", True),
        ("What do I need to include in the release notes?", True),
        ("What have I needed for the release?", False),
        ("Which linter did we choose?", False),
        ("How many releases have I made?", False),
        ("Can you summarize our conversations about the linter?", False),
        ("What does Ana like to eat?", False),
    ]:
        assert concerns_work(prompt) is expected


def test_an_instruction_ranks_higher_for_work_and_not_for_the_past(db: SessionDB, call: Call) -> None:
    """The session with the instruction comes first for a prompt about work, and is marked; otherwise a report does."""
    tell(db, "rule", ["Always mention the ticket number when I ask about a commit message.", "Noted."])
    for number in range(4):
        report = f"The commit message of change {number} broke the release script, so we edited it."
        tell(db, f"report{number}", [report, "I see."], at=BEGIN + DAY * number)
    wanted = call(query="Can you write a commit message for the new parser?", limit=5, why=True)
    assert wanted["results"][0]["session_id"] == "rule"
    assert wanted["results"][0]["why"]["standing"] > 0
    assert all("standing" not in result["why"] for result in wanted["results"][1:])
    past = call(query="Which commit message did break the release script?", limit=5, why=True)
    assert past["results"][0]["session_id"].startswith("report")
    assert all("standing" not in result["why"] for result in past["results"])


def test_an_instruction_about_something_else_stays_down(db: SessionDB, call: Call) -> None:
    """An instruction that shares one common word does not pass a session with most of the words."""
    tell(db, "rule", ["Always water the change of plants on Sunday.", "Noted."])
    tell(db, "answer", ["The migration script needs the change of the users table before the release.", "Good."])
    tell(db, "other", ["The change is small.", "Yes."])
    found = call(query="Can you run the migration script that needs the users table?", limit=3)
    assert found["results"][0]["session_id"] == "answer"
