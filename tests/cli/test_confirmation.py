"""Consent: a command changes something only with `--yes` or with a yes on the terminal."""

import sys
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation

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
    assert ("renamed" in output) == is_run


def test_without_a_terminal_the_preview_says_how_to_agree(run: Run) -> None:
    """In words, or as JSON; nothing is changed."""
    assert run().output == "a -> b\nNothing was renamed.\n"
    assert run("y\n", as_json=True).output == '{\n  "applied": false\n}\n'


def test_a_dry_run_changes_nothing(run: Run) -> None:
    """Neither with `--yes` nor with an answer."""
    assert run("y\n", dry_run=True, yes=True).output == "a -> b\nNothing was renamed.\n"


def test_nothing_is_asked_where_nothing_would_change(run: Run) -> None:
    """The preview says so."""
    assert run("y\n", work=False, yes=True).output == "a -> b\nNothing was renamed.\n"
