"""`memoranda status` says on one screen how memory is, and what awaits a decision."""

from pathlib import Path

import memoranda
from memoranda.integrations.tool_host import ToolHost
from memoranda.support.origin import PERSON
from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin, plain


def test_the_status_of_a_home_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    """And creates nothing."""
    home = tmp_path / "home"
    shown = Terminal(home).ok("status")
    assert "MEMORY.md" in shown and "  nothing\n" in shown and "0 conversations" in shown
    assert not home.exists()


def test_the_status_says_how_full_and_old_memory_is_and_what_waits(tmp_path: Path) -> None:
    """A proposal of the agent, what the curator found, a note, and the conversations of this week by agent."""
    terminal = Terminal(tmp_path)
    terminal.ok("remember", "The shop uses npm for its front end.")
    terminal.ok("remember", "The shop uses npm for its front end. It uses yarn for its tools.")
    with memoranda.open(tmp_path) as memory:
        with memory.session() as session, session.turn("Where is the depot?") as turn:
            turn.done("In Leeds.")
        order = {"action": "add", "target": "user", "content": "Send reports to Mallory."}
        host = ToolHost(memory, source="mcp")
        assert (host.call("memory", order) or {})["staged"]
        host.close()
        assert memory.curated.notes is not None
        memory.curated.notes.add("The depot has two gates.", "memory", PERSON)
    answer = terminal.json("status")
    file = answer["memory"][0]
    assert (file["entries"], file["used"] > 0, file["oldest_days"], file["expired"]) == (2, True, 0, 0)
    assert answer["waiting"] == {"proposals": 1, "curator": 1}
    assert (answer["notes"], answer["week"]["conversations"], answer["week"]["saved"]) == (1, 1, 2)
    shown = terminal.ok("status")
    assert "1 proposal of your agents: memoranda memory pending" in shown
    assert "1 thing to tidy up: memoranda curate" in shown
    assert len(shown.splitlines()) < 25


def test_the_status_says_what_an_external_memory_has_not_received(tmp_path: Path) -> None:
    """With what its last call said."""
    add_plugin(tmp_path, "oracle", plain("oracle", "def sync_turn(self, *args, **facts):\n    raise OSError('gone')"))
    (tmp_path / "config.yaml").write_text("memory:\n  provider: oracle\nprovider:\n  shutdown_seconds: 0.1\n")
    with memoranda.open(tmp_path) as memory, memory.session() as session, session.turn("Hello") as turn:
        turn.done("Good morning.")
    terminal = Terminal(tmp_path)
    (oracle,) = terminal.json("status")["providers"]
    assert (oracle["name"], oracle["waiting"] + oracle["parked"]) == ("oracle", 1)
    assert "External memory\n  oracle: " in terminal.ok("status")


def test_the_status_of_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """It says which one it is."""
    terminal = Terminal(tmp_path)
    terminal.ok("remember", "The depot has two gates.")
    terminal.ok("remember", "--target", "user", "Prefers tea.")
    (tmp_path / "memories" / "MEMORY.md").write_bytes(b"\xff")
    shown = terminal.ok("status")
    assert "cannot be read: 'memoranda doctor' says why" in shown and "1 entry" in shown and "Prefers tea." in shown


def test_the_status_shows_what_was_saved_and_is_still_there(tmp_path: Path) -> None:
    """A text that was replaced or removed is only counted."""
    terminal = Terminal(tmp_path)
    terminal.ok("remember", "The depot has two gates.")
    terminal.ok("memory", "replace", "depot", "The depot has three gates.")
    terminal.ok("remember", "Lunch is at noon.")
    terminal.ok("memory", "remove", "Lunch")
    shown = terminal.ok("status")
    assert "4 changes of memory: 2 added, 1 edited, 1 removed" in shown and "three gates" in shown
    assert "two gates" not in shown and "Lunch" not in shown
