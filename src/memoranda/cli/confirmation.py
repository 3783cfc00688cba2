"""Shows what a command would change, and changes it only with consent: `--yes`, or an answer on the terminal."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import click

from memoranda.cli.context import Invocation
from memoranda.support.lazy_dataclass import dataclass

_UNCHANGED = "Nothing was changed."


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a command would change, as text and as the JSON answer, with the question to ask first.

    `hint` ends the preview when no question is asked or answered. Without `has_work` there is nothing to ask.
    """

    text: str
    data: Mapping[str, Any]
    question: str
    hint: str
    default: bool = True
    has_work: bool = True


def confirm_and_run(
    invocation: Invocation, planned: PlannedChange, run: Callable[[], None], *, dry_run: bool, yes: bool
) -> None:
    """Run the change if the user agrees; otherwise show what it would do.

    Nothing is asked in a dry run, which succeeds. For JSON, without a terminal and without an answer the command fails,
    because nothing was done: the preview says how to agree.
    """
    if dry_run or not planned.has_work:
        invocation.respond(f"{planned.text}\n{planned.hint}", planned.data)
    elif yes or _agrees(invocation, planned):
        run()
    else:
        click.echo(_UNCHANGED)


def _agrees(invocation: Invocation, planned: PlannedChange) -> bool:
    """Show the change and ask; ends the command if there is no answer."""
    if not invocation.as_json:
        click.echo(planned.text)
    if can_ask(invocation):
        try:
            return click.confirm(planned.question, default=planned.default)
        except click.Abort as error:
            _raise_interrupt(error)
    fail_unanswered(invocation, planned.hint, planned.data)


def ask(question: str) -> bool:
    """Asks a question whose answer is no unless a person says yes."""
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort as error:
        _raise_interrupt(error)
        return False


def can_ask(invocation: Invocation) -> bool:
    return not invocation.as_json and sys.stdin.isatty()


def require_yes(invocation: Invocation, question: str) -> None:
    """Asks on standard error, and ends the command unless the answer is yes; a pipe may answer. A no is no error."""
    try:
        answer = click.confirm(question, err=True)
    except click.Abort as error:
        _raise_interrupt(error)
        fail_unanswered(invocation, "There was no answer, so nothing was changed. Add --yes to agree.", {})
    if not answer:
        invocation.respond(_UNCHANGED, {"success": True, "message": _UNCHANGED})
        click.get_current_context().exit()


def _raise_interrupt(error: click.Abort) -> None:
    """Ctrl-C ends the command as it does everywhere; its message, or that of the end of the input, begins a line."""
    click.echo(err=True)
    if isinstance(error.__context__, KeyboardInterrupt):
        raise error


def fail_unanswered(invocation: Invocation, hint: str, data: Mapping[str, Any]) -> NoReturn:
    """Ends a command that did nothing because it got no answer; `hint` says so."""
    invocation.fail(hint, {**data, "success": False, "error": click.unstyle(hint).strip()})
