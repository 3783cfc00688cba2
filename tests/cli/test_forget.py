"""`memoranda forget`: what its argument means, what it asks, and what it says."""

import json
from pathlib import Path

import pytest

import memoranda
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    with memoranda.open(tmp_path) as memory:
        memory.remember("The old address is 12 Elm Street.")
        with memory.session(source="test") as session, session.turn("We moved from 12 elm street") as turn:
            turn.done("Noted.")
        memory.sessions.set_session_title(str(session.id), "Moving house")
        memory.sessions.create_session("unnamed", "test")
    return Terminal(tmp_path)


def fails(terminal: Terminal, *arguments: str) -> str:
    result = terminal.run(*arguments)
    assert result.exit_code == 1
    return result.output


def test_without_consent_it_only_lists(terminal: Terminal) -> None:
    """Neither a dry run nor a command without a terminal changes anything."""
    for run, options in ((terminal.refused, ()), (terminal.ok, ("--dry-run",))):
        listed = run("forget", "12 Elm  street", *options)
        assert "curated memory: memories/MEMORY.md, 1 time: remove" in listed
        assert "message, 1 time: replace with a mark" in listed
        assert "Nothing was changed" in listed
    assert "12 Elm Street" in terminal.ok("memory", "list")


@pytest.mark.slow
def test_with_consent_it_forgets_and_proves_it(terminal: Terminal) -> None:
    """The answer says how much was read; a second run finds nothing."""
    answer = terminal.json("forget", "12", "ELM", "street", "--yes")
    assert answer["success"]
    assert answer["complete"]
    assert answer["left"] == []
    assert answer["bytes_read"] > 10_000
    assert "nowhere" in terminal.ok("forget", "12 elm street", "--yes")
    assert "Elm" not in terminal.ok("memory", "log")


@pytest.mark.slow
def test_text_from_standard_input_stays_out_of_the_shell(terminal: Terminal) -> None:
    """A dash reads it."""
    assert "Forgotten in" in terminal.ok("forget", "-", "--yes", input="12 Elm Street\n")


@pytest.mark.slow
def test_a_title_must_be_named_as_one(terminal: Terminal) -> None:
    """It is a text, too, so the command does not guess; the id of a session has one meaning."""
    assert "can mean more than a text" in fails(terminal, "forget", "Moving house", "--yes")
    terminal.ok("forget", "--session", "Moving house", "--yes")
    assert "Moving house" not in terminal.ok("sessions", "list")
    assert json.loads(terminal.run("forget", "unnamed", "--yes", "--json").stdout)["subject"] == "session"


@pytest.mark.slow
def test_a_short_text_needs_a_second_consent(terminal: Terminal) -> None:
    """With counts; and nothing is changed without it."""
    # With a vowel, which no checksum of a journal has: two consonants may stand in one by chance.
    output = fails(terminal, "forget", "El", "--yes")
    assert "fewer than 3 characters" in output
    assert "matches" in output
    assert "12 Elm Street" in terminal.ok("memory", "list")
    terminal.ok("forget", "El", "--yes", "--many")
    assert "12 Elm Street" not in terminal.ok("memory", "list")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ([], "Say what to forget"),
        (["", "--yes"], "no visible character"),
        (["a", "--text", "b"], "once"),
        (["--entry", "nothing like this"], "No entry has"),
        (["--user", "zoe"], "has nothing of user"),
        (["--session", "no such session"], "No session has"),
    ],
)
def test_what_cannot_be_meant_is_refused(terminal: Terminal, arguments: list[str], answer: str) -> None:
    """With a reason, and nothing is changed."""
    assert answer in fails(terminal, "forget", *arguments)


@pytest.mark.slow
def test_settings_are_listed_and_not_changed(terminal: Terminal) -> None:
    """The exit code says that something is left."""
    (terminal.home / "prices.yaml").write_text("# 12 Elm Street\n")
    assert "settings are not changed" in fails(terminal, "forget", "12 Elm Street", "--yes")
    assert "Elm" in (terminal.home / "prices.yaml").read_text()


@pytest.mark.slow
def test_undo_restores_nothing_that_was_forgotten(terminal: Terminal) -> None:
    """Not in part either, and no other change in its place; one that is named by its number can still be undone."""
    terminal.ok("remember", "The new address is a secret.")
    terminal.ok("remember", "The gate code is 555 0199 and the gate is green.")
    terminal.ok("forget", "555 0199", "--yes")
    for number in ((), ("4",)):
        refused = fails(terminal, "memory", "undo", *number)
        assert "Change 4 cannot be undone, because its text was forgotten" in refused
    assert "Undid change 2 (add)" in terminal.ok("memory", "undo", "2")
    terminal.ok("memory", "undo", "1")
    assert terminal.json("memory", "list")["memory"]["entries"] == []


@pytest.mark.slow
def test_a_note_with_the_text_goes_as_a_whole(terminal: Terminal) -> None:
    """As an entry does."""
    terminal.ok("remember", "The gate code is 555 0199.")
    terminal.ok("memory", "move", "gate code", "--to", "notes")
    terminal.ok("forget", "555 0199", "--yes")
    assert "(no entries yet)" in terminal.ok("memory", "list", "notes")
