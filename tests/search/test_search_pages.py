"""People and programs may list more conversations than one answer to a model contains."""

from pathlib import Path

import pytest

import memoranda
from tests.cli.terminal import Terminal
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with 23 conversations about ports, without titles."""
    with memoranda.open(tmp_path) as memory:
        for number in range(23):
            messages = [f"Port of server {number}?", f"Server {number} listens on port {5000 + number}."]
            tell(memory.sessions, f"s{number}", messages, at=BEGIN + number)
        memory.sessions.index.catch_up()
    return tmp_path


def test_a_search_lists_as_many_conversations_as_a_program_wants(home: Path) -> None:
    """Each once, in the order of the single pages; a cursor continues if there are more."""
    with memoranda.open(home) as memory:
        found = memory.search("port", limit=50)
        assert found["count"] == len({hit["session_id"] for hit in found["results"]}) == 23
        assert "cursor" not in found
        some = memory.search("port", limit=15)
        assert some["results"] == found["results"][:15]
        rest = memory.search("port", limit=50, cursor=some["cursor"])
        assert rest["results"] == found["results"][15:]
        latest = memory.search(limit=20)
        assert len(latest["results"]) == 20


def test_a_model_lists_ten_at_most(home: Path) -> None:
    """Its context has less room."""
    with memoranda.open(home) as memory:
        assert memory.call("session_search", {"query": "port", "limit": 50})["count"] == 10


def test_the_command_lists_up_to_fifty(home: Path) -> None:
    """With the question of each conversation that has no title."""
    terminal = Terminal(home)
    shown = terminal.run("search", "port", "--limit", "50").stdout
    assert "23. " in shown and "Port of server 7?" in shown and "(no title)" not in shown
    assert terminal.run("search", "port", "--limit", "51").exit_code != 0
