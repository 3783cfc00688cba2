"""`memoranda browse`, in a real terminal: type, choose, read, resume."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from tests.cli.chat.person import CTRL_C, TAB, Person
from tests.cli.terminal import Terminal
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow

DOWN, ESCAPE, ENTER, CTRL_O, PAGE_DOWN = "\x1b[B", "\x1b", "\r", "\x0f", "\x1b[6~"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a conversation of Claude Code and one of another program."""
    with memoranda.open(tmp_path / "home") as memory:
        db = memory.sessions
        said = ["How do I fix the zebra build?", *(f"Line number {number}." for number in range(60))]
        tell(db, "one", ["\n".join(said), "Pin the compiler."], title="Fix the build", source="claude-code")
        db.set_extra_fields("one", host="claude-code", host_session_id="abc-123", directory=str(tmp_path))
        tell(db, "two", ["The plum cake \x1b[31mneeds butter", "How much?"], at=BEGIN + 86_400, source="telegram")
    return tmp_path / "home"


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which `claude` says how it was called."""
    directory = tmp_path / "bin"
    directory.mkdir()
    program = directory / "claude"
    program.write_text('#!/bin/sh\necho "claude called with $* in $(pwd)"\n')
    program.chmod(0o755)
    yield {"PATH": f"{directory}:{os.environ['PATH']}"}


def test_a_conversation_is_found_read_and_resumed(home: Path, programs: dict[str, str]) -> None:
    """Results appear while typing; Enter shows the conversation, and `o` starts its agent in its directory."""
    with Person(home, command="browse", env=programs) as person:
        person.shows("plum cake")
        person.shows("Fix the build")
        person.presses("compi")
        person.hides("plum cake")
        person.shows("Fix the build")
        person.presses("ler")
        person.shows("Pin the >>>compiler<<<")
        person.hides("plum cake")
        person.presses(ENTER)
        person.shows("How do I fix the zebra build?")
        person.hides("Pin the compiler.")
        person.presses(PAGE_DOWN)
        person.shows("Pin the compiler.")
        person.presses("o")
        person.sees(f"claude called with --resume abc-123 in {home.parent}")
        assert person.leaves() == 0


def test_keys_choose_filter_and_leave(home: Path) -> None:
    """Arrow keys, Tab for the agent, a note where nothing can be resumed, q back to the list, Escape to leave."""
    with Person(home, command="browse", env={"NO_COLOR": "1"}) as person:
        person.shows("plum cake")
        person.presses(CTRL_O)
        person.shows("telegram has no command that resumes")
        person.presses(DOWN + ENTER)
        person.shows("How do I fix the zebra build?")
        person.presses("q")
        person.shows("plum cake")
        person.presses(TAB)
        person.shows("Tab agent: ")
        person.presses("nothinglikethis")
        person.shows("Nothing found.")
        assert "\x1b[31m" not in person.raw
        assert "\x1b[32m" not in person.raw
        person.presses(ESCAPE)
        assert person.leaves() == 0


def test_control_c_leaves_the_terminal_as_it_was(home: Path) -> None:
    """The other screen of the terminal is closed."""
    with Person(home, "zebra", command="browse") as person:
        person.shows("Search: zebra")
        person.presses(CTRL_C)
        assert person.leaves() == 0
        assert person.raw.rfind("\x1b[?1049l") > person.raw.rfind("\x1b[?1049h")


def test_the_list_as_json(home: Path) -> None:
    """With the resume command, without a terminal."""
    terminal = Terminal(home)
    rows = terminal.json("browse")["conversations"]
    assert [row["session_id"] for row in rows] == ["two", "one"]
    assert rows[1]["resume"] == f"cd {home.parent} && claude --resume abc-123"
    assert [row["session_id"] for row in terminal.json("browse", "compiler")["conversations"]] == ["one"]
    assert terminal.json("browse", "--agent", "telegram")["conversations"][0]["session_id"] == "two"
    assert terminal.json("browse", "--since", "2025-06-16")["conversations"] == rows[:1]


def test_without_a_terminal_the_error_names_other_commands(home: Path) -> None:
    """Nothing is drawn into a pipe."""
    result = Terminal(home).run("browse")
    assert result.exit_code == 1
    assert "needs a terminal" in result.output


def test_an_empty_home_says_how_to_fill_it(tmp_path: Path) -> None:
    """And nothing is created."""
    with Person(tmp_path / "none", command="browse") as person:
        person.sees("There are no conversations yet.")
        assert person.leaves() == 0
    assert not (tmp_path / "none").exists()
