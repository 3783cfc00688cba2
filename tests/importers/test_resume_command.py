"""The command that resumes a session in its own program."""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.sources import SOURCES, resume_command

pytestmark = pytest.mark.slow


def imported(name: str = "0b1c2d3e", directory: Any = "/home/ana/house", host: str = "claude-code") -> dict[str, Any]:
    return {"source": host, "host": host, "host_session_id": name, "directory": directory}


def test_the_command_changes_to_the_session_s_directory() -> None:
    """Names with spaces and quotes are quoted for a shell."""
    assert resume_command(imported()) == "cd /home/ana/house && claude --resume 0b1c2d3e"
    assert resume_command(imported(directory=None)) == "claude --resume 0b1c2d3e"
    tricky = "/home/ana/it's; rm -rf $HOME"
    assert shlex.split(resume_command(imported(directory=tricky))) == [
        "cd",
        tricky,
        "&&",
        "claude",
        "--resume",
        "0b1c2d3e",
    ]


def test_our_own_session_has_no_command() -> None:
    """Nor one from a program that is not known, or that has none."""
    assert resume_command({"id": "a", "source": "claude-code"}) == ""
    assert resume_command({}) == ""
    assert resume_command(imported(host="somebody")) == ""
    assert resume_command(imported(host="jsonl")) == ""


@pytest.mark.parametrize(
    "name", ["--dangerously-skip-permissions", "-r", "", "a b", "a;b", "$(x)", "a\nb", "a\x1b[2J", "é", "x" * 300]
)
def test_a_name_that_could_be_read_as_something_else_makes_no_command(name: str) -> None:
    """A transcript may come from anyone, and a person copies what is printed."""
    assert all(resume_command(imported(name, host=host)) == "" for host in SOURCES)


@pytest.mark.parametrize("directory", ["relative", "-", "~/x", "/a\nb", "/a\x1b[31m", "/a\u202eb", 5])
def test_a_directory_that_cannot_be_named_safely_makes_no_command(directory: Any) -> None:
    """There would be no way to get there; what is no text is no directory."""
    made = {host: resume_command(imported(directory=directory, host=host)) for host in SOURCES}
    without = {host: resume_command(imported(directory=None, host=host)) for host in SOURCES}
    assert made == (without if directory == 5 else dict.fromkeys(SOURCES, ""))


@given(st.sampled_from(sorted(SOURCES)), st.text(), st.text())
def test_the_command_is_one_safe_line_for_any_transcript(host: str, name: str, directory: str) -> None:
    """A shell reads the id and the directory as one word each."""
    command = resume_command(imported(name, directory or None, host))
    assert command.isprintable()
    if command.startswith("cd "):
        assert shlex.split(command)[:3] == ["cd", directory, "&&"]
