"""Services behind external memories: they delete first, later if they are down, and what they keep is reported."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from tests.cli.terminal import Terminal
from tests.cli.test_provider_vendor import ACME, double, set_up  # noqa: F401 - a fixture
from tests.external.plugins import add_plugin, plain
from tests.external.vendors.acme import AcmeDouble
from tests.upkeep.forgetting.filled_home import occurrences

WORD = "zorblaxquint"


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("ACME_URL", "ACME_API_KEY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    add_plugin(tmp_path / "home", "acme", ACME)
    return Terminal(tmp_path / "home")


def say(home: Path, text: str) -> None:
    with memoranda.open(home) as memory, memory.session(source="test") as session, session.turn(text) as turn:
        turn.done("Noted.")


def jobs(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "home.db")) as connection:
        return [kind for (kind,) in connection.execute("SELECT kind FROM jobs ORDER BY id")]


@pytest.mark.slow
def test_a_service_deletes_what_it_received_of_the_sessions(terminal: Terminal, double: AcmeDouble) -> None:  # noqa: F811
    """The turns of sessions with the text; those of other sessions stay there."""
    set_up(terminal, double)
    say(terminal.home, f"I met {WORD}")
    say(terminal.home, "I met a friend")
    answer = terminal.json("forget", "--text", WORD, "--yes")
    assert answer["at_services"] == ["acme: deleted 1 turn"]
    assert double.stored_texts() == ["I met a friend Noted."]
    assert occurrences(terminal.home, WORD) == {}
    assert jobs(terminal.home) == []


@pytest.mark.slow
def test_a_service_that_is_down_deletes_before_it_receives_anything_else(
    terminal: Terminal,
    double: AcmeDouble,  # noqa: F811
) -> None:
    """The deletion waits, without the text, and comes first; the waiting turn has lost the text."""
    set_up(terminal, double)
    say(terminal.home, f"I met {WORD}")
    double.fail("down")
    say(terminal.home, f"I met {WORD} and pears again")
    result = terminal.run("forget", "--text", WORD, "--yes", "--json")
    assert result.exit_code == 1
    assert [place["where"] for place in json.loads(result.stdout)["left"]] == ["acme"]
    assert {"forget", "turn"} <= set(jobs(terminal.home))
    assert occurrences(terminal.home, WORD) == {}
    double.fail(None)
    with closing(sqlite3.connect(terminal.home / "home.db")) as connection, connection:
        connection.execute("UPDATE jobs SET next_try = 0")
    say(terminal.home, "The service is back")
    assert double.stored_texts() == ["I met [forgotten] and pears again Noted.", "The service is back Noted."]
    methods = [method for method, _ in double.requests]
    assert "POST" in methods[methods.index("DELETE") :], "the first session is deleted before the others are stored"
    assert jobs(terminal.home) == []


@pytest.mark.slow
def test_a_service_that_still_recalls_the_text_is_reported(terminal: Terminal) -> None:
    """It has no way to delete; the home is clean, and the exit code says that something is left."""
    stubborn = plain("stubborn", "def prefetch(self, query, *, session_id=''):\n    return 'I know ' + query")
    add_plugin(terminal.home, "stubborn", stubborn)
    (terminal.home / "config.yaml").write_text("memory:\n  provider: stubborn\n")
    say(terminal.home, f"I met {WORD}")
    result = terminal.run("forget", "--text", WORD, "--yes")
    assert result.exit_code == 1
    assert "stubborn, 1 time: stays (it still recalls the text" in result.output
    assert occurrences(terminal.home, WORD) == {}
