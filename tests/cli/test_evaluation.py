"""`memoranda eval summaries`: what models keep and invent, measured on the conversations of the home."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.api.memory import open_memory
from memoranda.home import config
from memoranda.models.model import Reply
from memoranda.search.summary_quality import find_specifics
from memoranda.support.home import Home
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest, Refuse, Step
from tests.cli.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]


def _answer(received: ReceivedRequest) -> Step:
    """One model is faithful, one invents, one is not available."""
    if received.json["model"] == "gone":
        return Refuse(404, "There is no such model", "model_not_found")
    if received.json["model"] == "inventor":
        return Reply("They asked Zoltan, who used port 9999.")
    return Reply("They asked Magda, who used port 5433 in config/pool.yaml.")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home with one conversation, and a service with three models."""
    with open_memory(tmp_path) as memory:
        session = memory.session(session_id="s1")
        session.turn("which port does the pool use").done("We asked Magda: port 5433, see config/pool.yaml.")
        session.turn("thanks").done("You are welcome.")
    with ScriptedServer(_answer) as server:
        for key, value in (("provider", "openai"), ("name", "faithful"), ("base_url", server.openai_url)):
            config.set_value(Home.at(tmp_path), f"model.{key}", value)
        yield tmp_path


def test_models_are_compared_by_what_they_keep_and_invent(home: Path) -> None:
    """All names and numbers of the messages are kept by one, none by the other, which has two of its own."""
    data = Terminal(home, "eval", "summaries").json("--model", "faithful", "--model", "inventor", "--model", "gone")
    faithful, inventor, gone = data["models"]
    assert data["questions"] == 1
    assert (faithful["coverage"], faithful["unsupported_terms"]) == (1.0, 0)
    assert (inventor["coverage"], inventor["unsupported_terms"]) == (0.0, 2)
    assert faithful["input_tokens"] > 0 and faithful["output_tokens"] > 0
    assert (gone["summaries"], gone["failed"], gone["coverage"]) == (0, 1, None)


def test_the_configured_model_is_measured_by_default(home: Path) -> None:
    """The table has a line for it, and the ledger its call."""
    lines = Terminal(home, "eval", "summaries").ok().splitlines()
    assert lines[0].split() == ["model", "summaries", "failed", "coverage", "unsupported", "input", "output"]
    assert lines[1].split()[:5] == ["faithful", "1", "0", "100%", "0"]
    assert Terminal(home, "usage").json("--by", "purpose")["rows"][0]["name"] == "search"


def test_without_a_summary_the_command_fails_with_the_reason(home: Path) -> None:
    """A spent budget is no result."""
    config.set_value(Home.at(home), "budget.daily_tokens", "0")
    result = Terminal(home, "eval", "summaries").run()
    assert result.exit_code == 1
    assert "its daily budget is 0" in result.output


def test_a_home_without_conversations_has_nothing_to_measure(tmp_path: Path) -> None:
    """The command says so, and creates nothing."""
    result = Terminal(tmp_path / "empty", "eval", "summaries").run()
    assert result.exit_code == 1 and "No conversation" in result.output
    assert not (tmp_path / "empty").exists()


def test_names_and_numbers_are_found_in_a_text() -> None:
    """Paths, identifiers, numbers and capitalized words, but not the first word of a sentence."""
    found = find_specifics("Then we met Magda at 10:30. Later src/pool.py set max_size to 1,500 on db-7.")
    assert found == {"magda", "10:30", "src/pool.py", "max_size", "1,500", "db-7"}
