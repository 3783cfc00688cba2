"""Consent: a command changes something only with `--yes` or with a yes on the terminal."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation
from tests.cli.chat.person import CTRL_C, Person
from tests.cli.terminal import Terminal
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run a command that would rename something; `answer` is what a person types, None without a terminal."""

    def invoke(
        answer: str | None = None, *, as_json: bool = False, dry_run: bool = False, yes: bool = False, work: bool = True
    ) -> Result:
        @click.command()
        def command() -> None:
            sys.stdin.isatty = lambda: answer is not None  # type: ignore[method-assign]
            planned = PlannedChange("a -> b", {"applied": False}, "Rename?", "Nothing was renamed.", has_work=work)
            invocation = Invocation(None, None, None, as_json)
            confirm_and_run(invocation, planned, lambda: click.echo("renamed"), dry_run=dry_run, yes=yes)

        return CliRunner().invoke(command, input=answer)

    return invoke


def test_yes_runs_without_a_question_or_a_preview(run: Run) -> None:
    """On a terminal as well as without one."""
    assert run(yes=True).output == run("n\n", yes=True).output == "renamed\n"


@pytest.mark.parametrize(("answer", "is_run"), [("y\n", True), ("\n", True), ("n\n", False)])
def test_a_person_at_a_terminal_is_asked_after_the_preview(run: Run, answer: str, is_run: bool) -> None:
    """And decides; an empty answer is the default."""
    output = run(answer).output
    assert output.startswith("a -> b\nRename?")
    assert output.endswith("renamed\n" if is_run else "Nothing was changed.\n")


def test_without_a_terminal_the_preview_says_how_to_agree(run: Run) -> None:
    """In words, or as JSON; nothing is changed, so the command fails."""
    result = run()
    assert (result.exit_code, result.stdout, result.stderr) == (1, "a -> b\n", "Nothing was renamed.\n")
    result = run("y\n", as_json=True)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"success": False, "error": "Nothing was renamed.", "applied": False}


def test_a_question_without_an_answer_fails(run: Run) -> None:
    """A terminal whose input ends, such as with Ctrl-D; a no is an answer."""
    result = run("")
    assert result.exit_code == 1
    assert result.stderr.endswith("Nothing was renamed.\n")
    assert run("n\n").exit_code == 0


@pytest.mark.parametrize(
    ("words", "question"), [("memory reset", "USER.md?"), ("forget Debian", "for good?"), ("secret set FOO", "FOO:")]
)
def test_an_interrupted_question_ends_the_command_as_everywhere(tmp_path: Path, words: str, question: str) -> None:
    """With one line and the exit code that shells use."""
    name, *arguments = words.split()
    with Person(tmp_path / "home", *arguments, command=name) as person:
        person.sees(question)
        person.presses(CTRL_C)
        assert person.leaves() == 130
        assert person.screen.endswith("\nInterrupted.\n") and "Nothing" not in person.screen


@pytest.mark.parametrize("words", ["memory reset", "memory purge", "skills purge"])
def test_what_asks_in_any_case_says_that_there_was_no_answer(tmp_path: Path, words: str) -> None:
    """Nothing is changed; a pipe may answer."""
    terminal = Terminal(tmp_path / "home")
    terminal.ok("remember", "CI runs on Debian 12.")
    assert "There was no answer, so nothing was changed. Add --yes to agree." in terminal.refused(*words.split())
    declined = terminal.run(*words.split(), input="n\n")
    assert (declined.exit_code, declined.stdout) == (0, "Nothing was changed.\n")
    assert "Debian" in terminal.ok("memory", "list") and terminal.json("memory", "log")
    terminal.ok(*words.split(), input="y\n")


def test_a_closed_standard_input_has_no_answer(tmp_path: Path) -> None:
    """The command fails like one without a terminal, and not with a traceback."""
    words = shlex.join([sys.executable, "-m", "memoranda", "--home", str(tmp_path / "home"), "memory", "reset"])
    done = subprocess.run(["sh", "-c", f"{words} <&-"], capture_output=True, check=False, timeout=GIVE_UP)
    assert done.returncode == 1 and b"There was no answer" in done.stderr and b"Traceback" not in done.stderr


def test_a_dry_run_changes_nothing(run: Run) -> None:
    """Neither with `--yes` nor with an answer."""
    assert run("y\n", dry_run=True, yes=True).output == "a -> b\nNothing was renamed.\n"


def test_nothing_is_asked_where_nothing_would_change(run: Run) -> None:
    """The preview says so."""
    assert run("y\n", work=False, yes=True).output == "a -> b\nNothing was renamed.\n"
