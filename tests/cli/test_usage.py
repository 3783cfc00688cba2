"""`memoranda usage`: what was spent, in words and in JSON."""

from pathlib import Path
from typing import Any

import pytest

from memoranda.models.model import Usage
from memoranda.models.spending.call_record import CallRecord, store_calls
from memoranda.models.spending.ledger import Ledger
from tests.cli.terminal import Terminal
from tests.models.spending.models import QUESTION, Fixed

pytestmark = pytest.mark.slow


def _run(home: Path, *arguments: str) -> str:
    return Terminal(home, "usage").ok(*arguments)


def _json(home: Path, *arguments: str) -> Any:
    return Terminal(home, "usage").json(*arguments)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a ledger that contains a chat, a review, and a call of an unknown model."""
    ledger = Ledger(tmp_path)
    chat = Fixed(Usage(100_000, 1_000, cache_read_tokens=90_000))
    ledger.metered(chat, "chat", session_id="s1").reply("", QUESTION)
    ledger.metered(Fixed(Usage(10_000, 100)), "review", session_id="s1", background=True).reply("", QUESTION)
    ledger.metered(Fixed(name="at-home"), "chat", session_id="s2", user_id="ann").reply("", QUESTION)
    ledger.close()
    return tmp_path


def test_the_table_adds_up_and_says_what_is_left(home: Path) -> None:
    """Calls, tokens, the share from the cache, money, and today's budget."""
    lines = _run(home, "--by", "purpose").splitlines()
    assert lines[0].split() == ["purpose", "calls", "input", "cached", "output", "cost"]
    assert lines[1].split() == ["chat", "2", "101,000", "89%", "1,100", "$0.0720"]
    assert lines[2].split() == ["review", "1", "10,000", "0%", "100", "$0.0315"]
    assert lines[3].split() == ["total", "3", "111,000", "81%", "1,200", "$0.1035"]
    assert "1 of the calls have no known price" in lines[4]
    assert lines[-1] == "Background work today: $0.0315 of $0.50, 10,100 of 2,000,000 tokens."


def test_json_has_the_same_in_numbers(home: Path) -> None:
    """For programs."""
    data = _json(home, "--by", "model")
    assert {row["name"]: row["calls"] for row in data["rows"]} == {"claude-sonnet-4-5": 2, "at-home": 1}
    assert data["total"]["unpriced"] == 1
    assert data["background_today"]["left_usd"] == pytest.approx(0.4685)


@pytest.mark.parametrize(("by", "names"), [("day", 1), ("model", 2), ("purpose", 2), ("session", 2)])
def test_it_can_be_looked_at_from_four_sides(home: Path, by: str, names: int) -> None:
    """One row for each."""
    assert len(_json(home, "--by", by)["rows"]) == names


def test_usage_can_be_limited_to_a_period_and_a_user(home: Path) -> None:
    """What lies outside is not counted."""
    ledger = Ledger(home)
    store_calls(ledger._file, [CallRecord("chat", 86_400.0 * 365 * 50, model="old", cost_usd=5.0)])
    ledger.close()
    assert _json(home)["total"]["calls"] == 4
    assert _json(home, "--since", "7d")["total"]["calls"] == 3
    assert _json(home, "--until", "2021-01-01")["total"]["calls"] == 1
    assert _json(home, "--user", "ann")["total"]["calls"] == 1


def test_an_empty_home_is_reported_and_stays_empty(tmp_path: Path) -> None:
    """Looking leaves no trace."""
    assert "no model calls" in _run(tmp_path)
    assert _json(tmp_path)["rows"] == []
    assert list(tmp_path.iterdir()) == []


def test_names_from_elsewhere_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """A model's name is text from elsewhere."""
    ledger = Ledger(tmp_path)
    ledger.metered(Fixed(name="\x1b[2Jgone"), "chat").reply("", QUESTION)
    ledger.close()
    assert "\x1b" not in _run(tmp_path, "--by", "model")


def test_the_budget_is_the_one_that_was_set(home: Path) -> None:
    """In the configuration, with words for none and for no limit."""
    (home / "config.yaml").write_text("budget: {daily_usd: 0.03, daily_tokens: none}\n")
    assert _run(home).splitlines()[-1] == (
        "Background work today: $0.0315 of $0.03, 10,100 tokens. Nothing is left until tomorrow."
    )
    (home / "config.yaml").write_text("budget: {daily_usd: 0}\n")
    assert _run(home).splitlines()[-1] == "Background work is switched off: its daily budget is 0."
