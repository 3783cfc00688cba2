"""Shows what a command would change, and changes it only with consent: `--yes`, or an answer on the terminal."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from memoranda.cli.context import Invocation
from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a command would change, as text and as the JSON answer, with the question to ask first.

    `hint` ends the preview when no question is asked. Without `has_work` there is nothing to ask.
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

    Nothing is asked in a dry run, for JSON, or without a terminal: then the preview says how to agree.
    """
    if planned.has_work and not dry_run:
        if yes:
            run()
            return
        if _can_ask(invocation):
            click.echo(planned.text)
            if click.confirm(planned.question, default=planned.default):
                run()
            return
    invocation.respond(f"{planned.text}\n{planned.hint}", planned.data)


def _can_ask(invocation: Invocation) -> bool:
    return not invocation.as_json and sys.stdin.isatty()
